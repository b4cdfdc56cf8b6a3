/**
 * Documents that do not depend on any item: the issuer's did:web document, the GS1 resolver description, the JSON-LD context and vocabulary
 * of the passport (spec §2.8), and the facility that stands for «not specified».
 */
import type { Hono } from 'hono'
import { matchesETag, methodRefused, openToAll, preflight } from '../http/respond.ts'
import { passportContext } from '../passport/context.ts'
import { didDocument, didOf } from '../passport/did-document.ts'
import { etagOfText } from '../passport/etag.ts'
import { resolverDescription } from '../passport/resolver.ts'
import { unspecifiedFacilityDocument, vocabularyDocument } from '../passport/vocabulary.ts'
import type { Env } from './edge.ts'
import type { Issuer } from './passport-keys.ts'

export type WellKnownRoutes = {
  readonly baseUrl: string
  readonly issuerName: string
  readonly issuer: Pick<Issuer, 'keys'>
}

type Served = { readonly type: string; readonly cache: string; readonly of: (site: WellKnownRoutes) => object }

const [hour, year] = ['public, max-age=3600', 'public, max-age=31536000, immutable']
const resolver: Served = {
  type: 'application/json',
  cache: hour,
  of: ({ baseUrl, issuerName }) => resolverDescription(baseUrl, issuerName),
}

const documents: Readonly<Record<string, Served>> = {
  '/.well-known/did.json': {
    type: 'application/did+ld+json',
    cache: 'public, max-age=60', // a new key must be found when its first signature is
    of: ({ baseUrl, issuer }) => didDocument({ baseUrl, did: didOf(baseUrl), keys: issuer.keys() }),
  },
  '/.well-known/gs1resolver': resolver,
  '/.well-known/resolver': resolver,
  '/contexts/passport/v1': { type: 'application/ld+json', cache: year, of: ({ baseUrl }) => passportContext(baseUrl) },
  '/ns/passport': { type: 'application/ld+json', cache: hour, of: ({ baseUrl }) => vocabularyDocument(baseUrl) },
  '/ns/unspecified-facility': {
    type: 'application/ld+json',
    cache: hour,
    of: ({ baseUrl }) => unspecifiedFacilityDocument(baseUrl),
  },
}

const methods = 'GET, HEAD, OPTIONS'

export function wellKnownRoutes(app: Hono<Env>, site: WellKnownRoutes): void {
  for (const [path, { type, cache, of }] of Object.entries(documents)) {
    app.options(path, () => preflight(methods))
    app.all(path, (c) => {
      if (!['GET', 'HEAD'].includes(c.req.method)) return methodRefused(methods)
      const body = JSON.stringify(of(site))
      const etag = etagOfText(body)
      const shared = { ...openToAll, ETag: etag, 'Cache-Control': cache }
      if (matchesETag(c.req.header('if-none-match'), etag)) return new Response(null, { status: 304, headers: shared })
      return new Response(body, { headers: { ...shared, 'Content-Type': type, 'X-Content-Type-Options': 'nosniff' } })
    })
  }
}
