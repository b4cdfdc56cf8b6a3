/**
 * `{base_url}/bulk` takes a pasted list or a CSV file and answers each line, all at one block. The answer is a page, or CSV for `Accept: text/csv`.
 * Each line counts in the budget of keyless reads. A list that does not fit into it consumes one request and is not looked up.
 */
import type { Context, Hono } from 'hono'
import { errorResponse, methodRefused, preflight, quotaHeaders } from '../../../http/responses.ts'
import type { ServiceError } from '../../../lib/errors.ts'
import { bulkPage, bulkPath, type BulkProblem } from '../../../pages/lookup/bulk.ts'
import { fileResponse, isOwnPost, pageResponse } from '../pages/response.ts'
import { beginPage } from '../pages/visit.ts'
import { readBodyOf, type Env, type Headers, type RequestHelpers, type RouteSite } from '../request.ts'
import { parseLines, withoutQueries } from './lines.ts'
import { type LookupSite, resolveLines } from './resolve.ts'
import { csvOf, rowOf } from './table.ts'

export type BulkSite = LookupSite &
  RouteSite & {
    /** The public origin, without a slash at the end. */
    readonly baseUrl: string
  }

const mostLines = 200
const maxBytes = 65_536
const formTypes = ['application/x-www-form-urlencoded', 'multipart/form-data', 'text/csv', 'text/plain']
const methods = 'GET, HEAD, POST, OPTIONS'

/** Status of the answer to a list that was not looked up. */
const statuses = { empty: 400, unreadable: 400, lines: 413, bytes: 413, quota: 429, chain: 502, fault: 500 } as const

export function bulkRoute(app: Hono<Env>, helpers: RequestHelpers, site: BulkSite): void {
  const { baseUrl, limiter, now = Date.now } = site

  app.options(bulkPath, () => preflight(methods))
  app.all(bulkPath, async (c) => {
    const { quota, context, ...begun } = await beginPage(c, helpers, limiter, bulkPath)
    let { headers } = begun
    const { method } = c.req
    if (!['GET', 'HEAD', 'POST'].includes(method)) return methodRefused(methods, headers)
    const most = Math.min(mostLines, quota?.limit ?? mostLines)
    const asCsv = /\btext\/csv\b/i.test(c.req.header('accept') ?? '')

    const page = (status: number, view: Parameters<typeof bulkPage>[1], more: Headers = {}) =>
      pageResponse(context, { status, html: bulkPage(context, view), form: true }, { ...headers, ...more })
    const refuse = (problem: BulkProblem, text = '', fault?: ServiceError) => {
      const status = fault?.status ?? statuses[problem.kind]
      const wait: Headers = problem.kind === 'quota' ? { 'Retry-After': String(problem.seconds) } : {}
      return asCsv
        ? errorResponse(status, messageOf(problem, most, fault), { ...headers, ...wait })
        : page(status, { most, text: withoutQueries(text), problem }, wait)
    }

    if (quota?.allowed === false) return refuse({ kind: 'quota', left: 0, seconds: quota.resetSeconds })
    if (method !== 'POST') return page(200, { most })
    let body = ''
    try {
      const list = isOwnPost(c, formTypes) ? await listOf(c) : ({ problem: 'unreadable' } as const)
      if ('problem' in list) return refuse({ kind: list.problem })
      body = list.parts.join('\n')
      const { count, lines } = parseLines(list.parts, baseUrl, most)
      if (count === 0) return refuse({ kind: 'empty' }, body)
      if (count > most) return refuse({ kind: 'lines', count }, body)
      const after = await helpers.consumeMore(c, limiter, { quota, more: count - 1 })
      headers = quotaHeaders(after)
      if (after?.allowed === false)
        return refuse({ kind: 'quota', left: after.remaining, seconds: after.resetSeconds }, body)
      const { block, resolutions } = await resolveLines(
        site,
        lines.map(({ identifiers }) => identifiers),
      )
      const rows = lines.map((line, index) => rowOf(line, resolutions[index] ?? { kind: 'unreadable' }))
      const checked = { block, checkedAt: Math.floor(now() / 1000) }
      const csv = csvOf(baseUrl, rows, checked)
      return asCsv
        ? fileResponse(csv, { type: 'text/csv; charset=utf-8', name: 'touchstone-list.csv' }, headers)
        : page(200, { most, text: withoutQueries(body), result: { rows, csv, ...checked } })
    } catch (error) {
      const fault = helpers.faultOf(error, c)
      return refuse({ kind: fault.code === 'CHAIN_UNAVAILABLE' ? 'chain' : 'fault' }, body, fault)
    }
  })
}

/** Reads the fields `list` and `file` of a form, or a body in CSV or plain text. */
async function listOf(
  c: Context<Env>,
): Promise<{ readonly parts: readonly string[] } | { readonly problem: 'bytes' | 'unreadable' }> {
  const type = c.req.header('content-type') ?? ''
  const body = await readBodyOf(c, { maxBytes, timeoutMs: 10_000 })
  if (!body.ok) return { problem: body.because === 'too-large' ? 'bytes' : 'unreadable' }
  if (/^text\/(?:csv|plain)\s*(?:;|$)/i.test(type)) return { parts: [body.text] }
  try {
    const form = await new Response(body.text, { headers: { 'Content-Type': type } }).formData()
    const [list, file] = [form.get('list'), form.get('file')]
    const texts = [list, file instanceof File ? await file.text() : null]
    return { parts: texts.filter((text): text is string => typeof text === 'string' && text !== '') }
  } catch {
    return { problem: 'unreadable' }
  }
}

function messageOf(problem: BulkProblem, most: number, fault?: ServiceError): string {
  switch (problem.kind) {
    case 'empty':
      return 'The list has no line.'
    case 'lines':
      return `The list has ${problem.count} lines; at most ${most} are looked up at one time.`
    case 'bytes':
      return `The list has more than ${maxBytes} bytes.`
    case 'quota':
      return `There are ${problem.left} lines left for you. Send the list again in ${problem.seconds} s.`
    case 'chain':
      return 'The chain could not be read. Nothing was looked up.'
    case 'fault':
      return `${fault?.message ?? 'The request failed unexpectedly.'} Nothing was looked up.`
    case 'unreadable':
      return 'The body must be text/csv, text/plain or a form with the field list or file, in UTF-8.'
  }
}
