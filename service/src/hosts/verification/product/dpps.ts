/**
 * The read side of EN 18222, the EU's API for product passports. Its routes are GET /dpps/{dppId}, …/elements/{elementPath},
 * /dppsByProductId/{productId}, /dppsByProductIdAndDate/{productId}, /dppsByIdAndDate/{dppId} and POST /dppsByProductIds. Identifiers in a
 * path are percent-encoded.
 */
import type { Context, Hono } from 'hono'
import { decodePercent } from '../../../lib/bytes.ts'
import { etagOf } from '../../../http/etag.ts'
import type { Quota } from '../../../http/rate-limit/limiter.ts'
import {
  methodRefused,
  openToAll,
  preflight,
  quotaHeaders,
  rateLimitMessage,
  taggedResponse,
} from '../../../http/responses.ts'
import { formatSecond } from '../../../domain/text.ts'
import { mapConcurrently } from '../../../lib/async/concurrency.ts'
import { ServiceError } from '../../../lib/errors.ts'
import { isObject, parseJson } from '../../../lib/json.ts'
import { didOf } from '../../../passport/did-document.ts'
import { digitalProductPassport, productDocument } from '../../../passport/public/document.ts'
import { elementAt, parseElementPath } from '../../../passport/public/element-path.ts'
import { parsePassportId, parseProductId, subjectLinks, type ProductSubject } from '../../../passport/public/subject.ts'
import { parseMoment } from '../../../passport/public/versions.ts'
import {
  rawQuery,
  readBodyOf,
  readRoute,
  tooFewLeftMessage,
  type Env,
  type Headers,
  type RequestHelpers,
} from '../request.ts'
import { hasProduct, readProduct, type ProductRecord, type ProductSite } from './records.ts'
import { callerOf, type Caller, type KeyAccess } from './access.ts'
import { faultResult, result, type Reason } from './result.ts'
import { parseRawQuery } from '../../../tap/parameters.ts'

export type DppRoutes = ProductSite & {
  /** API keys that read the access tiers. Left out: everyone is the public. */
  readonly keyAccess?: KeyAccess | undefined
}

/** Each route: the identifier that its path begins with, and whether it takes a date. */
const routes = {
  '/dpps/': { parse: parsePassportId, dated: false },
  '/dppsByIdAndDate/': { parse: parsePassportId, dated: true },
  '/dppsByProductId/': { parse: parseProductId, dated: false },
  '/dppsByProductIdAndDate/': { parse: parseProductId, dated: true },
} as const

export function dppRoutes(app: Hono<Env>, helpers: RequestHelpers, site: DppRoutes): void {
  const { baseUrl, limiter, keyAccess, now = Date.now } = site

  for (const [prefix, { parse, dated }] of Object.entries(routes))
    readRoute(app, helpers, { prefix, limiter, headers: vary, reject: faultResult }, async (c, headers) => {
      const caller = await callerOf(c, helpers, keyAccess)
      if (!caller.ok) return caller.response(headers)
      const [idText = '', ...rest] = c.req.path.slice(prefix.length).split('/', 20)
      const subject = parse(baseUrl, decodePercent(idText) ?? '')
      if (subject === null) return result('badIdentifier', headers)
      const query = parseQuery(rawQuery(c), dated)
      if (typeof query === 'string') return result(query, headers)
      const path = prefix === '/dpps/' && rest[0] === 'elements' ? decodePercent(rest.slice(1).join('/')) : undefined
      if (path === null) return result('badElementPath', headers)
      if (path === undefined && rest.length > 0) return result('notFound', headers)
      return passportResponse(c, subject, { ...query, path, caller }, headers)
    })

  async function passportResponse(
    c: Context<Env>,
    subject: ProductSubject,
    {
      at,
      compressed,
      path,
      caller,
    }: Query & { readonly path: string | undefined; readonly caller: Caller & { ok: true } },
    headers: Headers,
  ): Promise<Response> {
    const steps = path === undefined ? undefined : parseElementPath(path)
    if (steps === null) return result('badElementPath', headers)
    const record = await readProduct(site, subject, {
      history: true,
      access: caller.access,
      ...(at !== undefined && { at }),
    })
    if (record === null) return result('notFound', headers)
    // Another version may begin in a block after the one that is read.
    const readTo = Math.min(...record.items.map(({ block }) => Number(block.timestamp ?? 0n)))
    if (at !== undefined && at > readTo)
      return at * 1000 > now() ? result('badDate', headers) : notReadYet({ at, readTo }, headers)
    const respond = (document: object, type: string) => documentResponse(c, document, type, headers, caller.isKeyed)
    if (compressed && steps === undefined)
      return respond(productDocument({ baseUrl, subject, ...record }), 'application/ld+json')
    const passport = digitalProductPassport({ baseUrl, subject, ...record }, headerOf(record))
    if (steps === undefined) return respond(passport, 'application/json')
    const element = elementAt(passport.elements, steps)
    return element === null ? result('noElement', headers) : respond(element, 'application/json')
  }

  /** A model or a batch is made of its readable items. Where there is none, its passport has no facts and is invalid. */
  function headerOf({ isRecycled, evidence, items }: ProductRecord) {
    const used = evidence.length > 0 ? evidence : items
    const changes = used.map(({ version }) => Number(version?.event.timestamp ?? 0n))
    const isInvalid = evidence.length === 0 || evidence.some(({ matches }) => matches === false)
    return {
      status: isInvalid ? 'invalid' : isRecycled ? 'inactive' : 'active',
      lastUpdate: Math.max(0, ...changes),
      economicOperatorId: didOf(baseUrl),
    } as const
  }

  app.options(manyPath, () => preflight('POST, OPTIONS'))
  // Each identifier counts in the budget of keyless reads. A list that does not fit into it consumes one request and is not looked up.
  app.all(manyPath, async (c) => {
    const quota = await helpers.consume(c, limiter)
    const headers = { ...vary, ...quotaHeaders(quota) }
    if (c.req.method !== 'POST') return methodRefused('POST, OPTIONS', headers)
    if (quota?.allowed === false) return limited(quota, rateLimitMessage(quota))
    try {
      const caller = await callerOf(c, helpers, keyAccess)
      if (!caller.ok) return caller.response(headers)
      const most = Math.min(mostIds, quota?.limit ?? mostIds)
      const ids = await readIds(c, most)
      if (ids === null) {
        const message = `The body must be {"productIds": […]} with 1 to ${most} identifiers.`
        return faultResult(new ServiceError('INVALID_ARGUMENT', message), headers)
      }
      const after = await helpers.consumeMore(c, limiter, { quota, more: ids.length - 1 })
      if (after?.allowed === false) return limited(after, tooFewLeftMessage('identifier', after))
      const results = await mapConcurrently(ids, idsAtOnce, matchOf)
      const spent = { ...vary, ...quotaHeaders(after) }
      return documentResponse(c, { results }, 'application/json', spent, caller.isKeyed)
    } catch (error) {
      return faultResult(helpers.faultOf(error, c), headers)
    }
  })

  async function matchOf(productId: string) {
    const subject = parseProductId(baseUrl, productId)
    const isKnown = subject !== null && (await hasProduct(site, subject))
    return {
      productId,
      ...(isKnown && { digitalProductPassportId: subjectLinks(baseUrl, subject).passport }),
    }
  }
}

