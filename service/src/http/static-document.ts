/** A document that never changes while the service runs: its bytes and headers are made once, and a client that holds them gets 304. */
import { createHash } from 'node:crypto'
import type { RequestListener } from 'node:http'
import { matchesETag, methodRefused, openToAll } from './respond.ts'

export type StaticDocument = {
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly etag: string
  /** All headers of its 200. */
  readonly headers: Readonly<Record<string, string>>
}

export const staticMethods = 'GET, HEAD, OPTIONS'

/** `headers` overrule those that every document has: open to every origin, kept for an hour. */
export function staticDocument(
  type: string,
  text: string,
  headers: Readonly<Record<string, string>> = {},
): StaticDocument {
  const bytes = new TextEncoder().encode(text)
  const etag = `"${createHash('sha256').update(bytes).digest('hex').slice(0, 32)}"`
  return {
    bytes,
    etag,
    headers: {
      ...openToAll,
      'Content-Type': type,
      'Content-Length': String(bytes.length),
      'Cache-Control': 'public, max-age=3600',
      'X-Content-Type-Options': 'nosniff',
      ETag: etag,
      ...headers,
    },
  }
}

/** The answer to GET and HEAD; 405 to other methods. OPTIONS is the caller's. */
export function documentResponse(
  { bytes, etag, headers }: StaticDocument,
  method: string,
  ifNoneMatch: string | undefined,
): Response {
  if (method !== 'GET' && method !== 'HEAD') return methodRefused(staticMethods)
  if (matchesETag(ifNoneMatch, etag)) return new Response(null, { status: 304, headers: unsized(headers) })
  return new Response(method === 'HEAD' ? null : bytes, { headers })
}

/** A listener that gives out a document at one path, and leaves everything else to the listener behind it. */
export function withDocument(
  path: string,
  { bytes, etag, headers }: StaticDocument,
  behind: RequestListener,
): RequestListener {
  return (request, response) => {
    const { method, url = '' } = request
    if ((method !== 'GET' && method !== 'HEAD') || url.split('?', 1)[0] !== path) return behind(request, response)
    if (matchesETag(request.headers['if-none-match'], etag)) response.writeHead(304, unsized(headers)).end()
    else response.writeHead(200, headers).end(bytes)
  }
}

/** What a 304 says of the bytes that it does not send (RFC 9110 §15.4.5). */
function unsized(headers: Readonly<Record<string, string>>): Record<string, string> {
  const { 'Content-Length': _length, 'Content-Type': _type, ...rest } = headers
  return rest
}
