/**
 * The pages for people (spec §4.5, §4.6): `/`, `/01/{gtin}/21/{serial}`, `/01/{gtin}`, `/token/{tokenId}`, their steps and assets. The server
 * verifies a tap in the address, so that the page is complete without script. HEAD judges a tap and consumes none; OPTIONS and prefetches do
 * neither. An item without a GTIN has its link, and so its tag, at `/token/{tokenId}`: a tap is verified there too, and must be that token's.
 */
import { parseTokenId } from '@touchstone/verdict'
import type { Context, Hono } from 'hono'
import type { Verdicts } from '../../../assets/verdicts.ts'
import { homeLinks } from '../../../discovery/documents.ts'
import type { Quota } from '../../../http/rate-limit/limiter.ts'
import { parseTypedGtin } from '../../../domain/gs1/gtin.ts'
import { isRegistrableSerial } from '../../../domain/gs1/serial.ts'
import { typedText } from '../../../domain/text.ts'
import { methodRefused, preflight, quotaHeaders, readMethods } from '../../../http/responses.ts'
import { hrefIn, type PageContext } from '../../../pages/context.ts'
import type { SearchView } from '../../../pages/search.ts'
import { classPage, homePage, type Example } from '../../../pages/home.ts'
import { hasReportForm, itemPage } from '../../../pages/item/page.ts'
import { faultNotice, type Notice, type TapFate } from '../../../pages/notice.ts'
import { countryOf } from '../../../passport/country.ts'
import { classPath, itemPath, parseDigitalLink, type DigitalLink } from '../../../passport/digital-link.ts'
import { pagePath } from '../../../passport/links.ts'
import { productDocument } from '../../../passport/public/document.ts'
import { resolveTapFor, UnresolvedTap, type TapOutcome } from '../../../tap/resolve-tap.ts'
import { parseRawQuery, parseTapParameters } from '../../../tap/parameters.ts'
import { certificateRoutes, type CertificateSite } from '../certificate/routes.ts'
import { bulkRoute } from '../lookup/bulk.ts'
import { findOfBrand, findText, type LookupResult, type FindSite } from '../lookup/find.ts'
import { readProduct } from '../product/records.ts'
import { linkHeaders, resolveLinkRequest, type LinkSite } from '../passport/links.ts'
import { isRead, parseTokenIdSegment, rawQuery, type Env, type Headers, type RequestHelpers } from '../request.ts'
import type { TapRouteOptions } from '../tap-guard.ts'
import { getTapTokens, isPrefetch, tapCookies, tapCookiesOfFault, tapHeaders } from '../tap-http.ts'
import { themesPrefix } from '../../../pages/brands/theme.ts'
import { assetsPrefix, pageAssets, themeResponse } from './assets.ts'
import { itemViewOf, openedOf, type Found, type ItemSite } from './item.ts'
import { pictureRoutes, withPictures } from './pictures.ts'
import { claimRoute, type ClaimSite } from './claim.ts'
import { offerRoute } from './offer.ts'
import { reportRoute, type ReportSite } from './report.ts'
import { connectTo, pageResponse, seeOther } from './response.ts'
import { transferRoute, type TransferSite } from './transfer.ts'
import { contextOf, noticeResponse, pathNotFound } from './visit.ts'

export type PageRoutes = ItemSite &
  FindSite &
  CertificateSite &
  ReportSite &
  ClaimSite &
  TransferSite &
  LinkSite &
  TapRouteOptions & { readonly verdicts: Pick<Verdicts, 'answer' | 'answers'> }

type Visit = {
  readonly c: Context<Env>
  readonly context: PageContext
  readonly query: string
  readonly quota: Quota | undefined
  /** Headers of the route, with the quota. */
  readonly headers: Headers
  readonly hasTap: boolean
}

/** The meaning of a path: one item, one token, the item of its tap, a class, or a notice. */
type Target = ItemTarget | TapTarget | ClassTarget | NoticeTarget
type ClassTarget = Extract<DigitalLink, { kind: 'class' | 'batch' }>
type ItemTarget = { readonly kind: 'token'; readonly tokenId: bigint } | Extract<DigitalLink, { kind: 'item' }>
type TapTarget = { readonly kind: 'tap' }
type NoticeTarget = { readonly kind: 'notice'; readonly status: 400 | 404; readonly notice: Notice }

