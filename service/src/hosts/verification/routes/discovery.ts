/** The documents that describe the service to machines (catalogs, OpenAPI, llms.txt, robots.txt), and `/health`. */
import type { Hono } from 'hono'
import type { DiscoveryDocuments } from '../../../discovery/documents.ts'
import { livenessBody, openToAll } from '../../../http/responses.ts'
import { documentRoute, freeRoute, type Env } from '../request.ts'

export type DiscoveryRoutes = {
  readonly discovery?: DiscoveryDocuments | undefined
}

export function discoveryRoutes(app: Hono<Env>, { discovery = new Map() }: DiscoveryRoutes): void {
  for (const [path, document] of discovery) documentRoute(app, path, document)
  freeRoute(app, '/health', () => new Response(livenessBody(), { headers: livenessHeaders }))
}

const livenessHeaders = {
  ...openToAll,
  'Content-Type': 'application/json',
  'Cache-Control': 'no-store',
  'X-Content-Type-Options': 'nosniff',
}
