/** The documents that describe the service to machines, built once at start with the URLs of this instance. */
import { staticDocument, type StaticDocument } from '../http/static-document.ts'
import { aiCatalog, apiCatalog, apiCatalogPath, apiCatalogType } from './catalogs.ts'
import type { Instance } from './instance.ts'
import { llmsFullText, llmsText } from './llms.ts'
import { openApiText } from './openapi.ts'
import { robotsText, securityText, sitemap } from './well-known.ts'

/** Documents by path. */
export type DiscoveryDocuments = ReadonlyMap<string, StaticDocument>

export function discoveryDocuments(instance: Instance): DiscoveryDocuments {
  const { urls, docs, securityContact, startedAt } = instance
  const base = urls.verification
  const text = 'text/plain; charset=utf-8'
  const catalogLink = { Link: `<${base}${apiCatalogPath}>; rel="api-catalog"` } // RFC 9727 §2
  const documents = new Map([
    [apiCatalogPath, staticDocument(apiCatalogType, JSON.stringify(apiCatalog(urls)), catalogLink)],
    [
      '/.well-known/ai-catalog.json',
      staticDocument('application/ai-catalog+json', JSON.stringify(aiCatalog(instance))),
    ],
    ['/openapi.json', staticDocument('application/json', openApiText(urls))],
    ['/robots.txt', staticDocument(text, robotsText(base))],
    ['/sitemap.xml', staticDocument('application/xml', sitemap(base, docs))],
    ['/llms.txt', staticDocument(text, llmsText(instance))],
    ['/llms-full.txt', staticDocument(text, llmsFullText(instance))],
  ])
  if (securityContact !== null)
    documents.set('/.well-known/security.txt', staticDocument(text, securityText(base, securityContact, startedAt)))
  return documents
}

/** The `Link` header of the start page (RFC 9727 §3, RFC 8631). */
export const homeLinks =
  '</.well-known/api-catalog>; rel="api-catalog", </openapi.json>; rel="service-desc"; type="application/json", ' +
  '</docs>; rel="service-doc"; type="text/html", </llms.txt>; rel="describedby"; type="text/plain"'
