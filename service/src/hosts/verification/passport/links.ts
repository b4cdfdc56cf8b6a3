/**
 * The GS1 resolver below `/01/` (spec §4.5, §4.6): linksets and redirects to the targets of an item's Digital Link. Every other request
 * gets the page.
 */
import type { Quota } from '../../../http/rate-limit/limiter.ts'
import { quotaHeaders, errorResponse, openToAll } from '../../../http/responses.ts'
import { didOf } from '../../../passport/did-document.ts'
import { parseDigitalLink, type DigitalLink } from '../../../passport/digital-link.ts'
import type { ItemKey } from '../../../domain/gs1/serial.ts'
import {
  classLinkset,
  itemLinkset,
  linksetHeader,
  linksetType,
  topics,
  topicsOf,
  type Linkset,
  type Topic,
} from '../../../passport/linkset.ts'
import type { PublicFacts } from '../../../passport/public/facts.ts'
import { subjectLinks, type ProductSubject } from '../../../passport/public/subject.ts'
import { locationOf, resolveClass, resolveItem } from '../../../passport/resolver.ts'
import { languages } from '../../../pages/languages.ts'
import type { Issuer } from '../../../passport/signing/issuer.ts'
import { readProduct, type ProductSite } from '../product/records.ts'
import { parseRawQuery } from '../../../tap/parameters.ts'

/** The service as the resolver sees it. `baseUrl` is the public origin, without a slash at the end. */
export type LinkSite = ProductSite & {
  readonly items: {
    readonly tokenOfItem: (item: ItemKey) => Promise<bigint | null>
    readonly hasGtin: (gtin: string) => Promise<boolean>
  }
  readonly issuer: Pick<Issuer, 'signerFor'>
}

/** `path` and `query` as they came over the wire, the query without its question mark. */
export type LinkQuestion = {
  readonly path: string
  readonly query: string
  readonly accept: string | undefined
  readonly quota?: Quota | undefined
}

/**
 * Returns a linkset, a redirect, or 404 for an unknown link type or item. Returns null where the answer is a page. It throws
 * CHAIN_UNAVAILABLE, or DATABASE_UNAVAILABLE of the store.
 */
export async function resolveLinkRequest(site: LinkSite, question: LinkQuestion): Promise<Response | null> {
  const link = parseDigitalLink(question.path)
  if (link.kind !== 'item' && link.kind !== 'class' && link.kind !== 'batch') return null
  const parameters = parseRawQuery(question.query)
  const linkType = parameters.get('linkType')
  const hasTap = parameters.has('picc') && parameters.has('cmac')
  const answerWith = (tokenId: bigint, known: readonly Topic[]) => {
    const request = { baseUrl: site.baseUrl, linkType, accept: question.accept ?? null, hasTap, topics: known }
    return link.kind === 'item'
      ? resolveItem({ ...request, tokenId, item: link })
      : resolveClass({ ...request, subject: link })
  }
  // A page, and a link whose target is always there, need no reading of what the link is about.
  const { kind } = answerWith(0n, topics)
  if (kind === 'page') return null
  const isAboutFacts = kind === 'linkset' || link.kind === 'batch' || topics.some((topic) => linkType?.endsWith(topic))
  const tokenId = link.kind === 'item' ? await site.items.tokenOfItem(link) : null
  const isListing = kind === 'linkset' && link.kind !== 'batch'
  const facts = isAboutFacts ? await factsOf(site, link, isListing) : null
  const isKnown =
    link.kind === 'item'
      ? tokenId !== null
      : link.kind === 'class'
        ? await site.items.hasGtin(link.gtin)
        : facts !== null
  const answer = answerWith(tokenId ?? 0n, topicsOf(facts ?? {}))
  const headers = { ...linkHeaders(site.baseUrl, link), ...privateHeaders, ...quotaHeaders(question.quota) }
  if (!isKnown) return errorResponse(404, 'There is no item under this link.', headers)
  switch (answer.kind) {
    case 'page':
      return null
    case 'redirect':
      return new Response(null, { status: 303, headers: { ...headers, Location: locationOf(answer, question.query) } })
    case 'not-found':
      return errorResponse(404, noSuchLink, headers)
    case 'linkset': {
      const linkset = linksetOf(site, link, tokenId, facts ?? {})
      return new Response(JSON.stringify(linkset), { headers: { ...headers, 'Content-Type': linksetType } })
    }
  }
}

/** Returns the headers of every answer below `/01/`: CORS, and the linkset of a well-formed path. */
export function linkHeaders(baseUrl: string, link: DigitalLink): Record<string, string> {
  const shared = { ...openToAll, Vary: 'Accept, Accept-Language' }
  if (link.kind === 'malformed') return shared
  const subject = link.kind === 'unsupported' ? ({ kind: 'class', gtin: link.gtin } as const) : link
  return { ...shared, Link: linksetHeader(subjectLinks(baseUrl, subject).product) }
}

/** The address of a request may hold a tap: it stays out of caches and of the Referer. */
const privateHeaders = {
  'Cache-Control': 'no-store',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
} as const

const noSuchLink = 'There is no link of this type here; linkType=linkset lists those that are.'

function linksetOf(
  { baseUrl, issuer }: LinkSite,
  link: Exclude<ProductSubject, { kind: 'token' }>,
  tokenId: bigint | null,
  facts: PublicFacts,
): Linkset {
  const shared = { baseUrl, languages, topics: topicsOf(facts) }
  if (link.kind !== 'item') return classLinkset({ ...shared, subject: link })
  const signedForms = issuer.signerFor(didOf(baseUrl)).forms
  const item = { gtin: link.gtin, serial: link.serial }
  return itemLinkset({ ...shared, tokenId: tokenId ?? 0n, item, signedForms })
}

/**
 * Returns the facts of a link; null where there are none. While the chain cannot be read it throws: what cannot be read is not unknown.
 * A linkset of an item or a model (`isListing`) does not depend on facts, and goes without them then.
 */
async function factsOf(site: LinkSite, subject: ProductSubject, isListing: boolean): Promise<PublicFacts | null> {
  const record = await readProduct(site, subject).catch((error: unknown) => {
    if (isListing) return null
    throw error
  })
  return record?.facts ?? null
}