export function pageRoutes(app: Hono<Env>, helpers: RequestHelpers, site: PageRoutes): void {
  const assets = pageAssets()

  pictureRoutes(app, helpers, site)
  reportRoute(app, helpers, site)
  claimRoute(app, helpers, site)
  transferRoute(app, helpers, site)
  offerRoute(app, helpers, site)
  certificateRoutes(app, helpers, site)
  bulkRoute(app, helpers, site)
  app.get(`${themesPrefix}*`, (c) => themeResponse(site.pages.themes, c.req.path))
  app.get(`${assetsPrefix}*`, (c) => assets.respond(c.req.path, c.req.header('if-none-match')))
  app.all(`${tapPath}/`, (c) => toTapPage(c, 308) ?? c.notFound())
  for (const path of ['/', '/01/*', '/token/*', tapPath]) {
    app.options(path, () => preflight(readMethods))
    app.all(path, answer)
  }

  async function answer(c: Context<Env>): Promise<Response> {
    const query = rawQuery(c)
    const parameters = parseRawQuery(query)
    const hasTap = isRead(c.req.method) && c.req.path !== '/' && (parameters.has('picc') || parameters.has('cmac'))
    const quota = await helpers.consume(c, hasTap ? site.tapLimiter : site.limiter)
    const context = contextOf(parameters, c.req.header('accept-language'))
    const link = c.req.path.startsWith('/01/')
      ? linkHeaders(site.baseUrl, parseDigitalLink(c.req.path))
      : c.req.path === '/' && { Link: homeLinks }
    const visit = { c, context, query, quota, headers: { ...link, ...quotaHeaders(quota) }, hasTap }
    if (!isRead(c.req.method)) return methodRefused(readMethods, visit.headers)
    if (quota?.allowed === false) return noticeOf(visit, 429, { kind: 'limited', seconds: quota.resetSeconds })
    try {
      if (c.req.path === '/') return await homeResponse(site, context, parameters, visit.headers)
      return await targetResponse(visit)
    } catch (error) {
      return faultResponse(visit, error, hasTap ? 'unchecked' : 'untapped')
    }
  }

  function faultResponse(visit: Visit, error: unknown, fate: TapFate): Response {
    const { code, status } = helpers.faultOf(error, visit.c)
    const tap = error instanceof UnresolvedTap ? 'kept' : fate
    const response = noticeOf(visit, status, faultNotice(code, tap))
    return withCookies(visit, response, tapCookiesOfFault(error))
  }

  async function targetResponse(visit: Visit): Promise<Response> {
    const { c, query, quota, hasTap } = visit
    const { path } = c.req
    const linked = await resolveLinkRequest(site, { path, query, accept: c.req.header('accept'), quota })
    if (linked !== null) return linked
    const target =
      path === tapPath ? tapTarget : path.startsWith('/01/') ? parseLinkTarget(path) : parseTokenTarget(path)
    if (target === null) return pathNotFound(c, visit.headers)
    if (target.kind === 'notice') return noticeOf(visit, target.status, target.notice)
    if (target.kind === 'class' || target.kind === 'batch') return classResponse(visit, target)
    return hasTap ? tapResponse(visit, target) : recordResponse(visit, target, 'untapped')
  }

  /** A model has a page as soon as an item of it is registered. A batch is known only by what its items say. */
  async function classResponse(visit: Visit, target: ClassTarget): Promise<Response> {
    const { gtin } = target
    const isKnown = await site.items.hasGtin(gtin)
    const record = !isKnown
      ? null
      : target.kind === 'batch'
        ? await readProduct(site, target)
        : await readProduct(site, target).catch(() => null)
    if (!isKnown || (target.kind === 'batch' && record === null)) return noticeOf(visit, 404, { kind: 'unknown' })
    const html = classPage(visit.context, {
      gtin,
      batch: target.kind === 'batch' ? target.batch : undefined,
      path: visit.c.req.path,
      product: record && {
        product: record.text,
        country: countryOf(record.text.origin ?? '')?.countryCode,
        details: await withPictures(site, record.details),
        information: JSON.stringify(productDocument({ baseUrl: site.baseUrl, subject: target, ...record })),
      },
    })
    return pageResponse(visit.context, { status: 200, html, form: true }, visit.headers)
  }

  async function tapResponse(visit: Visit, target: ItemTarget | TapTarget): Promise<Response> {
    const header = (name: string) => visit.c.req.header(name)
    if (isPrefetch(header)) return noticeOf(visit, 503, { kind: 'prefetch' })
    const outcome = await resolveTapFor(helpers.clientOf(visit.c), site, {
      ...parseTapParameters(visit.query),
      ...getTapTokens(header),
      country: helpers.countryOf(visit.c),
      consume: visit.c.req.method !== 'HEAD',
    })
    const response = await outcomeResponse(visit, target, outcome).catch((error: unknown) =>
      faultResponse(visit, error, fateOf(outcome)),
    )
    return withCookies(visit, response, tapCookies(outcome))
  }

  async function outcomeResponse(visit: Visit, target: ItemTarget | TapTarget, outcome: TapOutcome): Promise<Response> {
    const checkedAt = Math.floor((site.now ?? Date.now)() / 1000)
    const record = target.kind === 'tap' ? undefined : visit.c.req.path
    switch (outcome.kind) {
      case 'malformed':
        return recordResponse(visit, target, 'incomplete')
      case 'replayed':
        return recordResponse(visit, target, 'replayed')
      case 'not_configured':
        return noticeOf(visit, 503, { kind: 'notConfigured', record })
      case 'busy':
        return noticeOf(visit, outcome.status, { kind: 'limited', seconds: outcome.seconds })
      case 'counterfeit':
        return noticeOf(visit, 200, { kind: 'counterfeit', checkedAt, record })
      case 'challenge':
        return noticeOf(visit, 200, { kind: 'challenge', seconds: outcome.seconds })
      case 'unbound': {
        const block = Number(outcome.block.number)
        return noticeOf(visit, 200, { kind: 'unbound', checkedAt, block, ...openedOf(outcome.tag, site.now) })
      }
      case 'resolved': {
        const { verdict, flags, timestamp, metadataHash } = outcome
        const tokenId = BigInt(verdict.token_id)
        const item = await itemOf(tokenId, target)
        const isNamed =
          target.kind === 'tap' ||
          (target.kind === 'token'
            ? target.tokenId === tokenId
            : item?.gtin === target.gtin && item.serial === target.serial)
        return isNamed
          ? itemResponse(visit, { verdict, flags, timestamp, metadataHash, item, tap: outcome })
          : noticeOf(visit, 200, { kind: 'other', checkedAt, record })
      }
    }
  }

  async function recordResponse(
    visit: Visit,
    target: ItemTarget | TapTarget,
    tap: 'untapped' | 'incomplete' | 'replayed',
  ): Promise<Response> {
    // Only the chip names the item: without a tap that counts, there is no record to show.
    if (target.kind === 'tap')
      return noticeOf(visit, tap === 'replayed' ? 200 : 400, { kind: tap === 'replayed' ? tap : 'incomplete' })
    const tokenId = target.kind === 'token' ? target.tokenId : await site.items.tokenOfItem(target)
    const known = tokenId === null ? null : await site.verdicts.answer(tokenId)
    if (tokenId === null || known === null) return noticeOf(visit, 404, { kind: 'unknown' })
    const { verdict, flags, timestamp, metadataHash } = known
    const item = await itemOf(tokenId, target)
    return itemResponse(visit, { verdict, flags, timestamp, metadataHash, item, tap: { kind: tap } })
  }

  /** Reads the names of a token. Only a path that names an item depends on the store. */
  function itemOf(tokenId: bigint, target: ItemTarget | TapTarget) {
    const found = site.items.itemOfToken(tokenId)
    return target.kind === 'item' ? found : found.catch(() => null)
  }

  async function itemResponse({ context, headers }: Visit, found: Found): Promise<Response> {
    const view = await itemViewOf(site, found)
    const page = {
      status: 200,
      html: itemPage(context, view),
      form: view.tap.kind !== 'tapped' || hasReportForm(view) || view.certificateTicket !== null,
      font: view.theme?.hasTypeface,
      connect: connectTo(site.pages.publicRpcUrl),
    }
    return pageResponse(context, page, headers)
  }
}

