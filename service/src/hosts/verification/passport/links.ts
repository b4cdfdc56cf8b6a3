/**
 * The GS1 resolver below `/01/` (spec §4.5, §4.6): linksets and redirects to the targets of an item's Digital Link. Every other request
 * gets the page.
 */
import type { Verdicts } from '../../../assets/verdicts.ts'
import type { Quota } from '../../../http/rate-limit/limiter.ts'
import { quotaHeaders, failure, openToAll } from '../../../http/responses.ts'
import { didOf } from '../../../passport/did-document.ts'
import { parseDigitalLink, type DigitalLink, type ItemKey } from '../../../passport/digital-link.ts'
import { classLink, linksOf } from '../../../passport/links.ts'
import { classLinkset, itemLinkset, linksetHeader, linksetType, type Linkset } from '../../../passport/linkset.ts'
import { locationOf, resolveClass, resolveItem } from '../../../passport/resolver.ts'
import { languages } from '../../../pages/languages.ts'
import type { Issuer } from '../../../passport/signing/issuer.ts'

/** The service as the resolver sees it. `baseUrl` is the public origin, without a slash at the end. */
export type LinkSite = {
  readonly baseUrl: string
  readonly items: {
    readonly tokenOfItem: (item: ItemKey) => Promise<bigint | null>
    readonly hasGtin: (gtin: string) => Promise<boolean>
  }
  readonly verdicts: Pick<Verdicts, 'answer'>
  readonly issuer: Pick<Issuer, 'signerFor'>
}

/** `path` and `query` as they came over the wire, the query without its question mark. */
export type LinkQuestion = {
  readonly path: string
  readonly query: string
  readonly accept: string | undefined
  readonly quota?: Quota | undefined
}

/** Returns a linkset, a redirect, or 404 for an unknown link type or item; null where the answer is a page. It throws INTERNAL. */
export async function resolveLinkRequest(site: LinkSite, question: LinkQuestion): Promise<Response | null> {
  const link = parseDigitalLink(question.path)
  if (link.kind !== 'item' && link.kind !== 'class') return null
  const linkType = new URLSearchParams(question.query.slice(0, 4_000)).get('linkType')
  const request = { baseUrl: site.baseUrl, linkType, accept: question.accept ?? null }
  const tokenId = link.kind === 'item' ? await site.items.tokenOfItem(link) : null
  const isKnown = link.kind === 'item' ? tokenId !== null : await site.items.hasGtin(link.gtin)
  const answer =
    link.kind === 'item'
      ? resolveItem({ ...request, tokenId: tokenId ?? 0n, item: link })
      : resolveClass({ ...request, gtin: link.gtin })
  if (answer.kind === 'page') return null
  const headers = { ...linkHeaders(site.baseUrl, link), ...privateHeaders, ...quotaHeaders(question.quota) }
  if (!isKnown) return failure(404, { error: 'There is no item under this link.' }, headers)
  switch (answer.kind) {
    case 'redirect':
      return new Response(null, { status: 303, headers: { ...headers, Location: locationOf(answer, question.query) } })
    case 'not-found':
      return failure(404, { error: noSuchLink }, headers)
    case 'linkset': {
      const linkset = await linksetOf(site, link, tokenId)
      return new Response(JSON.stringify(linkset), { headers: { ...headers, 'Content-Type': linksetType } })
    }
  }
}

/** Returns the headers of every answer below `/01/`: CORS, and the linkset of a well-formed path. */
export function linkHeaders(baseUrl: string, link: DigitalLink): Record<string, string> {
  const shared = { ...openToAll, Vary: 'Accept, Accept-Language' }
  if (link.kind === 'malformed') return shared
  const url = link.kind === 'item' ? linksOf(baseUrl, { tokenId: 0n, item: link }).page : classLink(baseUrl, link.gtin)
  return { ...shared, Link: linksetHeader(url) }
}

/** The address of a request may hold a tap: it stays out of caches and of the Referer. */
const privateHeaders = {
  'Cache-Control': 'no-store',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
} as const

const noSuchLink = 'There is no link of this type here; linkType=linkset lists those that are.'

async function linksetOf(
  site: LinkSite,
  link: ItemKey | { readonly kind: 'class'; readonly gtin: string },
  tokenId: bigint | null,
): Promise<Linkset> {
  const { baseUrl, issuer } = site
  if (tokenId === null || !('serial' in link)) return classLinkset({ baseUrl, gtin: link.gtin, name: null, languages })
  const name = await nameOf(site, tokenId)
  const item = { gtin: link.gtin, serial: link.serial }
  const signedForms = issuer.signerFor(didOf(baseUrl)).forms
  return itemLinkset({ baseUrl, tokenId, item, name, languages, signedForms })
}

/** Returns the product's name; null while the chain cannot be read, because a linkset does not depend on the item's state. */
async function nameOf({ verdicts }: LinkSite, tokenId: bigint): Promise<string | null> {
  const answer = await verdicts.answer(tokenId).catch(() => null)
  return answer?.verdict.untrusted?.name ?? null
}
