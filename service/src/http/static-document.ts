/** Documents that do not change while the service runs. Bytes and headers are made once, and a matching ETag gets 304. */
import { createHash } from 'node:crypto'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { compressedOnce, encodingFor } from './compression.ts'
import { matchesIfNoneMatch } from './etag.ts'
import { getHeader, parseRequestTarget } from './request.ts'
import { methodRefused, openToAll, preflight, sendError, readMethods } from './responses.ts'

export type StaticDocument = {
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly etag: string
  /** All headers of the 200 response. */
  readonly headers: Readonly<Record<string, string>>
}

/** Makes a document that every origin may read and caches keep for an hour. `headers` replace these defaults. */
export function staticDocument(
  type: string,
  content: string | Uint8Array<ArrayBuffer>,
  headers: Readonly<Record<string, string>> = {},
): StaticDocument {
  const bytes = typeof content === 'string' ? new TextEncoder().encode(content) : content
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

/** Makes the document at its first use. For one that takes long to make and is seldom asked for. */
export function lazyDocument(make: () => StaticDocument): StaticDocument {
  let made: StaticDocument | undefined
  const document = () => (made ??= make())
  return {
    get bytes() {
      return document().bytes
    },
    get etag() {
      return document().etag
    },
    get headers() {
      return document().headers
    },
  }
}

/** Returns the response to GET and HEAD, and 405 to other methods. The caller answers OPTIONS. A document may have `Last-Modified`. */
export function documentResponse(
  { bytes, etag, headers }: StaticDocument,
  method: string,
  ifNoneMatch: string | undefined,
  ifModifiedSince?: string,
): Response {
  if (method !== 'GET' && method !== 'HEAD') return methodRefused(readMethods)
  const isKnown =
    ifNoneMatch === undefined
      ? isUnmodifiedSince(ifModifiedSince, headers['Last-Modified'])
      : matchesIfNoneMatch(ifNoneMatch, etag)
  if (isKnown) return new Response(null, { status: 304, headers: unsized(headers) })
  return new Response(method === 'HEAD' ? null : bytes, { headers })
}

/** Compares two dates of HTTP (RFC 9110 §13.1.3). The form of asctime, which no client sends, is ignored as any text is that is no date. */
function isUnmodifiedSince(since: string | undefined, lastModified: string | undefined): boolean {
  if (since?.endsWith(' GMT') !== true || lastModified === undefined) return false
  return Date.parse(lastModified) <= Date.parse(since)
}

/** Returns a listener that serves a document at one path and passes every other request on. */
export function withDocument(path: string, document: StaticDocument, next: RequestListener): RequestListener {
  return (request, response) => {
    if (parseRequestTarget(request.url ?? '').path !== path) return next(request, response)
    if (rejectsMethod(request, response)) return
    const { bytes, etag, headers } = document
    if (matchesIfNoneMatch(getHeader(request, 'if-none-match'), etag)) response.writeHead(304, unsized(headers)).end()
    else response.writeHead(200, headers).end(bytes)
  }
}

/** Answers a preflight, and methods that read nothing. Returns whether it did. */
export function rejectsMethod({ method = '' }: IncomingMessage, response: ServerResponse): boolean {
  if (method === 'GET' || method === 'HEAD') return false
  if (method === 'OPTIONS') response.writeHead(204, Object.fromEntries(preflight(readMethods).headers)).end()
  else sendError(response, 405, `This route answers ${readMethods}.`, { ...openToAll, Allow: readMethods })
  return true
}

/** A 304 has no content, and so neither its length nor its type (RFC 9110 §15.4.5). */
function unsized(headers: Readonly<Record<string, string>>): Record<string, string> {
  const { 'Content-Length': _length, 'Content-Type': _type, ...rest } = headers
  return rest
}

export type BrowserFiles = ReturnType<typeof browserFiles>
type FileRequest = { readonly acceptEncoding?: string | undefined; readonly ifNoneMatch?: string | undefined }

/**
 * Makes the files of a page from packages for browsers. They are compressed at the first request, in a folder that the hash of all files
 * names. `sources` are the texts by name. Links to source maps are removed, because the maps are not served.
 */
export function browserFiles(sources: Readonly<Record<string, string>>) {
  const hash = createHash('sha256')
  const files = new Map<string, { readonly type: string; readonly bytes: ReturnType<typeof compressedOnce> }>()
  for (const [name, source] of Object.entries(sources)) {
    const text = source.replace(/^(?:\/\/|\/\*)# sourceMappingURL=.*$/gm, '')
    hash.update(`${name}\0${text}\0`)
    files.set(name, { type: mediaTypeOf(name), bytes: compressedOnce(Buffer.from(text)) })
  }
  const version = hash.digest('hex').slice(0, 16)
  return {
    /** The hash of all files, which names their folder. */
    version,
    /** Returns the response to `{version}/{name}`, or null when there is no such file. */
    async respond(path: string, { acceptEncoding, ifNoneMatch }: FileRequest) {
      const slash = path.indexOf('/')
      const file = files.get(path.slice(slash + 1))
      if (file === undefined) return null
      const encoding = encodingFor(acceptEncoding)
      const etag = `"${version}-${encoding}"`
      // A page of an older or newer instance names another version: it gets these files, but may not cache them.
      const isCurrent = path.slice(0, slash) === version
      const headers = {
        Vary: 'Accept-Encoding',
        ...siteFileHeaders,
        'Cache-Control': isCurrent ? 'public, max-age=31536000, immutable' : 'no-cache',
        ETag: etag,
      }
      if (matchesIfNoneMatch(ifNoneMatch, etag)) return { status: 304, headers, body: Buffer.alloc(0) }
      const body = await file.bytes(encoding)
      const own = {
        'Content-Type': file.type,
        'Content-Length': String(body.length),
        ...(encoding !== 'identity' && { 'Content-Encoding': encoding }),
      }
      return { status: 200, headers: { ...headers, ...own }, body }
    },
  }
}

/** Headers of a file that only pages of its own site use. */
export const siteFileHeaders = {
  'X-Content-Type-Options': 'nosniff',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Content-Security-Policy': "default-src 'none'; sandbox",
} as const

/** Returns the media type of a file of a page by the end of its name. */
export function mediaTypeOf(name: string): string {
  const types = { css: 'text/css', html: 'text/html', js: 'text/javascript', svg: 'image/svg+xml' }
  return `${types[name.split('.').at(-1) as keyof typeof types]}; charset=utf-8`
}
