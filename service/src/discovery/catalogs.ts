/** The catalogs of the interfaces, for machines that know only the host. */
import type { HostUrls, Instance } from './instance.ts'

export const apiCatalogPath = '/.well-known/api-catalog'
export const apiCatalogType = 'application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"'

/** `/.well-known/api-catalog` (RFC 9727): each interface with its description, documentation and status (RFC 8631). */
export function apiCatalog({ verification, gateway, graphql }: HostUrls) {
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
  const requirements = { 'service-meta': [{ href: `${gateway}/.well-known/x402`, type: 'application/json' }] }
  return {
    linkset: [
      entry(`${verification}/`, openApi, 'rest-api', verification),
      entry(`${gateway}/verify`, `${gateway}/openapi.json`, 'gateway', gateway, requirements),
      entry(`${graphql}/graphql`, openApi, 'graphql', graphql),
      entry(`${verification}/mcp`, `${verification}/.well-known/mcp.json`, 'agents', verification),
      entry(`${verification}/a2a`, `${verification}/.well-known/agent-card.json`, 'agents', verification),
    ],
  }
}

/** `/.well-known/ai-catalog.json` (AI Catalog 1.0 of the Agent Card working group): the cards of the MCP server and the A2A agent. */
export function aiCatalog({ urls, operator }: Instance) {
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
