/**
 * The Digital Product Passport (spec §2.8, §4.5, §4.6): an unsigned W3C credential (VCDM 2.0) whose product follows UNTP 0.7.0.
 * It has fixed keys and is neither processed as JSON-LD nor validated at request time; tests expand and validate it.
 */
import { zeroHash } from '../domain/chain.ts'
import { contextUrl, linksOf } from './links.ts'
import type { PassportMetadata } from './metadata.ts'
import { formatSecond } from '../domain/text.ts'
import { productOf, type Product, type ProductInput } from './product.ts'

/** Version of the United Nations Transparency Protocol that the passport follows. */
const untpVersion = '0.7.0'

/** The input of a passport; `now` in milliseconds since 1970. */
export type PassportInput = ProductInput & {
  readonly issuer: { readonly name: string; readonly did: string }
  readonly software: {
    readonly id: string
    readonly name: string
    readonly version: string
    readonly vendor: { readonly id: string; readonly name: string }
  }
  readonly metadata: PassportMetadata
  readonly now: number
}

export type Passport = ReturnType<typeof passportOf>

/** Builds the passport of an item: with a GTIN its GTIN form is the canonical one, on both routes. */
export function passportOf(input: PassportInput) {
  const { baseUrl, issuer, software, metadata, verdict, item, timestamp, now } = input
  const product = productOf(input, metadata.status === 'match' ? metadata.value : {})
  return {
    '@context': [
      'https://www.w3.org/ns/credentials/v2',
      `https://vocabulary.uncefact.org/untp/${untpVersion}/context/`,
      contextUrl(baseUrl),
    ],
    type: ['VerifiableCredential', 'DigitalProductPassport'],
    id: linksOf(baseUrl, { tokenId: verdict.token_id, item }).passport,
    name: `Digital Product Passport: ${product.name}`,
    description: `Unsigned passport (v1): no issuer signature. ${scope}`,
    issuer: { type: ['CredentialIssuer'], id: issuer.did, name: issuer.name },
    // A local chain can run ahead of the clock, and verifiers reject a time in the future.
    validFrom: formatSecond(Math.min(Number(timestamp), Math.floor(now / 1000))),
    credentialSchema: {
      id: `https://untp.unece.org/artefacts/schema/v${untpVersion}/dpp/DigitalProductPassport.json`,
      type: 'JsonSchema',
    },
    issuingSoftware: software,
    credentialSubject: product,
    evidence: [evidenceOf(metadata, product)],
  }
}

/** The part of the description that signed and unsigned documents share. */
export const scope =
  'The evidence entry anchors the supplier-written product fields to the on-chain metadataHash; assetStatus is assembled by the server and is not covered by that hash. Testnet only, contracts unaudited.'

const canonicalForm = 'keccak256 over the RFC 8785 (JCS) form of the off-chain product metadata,'
const explanation: Readonly<Record<PassportMetadata['status'], string>> = {
  match: `${canonicalForm} recorded in the token contract. It covers only the supplier-written product metadata.`,
  mismatch: `${canonicalForm} recorded in the token contract. The stored metadata does not have this hash, so no supplier-written text is shown.`,
  none: `${canonicalForm} as recorded in the token contract. No metadata is available under this hash, so no supplier-written text is shown.`,
}

/** Builds the `evidence` entry: the on-chain `metadataHash`, and JSON pointers (RFC 6901) to the existing members that it covers. */
function evidenceOf(metadata: PassportMetadata, product: Product) {
  const { status } = metadata
  return {
    type: ['OnChainMetadataAnchor'],
    name: 'On-chain metadata anchor',
    description: explanation[status],
    metadataHash: status === 'match' ? metadata.hash : (metadata.onChainHash ?? zeroHash),
    hashAlgorithm: 'keccak-256',
    canonicalization: 'RFC8785',
    ...(status !== 'none' && { metadataHashMatches: status === 'match' }),
    chainRef: product.assetStatus.chainRef,
    covers: status === 'match' ? coveredMembers(metadata, product) : [],
    doesNotCover: [
      '/credentialSubject/assetStatus',
      '/issuer',
      '/validFrom',
      '/issuingSoftware',
      '/credentialSubject/itemNumber',
      ...(product.characteristics?.gtin === undefined ? [] : ['/credentialSubject/characteristics/gtin']),
    ],
  }
}

function coveredMembers(
  { value }: Extract<PassportMetadata, { status: 'match' }>,
  { productImage, countryOfProduction }: Product,
): string[] {
  const members: readonly (readonly [boolean, string])[] = [
    [value.name !== undefined, 'name'],
    [value.description !== undefined, 'description'],
    [value.sku !== undefined, 'modelNumber'],
    [productImage !== undefined, 'productImage/linkURL'],
    [value.brand !== undefined, 'characteristics/brand'],
    [value.sku !== undefined, 'characteristics/sku'],
    [value.size !== undefined, 'characteristics/size'],
    [value.origin !== undefined, 'characteristics/origin'],
    [countryOfProduction.countryCode !== 'ZZ', 'countryOfProduction'],
  ]
  return members.flatMap(([present, member]) => (present ? [`/credentialSubject/${member}`] : []))
}
