/** Every URL by which the service names an item, below the configured base URL (spec §4.5, §4.6). No tap parameter is ever part of one. */
import { classPath, itemPath, type ItemKey } from './digital-link.ts'

/** What an item is called by: its token, and its GTIN and serial when it has them. */
export type ItemNames = { readonly tokenId: bigint; readonly item: ItemKey | null }

/** `baseUrl` is an http or https origin without trailing slash, from the configuration, never from a `Host` header. */
export function linksOf(baseUrl: string, { tokenId, item }: ItemNames) {
  const path = item === null ? `/token/${tokenId}` : itemPath(item)
  return {
    /** The human page; for an item with a GTIN this is its Digital Link. */
    page: `${baseUrl}${path}`,
    /** The credential; the GTIN form is the canonical one on both routes. */
    passport: `${baseUrl}/api/dpp${path}`,
    /** The keyless verdict. */
    verdict: `${baseUrl}/api/asset/${tokenId}`,
  }
}

export function classLink(baseUrl: string, gtin: string): string {
  return `${baseUrl}${classPath(gtin)}`
}

/** The document of the service's own JSON-LD terms. */
export function contextUrl(baseUrl: string): string {
  return `${baseUrl}/contexts/passport/v1`
}

export function vocabularyUrl(baseUrl: string): string {
  return `${baseUrl}/ns/passport`
}

export function unspecifiedFacilityUrl(baseUrl: string): string {
  return `${baseUrl}/ns/unspecified-facility`
}
