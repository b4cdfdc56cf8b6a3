/**
 * The Digital Product Passport (spec §2.8, §4.5, §4.6): an unsigned W3C credential (VCDM 2.0) whose product follows UNTP 0.7.0. No
 * JSON-LD processing and no schema check happens here: the document has fixed keys, and tests expand and validate it.
 */
import { evidenceOf } from './evidence.ts'
import { contextUrl, linksOf } from './links.ts'
import type { PassportMetadata } from './metadata.ts'
import { productOf, timeText, type ProductInput } from './product.ts'

/** Version of the United Nations Transparency Protocol that the passport follows. */
const untpVersion = '0.7.0'

type Software = {
  readonly id: string
  readonly name: string
  readonly version: string
  readonly vendor: { readonly id: string; readonly name: string }
}

/** Everything a passport is made of; `now` in milliseconds since 1970. */
export type PassportInput = ProductInput & {
  readonly issuer: { readonly name: string; readonly did: string }
  readonly software: Software
  readonly metadata: PassportMetadata
  readonly now: number
}

export type Passport = ReturnType<typeof passportOf>

/** One item has one passport: with a GTIN its GTIN form is the canonical one, on both routes. */
export function passportOf(input: PassportInput) {
  const { baseUrl, issuer, software, metadata, block, now } = input
  const product = productOf(input, metadata.status === 'match' ? metadata.value : {})
  return {
    '@context': [
      'https://www.w3.org/ns/credentials/v2',
      `https://vocabulary.uncefact.org/untp/${untpVersion}/context/`,
      contextUrl(baseUrl),
    ],
    type: ['VerifiableCredential', 'DigitalProductPassport'],
    id: linksOf(baseUrl, input).passport,
    name: `Digital Product Passport: ${product.name}`,
    description: `Unsigned passport (v1): no issuer signature. ${scope}`,
    issuer: { type: ['CredentialIssuer'], id: issuer.did, name: issuer.name },
    // A local chain can run ahead of the clock, and verifiers refuse a time in the future.
    validFrom: timeText(Math.min(Number(block.timestamp), Math.floor(now / 1000))),
    credentialSchema: {
      id: `https://untp.unece.org/artefacts/schema/v${untpVersion}/dpp/DigitalProductPassport.json`,
      type: 'JsonSchema',
    },
    issuingSoftware: {
      id: software.id,
      name: software.name,
      version: software.version,
      vendor: { id: software.vendor.id, name: software.vendor.name },
    },
    credentialSubject: product,
    evidence: [evidenceOf(metadata, product)],
  }
}

/** What the document says of itself, signed or not. */
export const scope =
  'The evidence entry anchors the supplier-written product fields to the on-chain metadataHash; assetStatus is assembled by the server and is not covered by that hash. Testnet only, contracts unaudited.'
