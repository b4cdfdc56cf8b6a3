/** The documents that describe the service to machines (catalogs, OpenAPI, llms.txt, robots.txt), and `/health`. */
import type { Hono } from 'hono'
import type { DiscoveryDocuments } from '../../../discovery/documents.ts'
import { livenessBody, methodRefused, openToAll, preflight, readMethods } from '../../../http/responses.ts'
import { documentRoute, isRead, type Env } from '../request.ts'

export type DiscoveryRoutes = {
  readonly discovery?: DiscoveryDocuments | undefined
}

export function discoveryRoutes(app: Hono<Env>, { discovery = new Map() }: DiscoveryRoutes): void {
  for (const [path, document] of discovery) documentRoute(app, path, document)
  app.options('/health', () => preflight(readMethods))
  app.all('/health', (c) => {
    if (!isRead(c.req.method)) return methodRefused(readMethods)
    return new Response(livenessBody(), { headers: livenessHeaders })
  })
}

const livenessHeaders = {
  ...openToAll,
  'Content-Type': 'application/json',
  'Cache-Control': 'no-store',
  'X-Content-Type-Options': 'nosniff',
}
