/**
 * Problem details (RFC 9457) for clients that name `application/problem+json` in `Accept`. They are the usual error body with `type`,
 * `title`, `status` and `detail` beside it.
 */

import { STATUS_CODES } from 'node:http'

const problemType = 'application/problem+json'

/** Returns whether the client names the type itself; `*\/*` does not count. */
export function wantsProblem(accept: string | undefined): boolean {
  if (accept === undefined || !/problem\+json/i.test(accept)) return false
  const range = accept.split(',').find((one) => one.split(';', 1)[0]?.trim().toLowerCase() === problemType)
  return range !== undefined && !/;\s*q=0(?:\.0*)?\s*(?:;|$)/i.test(range)
}

/** Turns a JSON error into a problem and leaves every other response as it is. `docs` is the URL of the page that explains the codes. */
export async function asProblem(answer: Response | Promise<Response>, docs: string): Promise<Response> {
  const response = await answer
  if (response.status < 400 || response.headers.get('content-type') !== 'application/json') return response
  const text = await response.text()
  if (text === '') return new Response(null, response) // the answer to a HEAD request
  const body = JSON.parse(text) as { error: string | { code: string; message: string } }
  // Other protocols have error bodies of their own (A2A's codes are numbers).
  if (typeof body.error !== 'string' && typeof body.error?.code !== 'string') return new Response(text, response)
  const { status } = response
  const headers = new Headers(response.headers)
  headers.set('Content-Type', problemType)
  if (!/(?:^|,)\s*accept\s*(?:,|$)/i.test(headers.get('vary') ?? '')) headers.append('Vary', 'Accept')
  return new Response(JSON.stringify({ ...describe(body, status, docs), ...body }), { status, headers })
}

function describe({ error }: { error: string | { code: string; message: string } }, status: number, docs: string) {
  if (typeof error === 'string') return { type: 'about:blank', title: titles[status] ?? 'Error', status, detail: error }
  const title = error.code.charAt(0) + error.code.slice(1).toLowerCase().replaceAll('_', ' ')
  return { type: `${docs}#${error.code.toLowerCase()}`, title, status, detail: error.message }
}

/** Titles of `about:blank`, which means no more than the status (RFC 9457 §4.2.1). Node still has the former name of 413. */
const titles = { ...STATUS_CODES, 413: 'Content Too Large' } as typeof STATUS_CODES
