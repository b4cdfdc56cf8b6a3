/** Every document by which a machine that knows only the host finds the rest: made once, at the start, with the URLs of this instance. */
import type { Hex } from '@touchstone/verdict'
import { staticDocument, type StaticDocument } from '../http/static-document.ts'
import { apiCatalog, apiCatalogPath, apiCatalogType } from './api-catalog.ts'
import { aiCatalog } from './discovery-ai.ts'
import { llmsText } from './llms.ts'
import { llmsFullText } from './llms-full.ts'
import { openApiText, type HostUrls } from './openapi-file.ts'
import { robotsText } from './robots.ts'
import { securityText } from './security-txt.ts'
import { sitemap } from './sitemap.ts'

/** A page of the documentation; its path is below the verification host, its Markdown at the same path with `.md`. */
export type DocPage = { readonly path: string; readonly title: string }

export type Discovery = {
  /** Origins, without a slash at the end. */
  readonly urls: HostUrls
  /** Whoever runs the service. */
  readonly operator: string
  /** EIP-55 checksummed. */
  readonly contract: Hex
  /** A provider that anyone may ask. */
  readonly rpcUrl: string
  /** A token for examples; it need not exist. */
  readonly exampleTokenId: bigint
  readonly docs: readonly DocPage[]
  /** `mailto:` or `https:` for reports of vulnerabilities; null: there is no security.txt. */
  readonly securityContact: string | null
  readonly startedAt: Date
}

/** By path. */
export type DiscoveryDocuments = ReadonlyMap<string, StaticDocument>

/** Throws when the description of the interface is missing among the files of the program. */
export function discoveryDocuments(of: Discovery): DiscoveryDocuments {
  const { urls, docs, securityContact, startedAt } = of
  const base = urls.verification
  const text = 'text/plain; charset=utf-8'
  const catalogLink = { Link: `<${base}${apiCatalogPath}>; rel="api-catalog"` } // RFC 9727 §2
  return new Map([
    [apiCatalogPath, staticDocument(apiCatalogType, JSON.stringify(apiCatalog(urls)), catalogLink)],
    ['/.well-known/ai-catalog.json', staticDocument('application/ai-catalog+json', JSON.stringify(aiCatalog(of)))],
    ...(securityContact === null
      ? []
      : [['/.well-known/security.txt', staticDocument(text, securityText(base, securityContact, startedAt))] as const]),
    ['/openapi.json', staticDocument('application/json', openApiText(urls))],
    ['/robots.txt', staticDocument(text, robotsText(base))],
    ['/sitemap.xml', staticDocument('application/xml', sitemap(base, docs))],
    ['/llms.txt', staticDocument(text, llmsText(of))],
    ['/llms-full.txt', staticDocument(text, llmsFullText(of))],
  ])
}

/** The `Link` header of the start page (RFC 9727 §3, RFC 8631). */
export const homeLinks =
  '</.well-known/api-catalog>; rel="api-catalog", </openapi.json>; rel="service-desc"; type="application/json", ' +
  '</docs>; rel="service-doc"; type="text/html", </llms.txt>; rel="describedby"; type="text/plain"'
