/** Documents for machines that know only the host: catalogs, OpenAPI, llms.txt, robots.txt and the like; and `/health`. */
import type { Hono } from 'hono'
import type { DiscoveryDocuments } from '../agents/discovery.ts'
import { livenessBody } from '../http/health.ts'
import { methodRefused, openToAll, preflight } from '../http/respond.ts'
import { documentResponse, staticMethods } from '../http/static-document.ts'
import type { Env } from './edge.ts'

export type DiscoveryRoutes = {
  /** Left out: the host has none. */
  readonly discovery?: DiscoveryDocuments | undefined
}

export function discoveryRoutes(app: Hono<Env>, { discovery = new Map() }: DiscoveryRoutes): void {
  for (const [path, document] of discovery) {
    app.options(path, () => preflight(staticMethods))
    app.all(path, (c) => documentResponse(document, c.req.method, c.req.header('if-none-match')))
  }
  app.options('/health', () => preflight(staticMethods))
  app.all('/health', (c) => {
    if (!['GET', 'HEAD'].includes(c.req.method)) return methodRefused(staticMethods)
    return new Response(livenessBody(), { headers: { ...openToAll, ...live } })
  })
}

const live = {
  'Content-Type': 'application/json',
  'Cache-Control': 'no-store',
  'X-Content-Type-Options': 'nosniff',
} as const