function noticeOf({ c, context, headers }: Visit, status: number, notice: Notice): Response {
  return noticeResponse(context, c.req.path, { status, notice }, headers)
}

/** Adds the cookies of a tap. HEAD has consumed none, and so gets none. */
function withCookies({ c }: Visit, response: Response, cookies: readonly string[]): Response {
  for (const cookie of c.req.method === 'HEAD' ? [] : cookies) response.headers.append('Set-Cookie', cookie)
  return response
}

/** Returns what became of a tap. A genuine one counts, and stays good for another try. */
function fateOf({ kind }: TapOutcome): TapFate {
  if (kind === 'resolved' || kind === 'unbound') return 'kept'
  return kind === 'replayed' ? kind : kind === 'malformed' ? 'incomplete' : 'unchecked'
}

/** Path of the page that opens the item of a tap, for links that name no item. */
const tapPath = '/tap'

/** Leads to that page with the tap, and consumes nothing. Undefined where the query is none that a link may have. */
export function toTapPage(c: Context<Env>, status: 303 | 308, headers: Headers = {}): Response | undefined {
  const query = rawQuery(c)
  if (query.length > 2_000 || !/^[\x21-\x7e]*$/.test(query)) return undefined
  const location = query === '' ? tapPath : `${tapPath}?${query}`
  return new Response(null, { status, headers: { ...tapHeaders, ...headers, Location: location } })
}