const manyPath = '/dppsByProductIds'
const mostIds = 100
/** Reads of items that begin together are one call to the chain. So an answer waits for few calls. */
const idsAtOnce = 25
const vary = { Vary: 'Accept, Authorization' } as const

function limited(quota: Quota, message: string): Response {
  const headers = { ...vary, ...quotaHeaders(quota), 'Retry-After': String(quota.resetSeconds) }
  return faultResult(new ServiceError('RATE_LIMITED', message), headers)
}

/** Answers a moment after the newest block that is read. Blocks come as time passes, so that the difference is the time to wait. */
function notReadYet({ at, readTo }: { readonly at: number; readonly readTo: number }, headers: Headers): Response {
  const message = `The chain is read up to ${formatSecond(readTo)}. Ask for a later moment again, or leave the date out for the present.`
  const wait = { 'Retry-After': String(at - readTo) }
  return faultResult(new ServiceError('HISTORY_UNAVAILABLE', message), { ...headers, ...wait })
}

/** Reads the identifiers of a body `{"productIds": [...]}`, at most `most`; null for every other body. */
async function readIds(c: Context<Env>, most: number): Promise<readonly string[] | null> {
  const body = await readBodyOf(c, { maxBytes: 65_536, timeoutMs: 5_000 })
  const value = body.ok ? parseJson(body.text) : undefined
  const ids = isObject(value) ? value['productIds'] : undefined
  if (!Array.isArray(ids) || ids.length === 0 || ids.length > most) return null
  const isId = (id: unknown): id is string => typeof id === 'string' && id.length <= 500 && id.isWellFormed()
  return ids.every(isId) ? ids : null
}

type Query = { readonly at: number | undefined; readonly compressed: boolean }

/** Parses the query, or names what is wrong with it. */
function parseQuery(query: string, dated: boolean): Query | Reason {
  const parameters = parseRawQuery(query)
  // A parameter that is sent twice reads as neither of its values.
  const representation = parameters.has('representation') ? parameters.getAll('representation').join() : 'full'
  if (representation !== 'full' && representation !== 'compressed') return 'badRepresentation'
  const compressed = representation === 'compressed'
  if (!dated) return { at: undefined, compressed }
  const at = parseMoment(parameters.getAll('date').join())
  return at === null ? 'badDate' : { at, compressed }
}

/** Sends a document. An answer to a key is for its holder alone: no cache keeps it, and no page of another origin reads it. */
function documentResponse(
  c: Context<Env>,
  document: object,
  type: string,
  headers: Headers,
  isKeyed: boolean,
): Response {
  const audience = isKeyed ? { 'Cache-Control': 'private, no-store' } : { ...openToAll, 'Cache-Control': 'no-store' }
  const shared = { ...headers, ...audience, ETag: etagOf(document) }
  return taggedResponse(c.req.header('if-none-match'), JSON.stringify(document), shared, { 'Content-Type': type })
}
