/** Strong entity tags of passport documents (RFC 9110 §8.8.3). */
import { createHash } from 'node:crypto'
import canonicalize from 'canonicalize'

/** `"sha256-…"` over the RFC 8785 form, so that the tag can be recomputed from the document alone, whatever its spacing. */
export function etagOf(document: object): string {
  return etagOfText(canonicalize(document) ?? '')
}

/** The same over a text that has only one form, such as a JWS. */
export function etagOfText(text: string): string {
  return `"sha256-${createHash('sha256').update(text).digest('hex')}"`
}
