/**
 * The public passport in its two forms: JSON-LD, and the data elements of EN 18223. Both are made of the same facts and the same evidence, so
 * that neither says more than the other.
 */
import type { Hex } from '@touchstone/verdict'
import type { Tier } from '../../domain/product-details.ts'
import { formatSecond } from '../../domain/text.ts'
import type { PublicFacts } from './facts.ts'
import { subjectLinks, type ProductSubject } from './subject.ts'
import { productContextUrl, termIri, publicTerms } from './terms.ts'
import type { Version } from './versions.ts'

/** The anchor of one item’s facts on chain. Null members are unknown. */
export type Anchor = {
  readonly chainId: number
  readonly contract: Hex
  readonly tokenId: bigint
  readonly metadataHash: Hex | null
  readonly matches: boolean | null
  readonly detailsHash: Hex | null
  /** Documents of access tiers that the reader may see and whose elements are among the facts. */
  readonly restricted: readonly { readonly tier: Tier; readonly hash: Hex }[]
  /** `timestamp` is in unix seconds. A page, which shows no passport by date, has none. */
  readonly block: { readonly number: bigint; readonly hash: Hex; readonly timestamp?: bigint }
  readonly version: Version | null
}

export type PublicPassport = {
  readonly baseUrl: string
  readonly subject: ProductSubject
  readonly facts: PublicFacts
  readonly evidence: readonly Anchor[]
}

const notice =
  'The facts are the supplier’s word, not checked by this service. It proves only that they are the text whose hash is on chain, and nothing about an item in your hands.'

/** Returns the public passport as JSON-LD. */
export function productDocument(passport: PublicPassport) {
  const { baseUrl, subject } = passport
  return {
    '@context': productContextUrl(baseUrl),
    '@id': subjectLinks(baseUrl, subject).product,
    '@type': 'Product',
    ...identityOf(subject),
    ...statementsOf(passport),
  }
}

function statementsOf({ baseUrl, facts, evidence }: PublicPassport) {
  return { ...facts, notice, evidence: evidence.map((anchor) => evidenceOf(baseUrl, anchor)) }
}

/** The granularities of EN 18223. */
const granularities = { item: 'item', token: 'item', batch: 'batch', class: 'model' } as const

function identityOf(subject: ProductSubject) {
  return {
    granularity: granularities[subject.kind],
    ...(subject.kind === 'token' ? { tokenId: subject.tokenId.toString() } : { gtin: subject.gtin }),
    ...(subject.kind === 'item' && { serialNumber: subject.serial }),
    ...(subject.kind === 'batch' && { batchNumber: subject.batch }),
  }
}

function evidenceOf(baseUrl: string, anchor: Anchor) {
  const { chainId, contract, tokenId, metadataHash, matches, detailsHash, restricted, block, version } = anchor
  const textUrl = (hash: Hex) => `${baseUrl}/api/metadata/${hash}`
  return {
    chainId,
    contract,
    tokenId: tokenId.toString(),
    ...(metadataHash !== null && { metadataHash }),
    ...(matches !== null && { metadataHashMatches: matches }),
    ...(metadataHash !== null && matches === true && { metadata: textUrl(metadataHash) }),
    ...(detailsHash !== null && { detailsHash, details: textUrl(detailsHash) }),
    ...(restricted.length > 0 && {
      restricted: restricted.map(({ tier, hash }) => ({
        tier,
        restrictedHash: hash,
        document: `${baseUrl}/api/restricted/${hash}`,
      })),
    }),
    blockNumber: Number(block.number),
    blockHash: block.hash,
    ...(version !== null && {
      setInBlock: Number(version.event.blockNumber),
      setInTransaction: version.event.transactionHash,
      setByLog: version.event.logIndex,
      setAt: formatSecond(Number(version.event.timestamp)),
      ...(version.until !== null && { replacedAt: formatSecond(version.until) }),
    }),
  }
}

/** A data element of EN 18223 (4.1.2.3 to 4.1.2.7). */
export type DataElement = {
  readonly objectType: 'SingleValuedDataElement' | 'MultiValuedDataElement' | 'DataElementCollection'
  readonly elementId: string
  readonly dictionaryReference?: string
  readonly valueDataType?: string
  readonly value?: string | number | boolean | readonly DataElement[]
  readonly elements?: readonly DataElement[]
}

export type Header = {
  readonly status: 'active' | 'inactive' | 'invalid'
  /** Unix seconds of the newest change. */
  readonly lastUpdate: number
  readonly economicOperatorId: string
}

/** Returns the header of a passport (EN 18223, table 1) with its data elements. */
export function digitalProductPassport(passport: PublicPassport, header: Header) {
  const { baseUrl, subject } = passport
  const links = subjectLinks(baseUrl, subject)
  const { granularity, ...identity } = identityOf(subject)
  const members = { ...identity, ...statementsOf(passport) }
  return {
    digitalProductPassportId: links.passport,
    uniqueProductIdentifier: links.product,
    granularity,
    dppSchemaVersion: 'EN 18223:2026',
    dppStatus: header.status,
    lastUpdate: formatSecond(header.lastUpdate),
    economicOperatorId: header.economicOperatorId,
    contentSpecificationIds: [productContextUrl(baseUrl)],
    elements: Object.entries(members).map(([name, value]) => elementOf(baseUrl, name, value)),
  }
}

function elementOf(baseUrl: string, elementId: string, value: unknown): DataElement {
  const named = { elementId, ...(elementId in publicTerms && { dictionaryReference: termIri(baseUrl, elementId) }) }
  if (Array.isArray(value))
    return {
      objectType: 'MultiValuedDataElement',
      ...named,
      value: value.map((member: unknown, index) => elementOf(baseUrl, String(index), member)),
    }
  if (typeof value === 'object' && value !== null)
    return {
      objectType: 'DataElementCollection',
      ...named,
      elements: Object.entries(value).map(([name, member]) => elementOf(baseUrl, name, member)),
    }
  const valueDataType = publicTerms[elementId]?.type ?? 'xsd:string'
  return { objectType: 'SingleValuedDataElement', ...named, valueDataType, value: value as string | number | boolean }
}
