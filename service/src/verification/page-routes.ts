/**
 * The pages for people (spec §4.5, §4.6): `/`, `/01/{gtin}/21/{serial}`, `/01/{gtin}`, `/token/{tokenId}`, and what they load. A tap in the
 * address is verified here, on the server, so that the page is complete without script; HEAD, OPTIONS and prefetches use up none. Items
 * without a GTIN have their link, and so their tags, at `/token/{tokenId}`: a tap is verified there too, and must be that token's.
 */
import { parseTokenId } from '@touchstone/verdict'
import type { Context, Hono } from 'hono'
import { homeLinks } from '../agents/discovery.ts'
import type { Budget, RateLimiter } from '../http/rate-limit.ts'
import { budgetHeaders, methodRefused, preflight } from '../http/respond.ts'
import { parseDigitalLink, type DigitalLink } from '../passport/digital-link.ts'
import type { PageContext } from '../pages/context.ts'
import { classPage } from '../pages/home-page.ts'
import { itemPage } from '../pages/item-page.ts'
import { hasSearch, noticePage, type Notice } from '../pages/notice-page.ts'
import { decodeOnce } from './asset.ts'
import { rawQuery, type Edge, type Env } from './edge.ts'
import { assetsPrefix, pageAssets } from './page-assets.ts'
import { homeResponse, type HomeSite } from './page-home.ts'
import { itemViewOf, type Found, type ItemSite } from './page-item.ts'
import { contextOf, pageResponse } from './page-respond.ts'
import { linkHeaders, resolveLinkRequest, type LinkSite } from './passport-links.ts'
import { isPrefetch, tapCookies, tapParameters, tapTokens, type PresentTap } from './present-tap.ts'

export type PageRoutes = ItemSite &
  HomeSite &
  LinkSite & {
    readonly presentTap: PresentTap
    readonly limiter?: RateLimiter | undefined
    readonly tapLimiter?: RateLimiter | undefined
  }

const methods = 'GET, HEAD, OPTIONS'

type Visit = {
  readonly c: Context<Env>
  readonly context: PageContext
  readonly query: string
  readonly budget: Budget | undefined
  /** Headers of the route, with the budget. */
  readonly headers: Readonly<Record<string, string>>
  readonly hasTap: boolean
}

/** What a path names: one item, one token, a class, or something that is told in one page. */
type Target =
  | { readonly kind: 'token'; readonly tokenId: bigint }
  | Extract<DigitalLink, { kind: 'item' | 'class' }>
  | { readonly kind: 'none'; readonly status: 400 | 404; readonly notice: Notice }

