/** `/.well-known/api-catalog` (RFC 9727): each interface of the service with its description, documentation and status (RFC 8631). */
import type { HostUrls } from './openapi-file.ts'

export const apiCatalogPath = '/.well-known/api-catalog'
export const apiCatalogType = 'application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"'

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
  const offers = { 'service-meta': [{ href: `${gateway}/.well-known/x402`, type: 'application/json' }] }
  return {
    linkset: [
      entry(`${verification}/`, openApi, 'rest-api', verification),
      entry(`${gateway}/verify`, `${gateway}/openapi.json`, 'gateway', gateway, offers),
      entry(`${graphql}/graphql`, openApi, 'graphql', graphql),
      entry(`${verification}/mcp`, `${verification}/.well-known/mcp.json`, 'agents', verification),
      entry(`${verification}/a2a`, `${verification}/.well-known/agent-card.json`, 'agents', verification),
    ],
  }
}
