/**
 * GS1 Digital Link resolver features (GS1-Conformant Resolver 1.2): the answer to a request below `/01/`, as data. There is no URI
 * decompression, so the resolver is not a conformant one.
 */
import type { ItemKey } from '../domain/gs1/serial.ts'
import { decodePercent } from '../lib/bytes.ts'
import { gs1Vocabulary, linksOf } from './links.ts'
import { linksetType, type LinkType, type Topic } from './linkset.ts'
import { subjectLinks, type ProductSubject } from './public/subject.ts'
import { mediaRanges, namedQuality, qualityOf, signedForms } from '../http/accept.ts'

export type ResolverAnswer =
  | { readonly kind: 'page' }
  | { readonly kind: 'linkset' }
  /** 303 to `target`; `keepTap` keeps picc and cmac (linkset: `fwqs`), because the target needs the tap. */
  | { readonly kind: 'redirect'; readonly target: string; readonly keepTap: boolean }
  | { readonly kind: 'not-found' }

export type LinkRequest = {
  readonly baseUrl: string
  /** The `linkType` parameter, decoded; null without one. */
  readonly linkType: string | null
  readonly accept: string | null
  /** The link has both parameters of a tap. */
  readonly hasTap: boolean
  /** Topics on which there are facts. */
  readonly topics: readonly Topic[]
}

/** Resolves the Digital Link of a known item. */
export function resolveItem(
  request: LinkRequest & { readonly tokenId: bigint; readonly item: ItemKey },
): ResolverAnswer {
  const { passport, verdict } = linksOf(request.baseUrl, request)
  const subject = { kind: 'item', ...request.item } as const
  const credential: ResolverAnswer = { kind: 'redirect', target: passport, keepTap: true }
  const wantsCredential = namesCredential(request.accept) && (request.hasTap || !namesJson(request.accept))
  return resolve(request, {
    defaultLink: wantsCredential ? credential : publicAnswer(request, subject),
    dpp: namesHtml(request.accept) ? { kind: 'page' } : credential,
    ...informationAnswers(request, subject),
    verificationService: redirect(verdict),
    recallStatus: redirect(verdict),
  })
}

/** Resolves the link of a known class or batch. */
export function resolveClass(
  request: LinkRequest & { readonly subject: Extract<ProductSubject, { kind: 'class' | 'batch' }> },
): ResolverAnswer {
  const { subject } = request
  return resolve(request, { defaultLink: publicAnswer(request, subject), ...informationAnswers(request, subject) })
}

/** Leads clients that prefer JSON to the public passport, which needs no tap; the others get the page. */
function publicAnswer({ baseUrl, accept }: LinkRequest, subject: ProductSubject): ResolverAnswer {
  return namesJson(accept) ? redirect(subjectLinks(baseUrl, subject).passport) : { kind: 'page' }
}

/** Leads to the public product information: a page, or JSON-LD for a client that names it. */
function informationAnswers({ baseUrl, accept, topics }: LinkRequest, subject: ProductSubject) {
  const { product, passport } = subjectLinks(baseUrl, subject)
  const answer = redirect(namesJson(accept) ? passport : product)
  return Object.fromEntries((['pip', ...topics] as const).map((name) => [name, answer]))
}

function redirect(target: string): ResolverAnswer {
  return { kind: 'redirect', target, keepTap: false }
}

/**
 * Returns the `Location` of a redirect: the target with the raw query of the request (without `?`). A target that is itself a Digital Link
 * of this resolver loses `linkType`, or it would redirect to itself for ever.
 */
export function locationOf(
  { target, keepTap }: Extract<ResolverAnswer, { kind: 'redirect' }>,
  rawQuery: string,
): string {
  const dropped = [
    ...(keepTap ? [] : ['picc', 'cmac']),
    ...(/^https?:\/\/[^/]+\/01\//.test(target) ? ['linktype'] : []),
  ]
  const kept = rawQuery.split('&').filter((pair) => pair !== '' && !dropped.includes(parameterName(pair)))
  return kept.length === 0 ? target : `${target}?${kept.join('&')}`
}

/** Returns the resolver description file, `/.well-known/gs1resolver` and `/.well-known/resolver`. */
export function resolverDescription(baseUrl: string, name: string) {
  return {
    name,
    resolverRoot: baseUrl,
    supportedPrimaryKeys: ['01'],
    supportedLinkType: [{ namespace: gs1Vocabulary, prefix: 'gs1:' }],
    validatesAIcombinations: true,
    linkTypeDefaultCanBeLinkset: false,
    supportsLanguageVariants: false,
  }
}

function resolve(
  { linkType, accept }: LinkRequest,
  targets: Readonly<Partial<Record<LinkType, ResolverAnswer>>>,
): ResolverAnswer {
  const name = linkType === null ? 'defaultLink' : linkType.replace(/^(?:gs1:|https:\/\/(?:ref\.)?gs1\.org\/voc\/)/, '')
  if (name === 'linkset' || name === 'all' || wantsLinkset(accept)) return { kind: 'linkset' }
  // The GS1 rule: a link type that does not exist is 404, not the default link.
  return new Map(Object.entries(targets)).get(name) ?? { kind: 'not-found' }
}

/** Returns whether the client names the linkset type and does not prefer a page. */
function wantsLinkset(accept: string | null): boolean {
  const ranges = mediaRanges(accept)
  const linkset = namedQuality(ranges, linksetType)
  return linkset > 0 && linkset >= qualityOf(ranges, 'text/html')
}

/** Returns whether the client names a form of the passport and likes it better than a page. A wildcard names none. */
function namesCredential(accept: string | null): boolean {
  return prefersAny(accept, [...jsonTypes, ...signedForms])
}

function namesJson(accept: string | null): boolean {
  return prefersAny(accept, jsonTypes)
}

const jsonTypes = ['application/ld+json', 'application/json'] as const

function prefersAny(accept: string | null, types: readonly string[]): boolean {
  const ranges = mediaRanges(accept)
  return Math.max(...types.map((type) => namedQuality(ranges, type))) > qualityOf(ranges, 'text/html')
}

/**
 * Returns whether the client names HTML with at least the weight of JSON, as browsers do. Every other client is a machine that gets the
 * credential.
 */
function namesHtml(accept: string | null): boolean {
  const ranges = mediaRanges(accept)
  const html = Math.max(namedQuality(ranges, 'text/html'), namedQuality(ranges, 'application/xhtml+xml'))
  return html > 0 && html >= Math.max(qualityOf(ranges, 'application/ld+json'), qualityOf(ranges, 'application/json'))
}

function parameterName(pair: string): string {
  const name = (pair.split('=', 1)[0] ?? '').replace(/\+/g, ' ')
  return (decodePercent(name) ?? name).toLowerCase()
}
