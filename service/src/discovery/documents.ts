/** The documents that describe the service to machines, built once at start with the URLs of this instance. */
import { staticDocument, type StaticDocument } from '../http/static-document.ts'
import type { DocPage, Instance, NamedHosts } from './instance.ts'
import { llmsFullText, llmsText } from './llms.ts'
import { openApiDocument } from './openapi.ts'
import { formatSecond } from '../domain/text.ts'

const apiCatalogPath = '/.well-known/api-catalog'
const apiCatalogType = 'application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"'

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
    ['/openapi.json', openApiDocument(urls)],
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

/** `/.well-known/api-catalog` (RFC 9727): each interface with its description, documentation and status (RFC 8631). */
function apiCatalog({ verification, gateway, graphql }: NamedHosts) {
  const entry = (anchor: string, description: string, page: string, status: string, more: object = {}) => ({
    anchor,
    'service-desc': [{ href: description, type: 'application/json' }],
    'service-doc': [
      { href: `${verification}/docs/${page}`, type: 'text/html' },
      { href: `${verification}/docs/${page}.md`, type: 'text/markdown' },
    ],
    ...more,
    status: [{ href: `${status}/health`, type: 'application/json' }],
  })
  const openApi = `${verification}/openapi.json`
  const sale = (gateway: string) =>
    entry(`${gateway}/verify`, `${gateway}/openapi.json`, 'gateway', gateway, {
      'service-meta': [{ href: `${gateway}/.well-known/x402`, type: 'application/json' }],
    })
  return {
    linkset: [
      entry(`${verification}/`, openApi, 'rest-api', verification),
      ...(gateway === null ? [] : [sale(gateway)]),
      entry(`${graphql}/graphql`, openApi, 'graphql', graphql),
      entry(`${verification}/mcp`, `${verification}/.well-known/mcp.json`, 'agents', verification),
      entry(`${verification}/a2a`, `${verification}/.well-known/agent-card.json`, 'agents', verification),
    ],
  }
}

/** `/.well-known/ai-catalog.json` (AI Catalog 1.0 of the Agent Card working group): the cards of the MCP server and the A2A agent. */
function aiCatalog({ urls, operator }: Instance) {
  const base = urls.verification
  const name = `urn:air:${new URL(base).hostname}:asset-verification`
  return {
    specVersion: '1.0',
    host: { displayName: operator, documentationUrl: `${base}/docs` },
    entries: [
      { identifier: `${name}:mcp`, type: 'application/mcp-server-card+json', url: `${base}/mcp/server-card` },
      {
        identifier: `${name}:a2a`,
        type: 'application/a2a-agent-card+json',
        url: `${base}/.well-known/agent-card.json`,
      },
    ],
  }
}

/** `/robots.txt` (RFC 9309): excludes taps, and the endpoints that only take POST. Pages of items have a robots header of their own. */
function robotsText(baseUrl: string): string {
  return `User-agent: *
Disallow: /api/verify
Disallow: /api/dpp/
Disallow: /*picc=
Disallow: /mcp
Allow: /mcp/server-card
Allow: /

Sitemap: ${baseUrl}/sitemap.xml
`
}

/** A service that was not restarted for a year is probably not maintained. */
const validDays = 364

/** `/.well-known/security.txt` (RFC 9116): the contact for reports of vulnerabilities. */
function securityText(baseUrl: string, contact: string, startedAt: Date): string {
  const expires = Math.floor(startedAt.getTime() / 1_000) + validDays * 86_400
  return `Contact: ${contact}
Expires: ${formatSecond(expires)}
Preferred-Languages: en
Canonical: ${baseUrl}/.well-known/security.txt
`
}

/** `/sitemap.xml` (sitemaps.org 0.9): the documentation. Pages of items are not indexed. */
function sitemap(baseUrl: string, docs: readonly DocPage[]): string {
  const urls = docs.map(({ path }) => `<url><loc>${escapeXml(baseUrl + path)}</loc></url>`)
  return `<?xml version="1.0" encoding="UTF-8"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
${urls.join('\n')}
</urlset>
`
}

function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
