/** Request targets as they come over the wire (RFC 9112 §3.2), not decoded: URL parsers remove dot segments and decode. */

export type RequestTarget = {
  readonly path: string
  /** The text after the question mark, or ''. Never log it: it may hold a cryptogram. */
  readonly query: string
}

/** Splits a request target. An absolute target loses its origin (RFC 9112 §3.2.2); an empty path is `/`. */
export function parseRequestTarget(target: string): RequestTarget {
  const at = target.indexOf('?')
  const path = pathOf(at < 0 ? target : target.slice(0, at))
  return { path, query: at < 0 ? '' : target.slice(at + 1) }
}

function pathOf(text: string): string {
  return text.startsWith('/') ? text : text.replace(/^https?:\/\/[^/]*/i, '') || '/'
}
