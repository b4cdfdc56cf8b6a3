/**
 * Linksets (RFC 9264) of an item and of its class, valid against the GS1 and the UNTP linkset schema. Every entry has `anchor`,
 * `itemDescription` and exactly one default link; a link has `href`, `title` and, except the default, `type`. A linkset has no `untrusted`
 * object, and therefore no supplier text (spec §1).
 */
import type { SignedForm } from '../http/accept.ts'
import { gs1Vocabulary, linksOf } from './links.ts'
import type { ItemKey } from '../domain/gs1/serial.ts'
import type { PublicFacts } from './public/facts.ts'
import { subjectLinks, type ProductSubject } from './public/subject.ts'

export const linksetType = 'application/linkset+json'

type Link = {
  readonly href: string
  readonly title: string
  readonly type?: string
  readonly hreflang?: readonly string[]
  readonly fwqs?: boolean
}
/** Link types of public product information, with the facts that each is about. A link is listed only where one of them is known. */
const topicFacts = {
  sustainabilityInfo: ['footprint', 'materials', 'substances'],
  recyclingInfo: ['recycling'],
  certificationInfo: ['certificates'],
} as const
export type Topic = keyof typeof topicFacts
export const topics = Object.keys(topicFacts) as readonly Topic[]
export type LinkType = 'defaultLink' | 'dpp' | 'pip' | 'verificationService' | 'recallStatus' | Topic
type Entry = { readonly anchor: string; readonly itemDescription: string } & {
  readonly [name in LinkType as `${typeof gs1Vocabulary}${name}`]?: readonly Link[]
}
export type Linkset = { readonly linkset: readonly Entry[] }

export type ClassInput = {
  readonly baseUrl: string
  /** A model, or one batch of it. */
  readonly subject: Extract<ProductSubject, { kind: 'class' | 'batch' }>
  /** Languages of the pages, two letters each. */
  readonly languages: readonly string[]
  readonly topics: readonly Topic[]
}
export type ItemInput = Omit<ClassInput, 'subject'> & {
  readonly tokenId: bigint
  readonly item: ItemKey
  readonly signedForms: readonly SignedForm[]
}

export function topicsOf(facts: PublicFacts): Topic[] {
  return topics.filter((topic) => topicFacts[topic].some((name) => name in facts))
}

/** Lists the links of an item, then those of its class: a linkset goes up to the primary key. */
export function itemLinkset(input: ItemInput): Linkset {
  const { baseUrl, tokenId, item, languages, signedForms } = input
  const { page, passport, verdict } = linksOf(baseUrl, { tokenId, item })
  const document = (type: string, title: string): Link => ({ href: passport, title, type, fwqs: true })
  const entry: Entry = {
    anchor: page,
    itemDescription: `Product ${tokenId}, one serialised item`,
    [relation('defaultLink')]: [{ href: page, title: 'Product passport' }],
    [relation('dpp')]: [
      { href: page, title: 'Product passport (web page)', type: 'text/html', hreflang: languages },
      document('application/ld+json', 'Digital product passport (unsigned credential; needs a tap)'),
      ...signedForms.map((form) => document(form, `Digital product passport (${signedTitles[form]}; needs a tap)`)),
    ],
    ...informationLinks(input, { kind: 'item', ...item }),
    [relation('verificationService')]: [{ href: verdict, title: 'Keyless on-chain verdict', type: 'application/json' }],
    [relation('recallStatus')]: [{ href: verdict, title: 'Flag and recall state', type: 'application/json' }],
  }
  return { linkset: [entry, classEntry({ ...input, subject: { kind: 'class', gtin: item.gtin } })] }
}

export function classLinkset(input: ClassInput): Linkset {
  return { linkset: [classEntry(input)] }
}

/** Returns the `Link` header of an answer below `/01/` for the canonical URL of an item or class (RFC 8288, RFC 9264 §6.2). */
export function linksetHeader(url: string): string {
  return `<${url}?linkType=linkset>; rel="linkset"; type="${linksetType}"`
}

const signedTitles: Readonly<Record<SignedForm, string>> = {
  'application/vc+jwt': 'signed, JWS',
  'application/vc': 'signed, embedded proof',
}

function classEntry(input: ClassInput): Entry {
  const { baseUrl, subject } = input
  const { product } = subjectLinks(baseUrl, subject)
  return {
    anchor: product,
    itemDescription: `Products with GTIN ${subject.gtin}`,
    [relation('defaultLink')]: [{ href: product, title: 'Product information' }],
    ...informationLinks(input, subject),
  }
}

/** Lists the public product information, as a page and as JSON-LD, under each link type that it answers. */
function informationLinks(
  { baseUrl, languages, topics: known }: Pick<ClassInput, 'baseUrl' | 'languages' | 'topics'>,
  subject: ProductSubject,
): Partial<Entry> {
  const { product, passport } = subjectLinks(baseUrl, subject)
  const links = (title: string): readonly Link[] => [
    { href: product, title, type: 'text/html', hreflang: languages },
    { href: passport, title: `${title} (JSON-LD)`, type: 'application/ld+json' },
  ]
  return Object.fromEntries([
    [relation('pip'), links('Product information')],
    ...known.map((topic) => [relation(topic), links(topicTitles[topic])]),
  ])
}

const topicTitles: Readonly<Record<Topic, string>> = {
  sustainabilityInfo: 'Materials, substances and footprint',
  recyclingInfo: 'Recycling',
  certificationInfo: 'Certificates',
}

function relation<const Name extends LinkType>(name: Name): `${typeof gs1Vocabulary}${Name}` {
  return `${gs1Vocabulary}${name}`
}
