/** Entity tags (RFC 9110 §8.8.3). */
import { createHash } from 'node:crypto'
import canonicalize from 'canonicalize'

/** Returns `"sha256-…"` over the RFC 8785 form of a document. So the tag does not depend on the document's spacing. */
export function etagOf(document: object): string {
  return etagOfText(canonicalize(document) ?? '')
}

/** Returns `"sha256-…"` over a text that has only one form, such as a JWS. */
export function etagOfText(text: string): string {
  return `"sha256-${createHash('sha256').update(text).digest('hex')}"`
}

/**
 * Returns whether an `If-None-Match` header lists an entity tag, so that the response is 304 (RFC 9110 §13.1.2).
 * The comparison is weak: `W/` is ignored on both sides. `*` matches every tag.
 */
export function matchesIfNoneMatch(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false
  if (ifNoneMatch === etag || ifNoneMatch.trim() === '*') return true
  const opaque = opaqueTag(etag)
  return ifNoneMatch.match(listed)?.some((tag) => opaqueTag(tag) === opaque) ?? false
}

/** A tag may hold commas, so that the header cannot be split at them. */
const listed = /(?:W\/)?"[^"]*"/g

function opaqueTag(etag: string): string {
  return etag.startsWith('W/') ? etag.slice(2) : etag
}
