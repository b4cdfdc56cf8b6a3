/** The begin of a page route: the quota of the client, the language of the visitor, and notices in it. */
import type { Context } from 'hono'
import { prefersPage } from '../../../http/accept.ts'
import type { RateLimiter } from '../../../http/rate-limit/limiter.ts'
import { errorResponse, quotaHeaders } from '../../../http/responses.ts'
import type { PageContext } from '../../../pages/context.ts'
import { negotiateLanguage, parseLanguage } from '../../../pages/languages.ts'
import { hasSearch, noticePage, type Notice } from '../../../pages/notice.ts'
import { nothingHere } from '../routes/asset.ts'
import { isRead, rawQuery, readBodyOf, type Env, type Headers, type RequestHelpers } from '../request.ts'
import { pageAssets } from './assets.ts'
import { isOwnPost, pageResponse } from './response.ts'

/** Chooses the language by `?lang=`, else by `Accept-Language`. */
export function contextOf(query: URLSearchParams, acceptLanguage: string | undefined): PageContext {
  const named = parseLanguage(query.get('lang'))
  return { language: named ?? negotiateLanguage(acceptLanguage), chosen: named !== null, assets: pageAssets().folder }
}

function contextOfRequest(c: Context<Env>): PageContext {
  return contextOf(new URLSearchParams(rawQuery(c).slice(0, 200)), c.req.header('accept-language'))
}

/**
 * Consumes a request of the client. `path` is that of the page, null for the answer to a form. `limited` is the answer where the quota is
 * used up, else null.
 */
export async function beginPage(
  c: Context<Env>,
  helpers: RequestHelpers,
  limiter: RateLimiter | undefined,
  path: string | null,
) {
  const quota = await helpers.consume(c, limiter)
  const headers = quotaHeaders(quota)
  const context = contextOfRequest(c)
  const answer = (status: number, notice: Notice) => noticeResponse(context, path, { status, notice }, headers)
  const limited = quota?.allowed === false ? answer(429, { kind: 'limited', seconds: quota.resetSeconds }) : null
  return { quota, headers, context, answer, limited }
}

export function noticeResponse(
  context: PageContext,
  path: string | null,
  { status, notice }: { readonly status: number; readonly notice: Notice },
  headers: Headers,
): Response {
  const wait = notice.kind === 'prefetch' ? '1' : notice.kind === 'limited' ? String(notice.seconds) : undefined
  return pageResponse(
    context,
    { status, html: noticePage(context, path, notice), form: hasSearch(notice.kind) },
    { ...headers, ...(wait !== undefined && { 'Retry-After': wait }) },
  )
}

/** Paths for programs: their errors are JSON for browsers too. */
const forPrograms = /^\/(?:api|a2a|mcp|dpps\w*|\.well-known)(?:\/|$)/

/** Answers 404 for a path that nothing serves. A browser that navigates gets a page, any other client the general error body (spec §7). */
export function pathNotFound(c: Context<Env>, headers: Headers = {}): Response {
  if (!isRead(c.req.method) || forPrograms.test(c.req.path) || !prefersPage(c.req.header('accept') ?? null))
    return errorResponse(404, nothingHere, { ...headers, Vary: 'Accept' })
  return noticeResponse(contextOfRequest(c), null, { status: 404, notice: { kind: 'noPage' } }, headers)
}

/** Reads the fields of a form of this host, or of a program. Any other body is null. */
export async function formFields(c: Context<Env>, maxBytes: number): Promise<URLSearchParams | null> {
  if (!isOwnPost(c, ['application/x-www-form-urlencoded'])) return null
  const body = await readBodyOf(c, { maxBytes, timeoutMs: 5_000 })
  return body.ok ? new URLSearchParams(body.text) : null
}
