/**
 * Documents that are the same for every item. They are the issuer's did:web document, the GS1 resolver description, the JSON-LD context and
 * vocabulary of the passport (spec §2.8), and the placeholder of a facility that was not specified.
 */
import type { Hono } from 'hono'
import { etagOfText } from '../../../http/etag.ts'
import { openToAll, taggedResponse } from '../../../http/responses.ts'
import { passportContext, unspecifiedFacilityDocument, vocabularyDocument } from '../../../passport/vocabulary.ts'
import { didDocument, didOf } from '../../../passport/did-document.ts'
import { productContext, productVocabulary } from '../../../passport/public/terms.ts'
import { resolverDescription } from '../../../passport/resolver.ts'
import { freeRoute, type Env } from '../request.ts'
import type { Issuer } from '../../../passport/signing/issuer.ts'

export type WellKnownRoutes = {
  readonly baseUrl: string
  readonly issuerName: string
  readonly issuer: Pick<Issuer, 'keys'>
}

type WellKnownDocument = {
  readonly type: string
  readonly cache: string
  readonly build: (site: WellKnownRoutes) => object
}

/** Verifiers need a new key as soon as it signs, and must not trust a revoked one for long. */
export const lifetimeOfKeys = 'public, max-age=60'
const [hour, year] = ['public, max-age=3600', 'public, max-age=31536000, immutable']
const resolver: WellKnownDocument = {
  type: 'application/json',
  cache: hour,
  build: ({ baseUrl, issuerName }) => resolverDescription(baseUrl, issuerName),
}

/** By path. Exported for the test of the description. */
export const documents: Readonly<Record<string, WellKnownDocument>> = {
  '/.well-known/did.json': {
    type: 'application/did+ld+json',
    cache: lifetimeOfKeys,
    build: ({ baseUrl, issuer }) => didDocument({ baseUrl, did: didOf(baseUrl), keys: issuer.keys() }),
  },
  '/.well-known/gs1resolver': resolver,
  '/.well-known/resolver': resolver,
  '/contexts/passport/v1': {
    type: 'application/ld+json',
    cache: year,
    build: ({ baseUrl }) => passportContext(baseUrl),
  },
  '/contexts/product/v1': {
    type: 'application/ld+json',
    cache: hour,
    build: ({ baseUrl }) => productContext(baseUrl),
  },
  '/ns/product': { type: 'application/ld+json', cache: hour, build: ({ baseUrl }) => productVocabulary(baseUrl) },
  '/ns/passport': { type: 'application/ld+json', cache: hour, build: ({ baseUrl }) => vocabularyDocument(baseUrl) },
  '/ns/unspecified-facility': {
    type: 'application/ld+json',
    cache: hour,
    build: ({ baseUrl }) => unspecifiedFacilityDocument(baseUrl),
  },
}

export function wellKnownRoutes(app: Hono<Env>, site: WellKnownRoutes): void {
  for (const [path, { type, cache, build }] of Object.entries(documents))
    freeRoute(app, path, (c) => {
      const body = JSON.stringify(build(site))
      const shared = { ...openToAll, ETag: etagOfText(body), 'Cache-Control': cache }
      return taggedResponse(c.req.header('if-none-match'), body, shared, { 'Content-Type': type })
    })
}
