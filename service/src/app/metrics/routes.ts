/** Route names of the request metrics, host by host: a closed list, so that the number of series is bounded. */
import type { RouteNames } from '../../http/metrics.ts'
import type { HostName } from '../../discovery/instance.ts'

/** Busiest first: the first prefix that matches counts. A path that matches none is `other`. */
export const routeNames: Readonly<Record<HostName, RouteNames>> = {
  verification: [
    ['/api/asset/', 'asset'],
    ['/api/verify', 'tap'],
    ['/api/dpp/', 'passport'],
    ['/mcp', 'mcp'],
    ['/01/', 'item-page'],
    ['/token/', 'token-page'],
    ['/assets/', 'page-file'],
    ['/', 'home'],
    ['/a2a', 'a2a'],
    ['/a2a/', 'a2a'],
    ['/api/metadata/', 'metadata'],
    ['/api/status/', 'status-list'],
    ['/api/agent', 'agent'],
    ['/api/agents/', 'agent'],
    ['/.well-known/', 'well-known'],
    ['/mcp/', 'mcp'],
    ['/docs', 'docs'],
    ['/docs/', 'docs'],
    ['/health', 'health'],
    ['/openapi.json', 'openapi'],
    ['/contexts/', 'vocabulary'],
    ['/ns/', 'vocabulary'],
    ['/llms.txt', 'discovery'],
    ['/llms-full.txt', 'discovery'],
    ['/robots.txt', 'discovery'],
    ['/sitemap.xml', 'discovery'],
  ],
  gateway: [
    ['/verify', 'verify'],
    ['/health', 'health'],
    ['/.well-known/', 'well-known'],
    ['/openapi.json', 'openapi'],
  ],
  graphql: [
    ['/graphql', 'graphql'],
    ['/health', 'health'],
    ['/playground', 'playground'],
    ['/playground/', 'playground'],
  ],
}
