/** The URLs of an item below the configured base URL (spec §4.5, §4.6). None holds a tap parameter. */
import { itemPath } from './digital-link.ts'
import type { ItemKey } from '../domain/gs1/serial.ts'

/** GS1 Web vocabulary: a link type is `gs1:dpp` in a query, and this namespace plus `dpp` in a linkset. */
export const gs1Vocabulary = 'https://ref.gs1.org/voc/'

/** Returns the path of an item's page. For an item with a GTIN this is its Digital Link. */
export function pagePath(tokenId: bigint | string, item: ItemKey | null): string {
  return item === null ? `/token/${tokenId}` : itemPath(item)
}

/**
 * Returns the links of an item, whose token is a number or decimal text. `baseUrl` is a configured origin without trailing slash, never a
 * `Host` header.
 */
export function linksOf(
  baseUrl: string,
  { tokenId, item }: { readonly tokenId: bigint | string; readonly item: ItemKey | null },
) {
  const path = pagePath(tokenId, item)
  return {
    page: `${baseUrl}${path}`,
    /** The credential; the GTIN form is the canonical one on both routes. */
    passport: `${baseUrl}/api/dpp${path}`,
    verdict: `${baseUrl}/api/asset/${tokenId}`,
  }
}

export function contextUrl(baseUrl: string): string {
  return `${baseUrl}/contexts/passport/v1`
}

export function vocabularyUrl(baseUrl: string): string {
  return `${baseUrl}/ns/passport`
}

export function unspecifiedFacilityUrl(baseUrl: string): string {
  return `${baseUrl}/ns/unspecified-facility`
}