export function pageRoutes(app: Hono<Env>, edge: Edge, site: PageRoutes): void {
  const assets = pageAssets()

  app.get(`${assetsPrefix}*`, (c) => assets.respond(c.req.path, c.req.header('if-none-match')))
  for (const path of ['/', '/01/*', '/token/*']) {
    app.options(path, () => preflight(methods))
    app.all(path, (c) => answer(c))
  }

  async function answer(c: Context<Env>): Promise<Response> {
    const query = rawQuery(c)
    const parameters = new URLSearchParams(query.slice(0, 4_000))
    // HEAD asks what a GET would answer without a tap: it must not use one up.
    const hasTap = c.req.method === 'GET' && c.req.path !== '/' && (parameters.has('picc') || parameters.has('cmac'))
    const budget = await edge.take(c, hasTap ? site.tapLimiter : site.limiter)
    const context = contextOf(assets.folder, parameters, c.req.header('accept-language'))
    const link = c.req.path.startsWith('/01/')
      ? linkHeaders(site.baseUrl, parseDigitalLink(c.req.path))
      : c.req.path === '/' && { Link: homeLinks }
    const visit = { c, context, query, budget, headers: { ...link, ...budgetHeaders(budget) }, hasTap }
    if (!['GET', 'HEAD'].includes(c.req.method)) return methodRefused(methods, visit.headers)
    if (budget?.allowed === false) return told(visit, 429, { kind: 'limited', seconds: budget.resetSeconds })
    try {
      if (c.req.path === '/') return await homeResponse(site, context, parameters, visit.headers)
      return await targetResponse(visit)
    } catch (error) {
      const { code, status } = edge.faultOf(error, c)
      return told(visit, status, { kind: code === 'CHAIN_UNAVAILABLE' ? 'chain' : 'fault', tapped: hasTap })
    }
  }

  async function targetResponse(visit: Visit): Promise<Response> {
    const { c, query, budget, hasTap } = visit
    const { path } = c.req
    const question = { path, query, accept: c.req.header('accept'), budget }
    const other = await resolveLinkRequest(site, question)
    if (other !== null) return other
    const target = path.startsWith('/01/') ? targetOfLink(parseDigitalLink(path)) : targetOfToken(path)
    if (target === null) return c.notFound()
    if (target.kind === 'none') return told(visit, target.status, target.notice)
    if (target.kind === 'class') return classResponse(visit, target.gtin)
    return hasTap ? tapResponse(visit, target) : recordResponse(visit, target, 'untapped')
  }

  async function classResponse(visit: Visit, gtin: string): Promise<Response> {
    if (!(await site.items.hasGtin(gtin))) return told(visit, 404, { kind: 'unknown' })
    const html = classPage(visit.context, { gtin, path: visit.c.req.path })
    return pageResponse(visit.context, { status: 200, html, search: true }, visit.headers)
  }

  /** Once the tap is used, its outcome is what the page is about. */
  async function tapResponse(visit: Visit, target: ItemTarget): Promise<Response> {
    const { c, query } = visit
    const header = (name: string) => c.req.header(name)
    if (isPrefetch(header)) return told(visit, 503, { kind: 'prefetch' })
    const presented = await site.presentTap({ ...tapParameters(query), ...tapTokens(header) })
    const response = await outcomeResponse(visit, target, presented)
    for (const cookie of tapCookies(presented)) response.headers.append('Set-Cookie', cookie)
    return response
  }

  async function outcomeResponse(
    visit: Visit,
    target: ItemTarget,
    presented: Awaited<ReturnType<PresentTap>>,
  ): Promise<Response> {
    const checkedAt = Math.floor((site.now ?? Date.now)() / 1000)
    const record = visit.c.req.path
    switch (presented.kind) {
      case 'malformed':
        return recordResponse(visit, target, 'incomplete')
      case 'replayed':
        return recordResponse(visit, target, 'replayed')
      case 'not_configured':
        return told(visit, 503, { kind: 'not-configured', record })
      case 'counterfeit':
        return told(visit, 200, { kind: 'counterfeit', checkedAt, record })
      case 'challenge':
        return told(visit, 200, { kind: 'challenge', seconds: presented.seconds })
      case 'unbound': {
        const { tag, block } = presented
        return told(visit, 200, { kind: 'unbound', counter: tag.tapCounter, checkedAt, block: Number(block.number) })
      }
      case 'resolved': {
        const { verdict } = presented
        const item = await itemOf(BigInt(verdict.token_id), target)
        const isNamed =
          target.kind === 'token'
            ? target.tokenId === BigInt(verdict.token_id)
            : item?.gtin === target.gtin && item.serial === target.serial
        return isNamed
          ? shown(visit, { verdict, item, tap: presented })
          : told(visit, 200, { kind: 'other', checkedAt, record })
      }
    }
  }

  async function recordResponse(
    visit: Visit,
    target: ItemTarget,
    tap: 'untapped' | 'incomplete' | 'replayed',
  ): Promise<Response> {
    const tokenId = target.kind === 'token' ? target.tokenId : await site.items.tokenOfItem(target)
    const answered = tokenId === null ? null : await site.verdicts.answer(tokenId)
    if (tokenId === null || answered === null) return told(visit, 404, { kind: 'unknown' })
    return shown(visit, { verdict: answered.verdict, item: await itemOf(tokenId, target), tap: { kind: tap } })
  }

  /** A path that names an item cannot be judged without the store; one that names a token can. */
  function itemOf(tokenId: bigint, target: ItemTarget) {
    const found = site.items.itemOfToken(tokenId)
    return target.kind === 'token' ? found.catch(() => null) : found
  }

  async function shown({ context, headers }: Visit, found: Found): Promise<Response> {
    const view = await itemViewOf(site, context, found)
    const { publicRpcUrl } = site.pages
    const connect = ["'self'", ...(publicRpcUrl === null ? [] : [new URL(publicRpcUrl).origin])]
    return pageResponse(
      context,
      { status: 200, html: itemPage(context, view), search: view.tap.kind !== 'tapped', connect },
      headers,
    )
  }

  function told({ c, context, headers, budget }: Visit, status: number, notice: Notice): Response {
    const wait = notice.kind === 'prefetch' ? '1' : notice.kind === 'limited' ? String(budget?.resetSeconds) : undefined
    return pageResponse(
      context,
      { status, html: noticePage(context, c.req.path, notice), search: hasSearch(notice.kind) },
      { ...headers, ...(wait !== undefined && { 'Retry-After': wait }) },
    )
  }
}

type ItemTarget = Extract<Target, { kind: 'item' | 'token' }>

function targetOfLink(link: DigitalLink): Target {
  switch (link.kind) {
    case 'item':
    case 'class':
      return link
    case 'unsupported':
      return { kind: 'none', status: 404, notice: { kind: 'unknown' } }
    case 'malformed':
      return { kind: 'none', status: 400, notice: { kind: 'bad-link' } }
  }
}

/** Null for a path below `/token/` that is no page. */
function targetOfToken(path: string): Target | null {
  const [text = '', ...rest] = path.slice('/token/'.length).split('/', 3)
  if (!path.startsWith('/token/') || rest.length > 0) return null
  const tokenId = parseTokenId(decodeOnce(text))
  return tokenId === null ? { kind: 'none', status: 400, notice: { kind: 'bad-token' } } : { kind: 'token', tokenId }
}
