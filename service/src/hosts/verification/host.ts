/** The verification host {base_url}: its routes in the order of the specification. Each file below documents its own answers and failures. */
import { getRequestListener } from '@hono/node-server'
import { Hono } from 'hono'
import type { RequestListener } from 'node:http'
import { mcpListener, type McpListener } from '../../agents/mcp/endpoint.ts'
import { asProblem, wantsProblem } from '../../http/problem-details.ts'
import { identified } from '../../http/request.ts'
import { errorResponse } from '../../http/responses.ts'
import { compressedRoutes } from './compressed.ts'
import { docsRoutes } from './docs/routes.ts'
import type { DocsSite } from './docs/sources.ts'
import { fastPath } from './fast-path.ts'
import { pageRoutes, type PageRoutes } from './pages/routes.ts'
import { pathNotFound } from './pages/visit.ts'
import { passportRoutes, type PassportRoutes } from './passport/routes.ts'
import { statusRoutes, type StatusRoutes } from './passport/status.ts'
import { dppRoutes, type DppRoutes } from './product/dpps.ts'
import { restrictedRoutes, type RestrictedRoutes } from './product/restricted.ts'
import type { ProductSite } from './product/records.ts'
import { productRoutes } from './product/routes.ts'
import { createRequestHelpers, rawPath, type ClientSite, type Env } from './request.ts'
import { a2aRoutes, type A2aRoutes } from './routes/a2a.ts'
import { agentRoutes, type AgentRoutes } from './routes/agents.ts'
import { assetRoutes, type AssetRoutes } from './routes/asset.ts'
import { discoveryRoutes, type DiscoveryRoutes } from './routes/discovery.ts'
import { metadataRoutes, type MetadataRoutes } from './routes/metadata.ts'
import { verifyRoutes, type VerifyRoutes } from './routes/verify.ts'
import { wellKnownRoutes, type WellKnownRoutes } from './routes/well-known.ts'

type AgentInterfaces = A2aRoutes &
  AgentRoutes & { readonly mcp: Pick<McpListener, 'tools' | 'identity' | 'origins' | 'limiter' | 'otherLimiter'> }

export type VerificationHost = AssetRoutes &
  VerifyRoutes &
  PassportRoutes &
  ProductSite &
  DppRoutes &
  RestrictedRoutes &
  StatusRoutes &
  MetadataRoutes &
  PageRoutes &
  WellKnownRoutes &
  DiscoveryRoutes &
  DocsSite &
  ClientSite & {
    /** MCP, A2A and the agent registry. Left out: the host has none. */
    readonly agents?: AgentInterfaces | undefined
  }

/** Returns the routes as a Hono app; `app.request()` needs no socket. */
export function verificationHost(host: VerificationHost): Hono<Env> {
  const app = new Hono<Env>({ getPath: rawPath, strict: true })
  const helpers = createRequestHelpers(host)
  compressedRoutes(app)
  assetRoutes(app, helpers, host) // §4.1  /api/asset/{tokenId}, …/proof
  if (host.agents !== undefined) {
    a2aRoutes(app, helpers, host.agents) // §4.3  /a2a/v1/…
    agentRoutes(app, helpers, { ...host.agents, issuer: host.issuer }) // §4.3  /api/agent, /api/agents/{agentId}, agent card
  }
  verifyRoutes(app, helpers, host) // §4.4  /api/verify
  passportRoutes(app, helpers, host) // §4.5  /api/dpp/01/{gtin}/21/{serial}, /api/dpp/token/{tokenId}
  productRoutes(app, helpers, host) // §4.5  /api/product/…
  dppRoutes(app, helpers, host) // §4.5  /dpps/…, /dppsByProductId/… (EN 18222)
  restrictedRoutes(app, helpers, host) // /api/restricted/{hash} (EN 18239)
  pageRoutes(app, helpers, host) // §4.5, §4.6  /, /01/…, /token/{tokenId}, /assets/…
  metadataRoutes(app, helpers, host) // §2.8  /api/metadata/{hash}
  wellKnownRoutes(app, host) // §2.8  did:web, GS1 resolver, JSON-LD context and vocabulary
  statusRoutes(app, helpers, host) // §9  /api/status/{purpose}/{list}
  discoveryRoutes(app, host) // §9  catalogs, OpenAPI, llms.txt, /health
  docsRoutes(app, helpers, host) // §9  /docs
  app.notFound((c) => pathNotFound(c))
  app.onError((error, c) => {
    const { status, message } = helpers.faultOf(error, c)
    return errorResponse(status, message)
  })
  return app
}

/** Returns the host as a listener of `node:http`, with the fast path in front. MCP (§4.2) is a listener of its own. */
export function verificationListener(host: VerificationHost): RequestListener {
  const app = verificationHost(host)
  const errorCodes = `${host.baseUrl}/docs/error-codes`
  const router = getRequestListener(
    (request, env) => {
      const answer = app.fetch(request, env)
      return wantsProblem(env.incoming.headers.accept) ? asProblem(answer, errorCodes) : answer
    },
    // An HTTP/1.0 request may leave its Host out; the name is for Hono's URL only.
    {
      hostname: 'localhost',
      errorHandler: () => errorResponse(400, 'The request target or its Host is not valid.'),
    },
  )
  const { clientKey, log, agents } = host
  const rest = identified((request, response) => {
    request.url = withoutBackslashes(request.url ?? '')
    void router(request, response)
  })
  return fastPath(host, agents === undefined ? rest : mcpListener({ ...agents.mcp, clientKey, log }, rest))
}

/** Encodes backslashes in the path. Hono's adapter refuses them before a route could answer in its own form, within its quota. */
function withoutBackslashes(target: string): string {
  return target.includes('\\') ? target.replace(/^[^?]*/, (path) => path.replaceAll('\\', '%5C')) : target
}
