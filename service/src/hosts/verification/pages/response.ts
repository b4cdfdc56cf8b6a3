/** The response of a page: its language, and headers that keep it out of caches, frames and search engines (spec §4.6). */
import type { Context } from 'hono'
import { prefersPage } from '../../../http/accept.ts'
import { methodRefused } from '../../../http/responses.ts'
import { hrefIn, type PageContext } from '../../../pages/context.ts'
import type { Env, Headers } from '../request.ts'

type PageAnswer = {
  readonly status: number
  readonly html: string
  /** The page holds a form that is sent to this host. */
  readonly form?: boolean | undefined
  /** The page's theme loads a typeface from this host. */
  readonly font?: boolean | undefined
  /** Origins that the page's script may fetch, this host among them; left out: none. */
  readonly connect?: readonly string[] | undefined
}

export const pageHeaders = {
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
  'X-Robots-Tag': 'noindex',
} as const

/** A page is never cached: its address may hold a tap, and its state is that of one moment. */
export function pageResponse(
  { language }: PageContext,
  { status, html, form = false, font = false, connect = [] }: PageAnswer,
  headers: Headers = {},
): Response {
  return new Response(html, {
    status,
    headers: {
      ...headers,
      'Content-Type': 'text/html; charset=utf-8',
      'Content-Language': language,
      'Content-Security-Policy': policyOf({ form, font, connect }),
      ...pageHeaders,
      'Cache-Control': 'no-store',
      Vary: 'Accept, Accept-Language',
    },
  })
}

/** Returns 303 to a page of this host. */
export function seeOther(location: string, headers: Headers): Response {
  return new Response(null, { status: 303, headers: { ...headers, Location: location, 'Cache-Control': 'no-store' } })
}

/** Refuses another method at a path of a form. A browser that comes back to the answer, such as from its history, starts anew. */
export function formRefused(c: Context<Env>, context: PageContext, headers: Headers): Response {
  return c.req.method === 'GET' && prefersPage(c.req.header('accept') ?? null)
    ? seeOther(hrefIn(context, '/'), { ...headers, Vary: 'Accept' })
    : methodRefused('POST', headers)
}

/** Returns a file that a browser saves and no cache keeps. */
export function fileResponse(
  body: string | Uint8Array<ArrayBuffer>,
  { type, name }: { readonly type: string; readonly name: string },
  headers: Headers,
): Response {
  return new Response(body, {
    headers: {
      ...headers,
      'Content-Type': type,
      'Content-Disposition': `attachment; filename="${name}"`,
      'Cache-Control': 'no-store',
      'X-Content-Type-Options': 'nosniff',
    },
  })
}

/** Returns the origins of a page whose script asks this host, and the provider for visitors where there is one. */
export function connectTo(publicRpcUrl: string | null): readonly string[] {
  return ["'self'", ...(publicRpcUrl === null ? [] : [new URL(publicRpcUrl).origin])]
}

type Policy = { readonly form: boolean; readonly font: boolean; readonly connect: readonly string[] }

/** The policy allows nothing of another origin, no inline script or style, no frame around the page. */
export function policyOf({ form, font, connect }: Policy): string {
  return [
    "default-src 'none'",
    "style-src 'self'",
    "img-src 'self' data:",
    "script-src 'self'",
    ...(font ? ["font-src 'self'"] : []),
    ...(connect.length > 0 ? [`connect-src ${connect.join(' ')}`] : []),
    "base-uri 'none'",
    `form-action ${form ? "'self'" : "'none'"}`,
    "frame-ancestors 'none'",
  ].join('; ')
}

/** Returns whether a page of this host, or a program, sent a body of one of these types. Browsers name the site of the page. */
export function isOwnPost(c: Context<Env>, types: readonly string[]): boolean {
  const [type = ''] = (c.req.header('content-type') ?? '').split(';', 1)
  return (
    types.includes(type.trim().toLowerCase()) &&
    ['same-origin', 'none'].includes(c.req.header('sec-fetch-site') ?? 'none')
  )
}