const tapTarget = { kind: 'tap' } as const

function parseLinkTarget(path: string): Target {
  const link = parseDigitalLink(path)
  if (link.kind === 'item' || link.kind === 'class' || link.kind === 'batch') return link
  return link.kind === 'unsupported'
    ? { kind: 'notice', status: 404, notice: { kind: 'unknown' } }
    : { kind: 'notice', status: 400, notice: { kind: 'badLink' } }
}

/** Returns null for a path below `/token/` without a page. */
function parseTokenTarget(path: string): Target | null {
  const [text = '', ...rest] = path.slice('/token/'.length).split('/', 3)
  if (!path.startsWith('/token/') || rest.length > 0) return null
  const tokenId = parseTokenIdSegment(text)
  return tokenId === null ? { kind: 'notice', status: 400, notice: { kind: 'badToken' } } : { kind: 'token', tokenId }
}

/** The start page: its search leads to an item's page, its examples are tokens with their states (spec §4.1). */
async function homeResponse(
  site: PageRoutes,
  context: PageContext,
  query: URLSearchParams,
  headers: Headers,
): Promise<Response> {
  const search = await searchOf(site, context, query)
  if (search.kind === 'path') return seeOther(hrefIn(context, search.path), headers)
  if (search.kind === 'page') return pageResponse(context, { ...search, form: true }, headers)
  const isWrong = search.kind === 'wrong'
  const html = homePage(context, {
    search: isWrong ? search.view : {},
    brands: site.pages.themes,
    examples: await examplesOf(site),
  })
  return pageResponse(context, { status: isWrong ? 400 : 200, html, form: true }, headers)
}

/** Looks up what a form or a scanned code holds. */
async function searchOf(
  site: PageRoutes,
  context: PageContext,
  query: URLSearchParams,
): Promise<Search | LookupResult> {
  const text = query.get('find')
  if (text !== null) return findText(site, context, text)
  const brand = query.get('brand')
  if (brand === null) return parseSearch(query)
  return findOfBrand(site, context, { brand, serial: typedIn(query, 'serial') ?? '' })
}

/** Lists the examples that exist; none while the chain cannot be read, because the start page must open. */
async function examplesOf({ verdicts, items, pages }: PageRoutes): Promise<Example[]> {
  const found = await Promise.all(
    pages.examples.map(async (tokenId) => {
      const [answer, item] = await Promise.all([
        verdicts.answer(tokenId).catch(() => null),
        items.itemOfToken(tokenId).catch(() => null),
      ])
      const { state = 'NONE', untrusted } = answer?.verdict ?? {}
      if (state === 'NONE') return []
      return [{ path: pagePath(tokenId, item), name: untrusted?.name, tokenId: String(tokenId), state }]
    }),
  )
  return found.flat()
}

/** `none`: the form was not sent. `wrong`: the form again, with the typed text. */
type Search =
  | { readonly kind: 'none' }
  | { readonly kind: 'path'; readonly path: string }
  | { readonly kind: 'wrong'; readonly view: SearchView }

const maxTyped = 200

/** Parses the text that a person typed to the path of an item. */
export function parseSearch(query: URLSearchParams): Search {
  const typed = (name: string) => typedIn(query, name)
  const token = typed('token')
  if (token !== undefined) {
    const tokenId = parseTokenId(token)
    return tokenId === null ? wrong({ token, wrong: 'token' }) : { kind: 'path', path: `/token/${tokenId}` }
  }
  const [gtinText, serial] = [typed('gtin'), typed('serial') ?? '']
  if (gtinText === undefined) return { kind: 'none' }
  const view = { gtin: gtinText, serial }
  const gtin = parseTypedGtin(gtinText)
  if (gtin === null) return wrong({ ...view, wrong: 'gtin' })
  if (serial === '') return { kind: 'path', path: classPath(gtin) }
  return isRegistrableSerial(serial)
    ? { kind: 'path', path: itemPath({ gtin, serial }) }
    : wrong({ ...view, wrong: 'serial' })
}

function typedIn(query: URLSearchParams, name: string): string | undefined {
  const text = query.get(name)?.slice(0, maxTyped)
  return text === undefined ? undefined : typedText(text)
}

function wrong(view: SearchView): Search {
  return { kind: 'wrong', view }
}
