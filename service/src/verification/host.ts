/**
 * The verification host {base_url}: the list of its routes. Each route's file says how it answers and how its failures look.
 */
import { getRequestListener } from '@hono/node-server'
import { Hono } from 'hono'
import type { RequestListener } from 'node:http'
import type { ClientKey } from '../http/client-key.ts'
import type { RateLimiter } from '../http/rate-limit.ts'
import { asProblem, wantsProblem } from '../http/problem.ts'
import { identified } from '../http/request-id.ts'
import { failure } from '../http/respond.ts'
import type { Log } from '../log.ts'
import { mcpListener, type McpListener } from '../agents/mcp.ts'
import { a2aRoutes, type A2aRoutes } from './a2a-routes.ts'
import { agentRoutes, type AgentRoutes } from './agent-routes.ts'
import { assetRoutes, type AssetRoutes } from './asset.ts'
import { discoveryRoutes, type DiscoveryRoutes } from './discovery-routes.ts'
import { docsRoutes, type DocsSite } from './docs-routes.ts'
import { createEdge, rawPath, type Env } from './edge.ts'
import { fastPath } from './fast-path.ts'
import { metadataRoutes, type MetadataRoutes } from './metadata-route.ts'
import { pageRoutes, type PageRoutes } from './page-routes.ts'
import { passportRoutes, type PassportRoutes } from './passport-routes.ts'
import { statusRoutes, type StatusRoutes } from './passport-status.ts'
import { verifyRoutes, type VerifyRoutes } from './verify.ts'
import { wellKnownRoutes, type WellKnownRoutes } from './well-known-routes.ts'

type AgentDoors = A2aRoutes &
  AgentRoutes & { readonly mcp: Pick<McpListener, 'tools' | 'identity' | 'origins' | 'limiter' | 'otherLimiter'> }

export type VerificationHost = AssetRoutes &
  VerifyRoutes &
  PassportRoutes &
  StatusRoutes &
  MetadataRoutes &
  PageRoutes &
  WellKnownRoutes &
  DiscoveryRoutes &
  DocsSite & {
    /** MCP, A2A and the agent registry. Left out: the host has none. */
    readonly doors?: AgentDoors | undefined
    /** Left out: no limit. Keyless reads and taps have budgets of their own. */
    readonly limiter?: RateLimiter | undefined
    readonly tapLimiter?: RateLimiter | undefined
    readonly clientKey: ClientKey
    readonly log: Log
  }

/** The routes as a Hono app; `app.request()` asks it without a socket. */
export function verificationHost(host: VerificationHost): Hono<Env> {
  const app = new Hono<Env>({ getPath: rawPath, strict: true })
  const edge = createEdge(host)
  assetRoutes(app, edge, host)
  verifyRoutes(app, edge, host)
  passportRoutes(app, edge, host)
  statusRoutes(app, edge, host)
  metadataRoutes(app, edge, host)
  wellKnownRoutes(app, host)
  discoveryRoutes(app, host)
  if (host.doors !== undefined) {
    a2aRoutes(app, edge, host.doors)
    agentRoutes(app, edge, host.doors)
  }
  docsRoutes(app, host)
  pageRoutes(app, edge, host)
  app.notFound(() => failure(404, { error: 'There is nothing at this path. A verdict is at /api/asset/{tokenId}.' }))
  app.onError((error, c) => failure(500, { error: edge.faultOf(error, c).message }))
  return app
}

/** The host as a listener of `node:http`, with the fast path in front. */
export function verificationListener(host: VerificationHost): RequestListener {
  const app = verificationHost(host)
  const errorCodes = `${host.baseUrl}/docs/error-codes`
  const router = getRequestListener(
    (request, env) => {
      const answer = app.fetch(request, env)
      return wantsProblem(env.incoming.headers.accept) ? asProblem(answer, errorCodes) : answer
    },
    { errorHandler: unreadable },
  )
  const { clientKey, log, doors } = host
  const rest = identified((request, response) => void router(request, response))
  return fastPath(host, doors === undefined ? rest : mcpListener({ ...doors.mcp, clientKey, log }, rest))
}

/** A request that cannot be made into a URL at all. */
function unreadable(): Response {
  return failure(400, { error: 'The request target or its Host is not valid.' })
}
