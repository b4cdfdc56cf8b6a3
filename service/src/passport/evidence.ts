/**
 * The `evidence` entry of a passport (spec §2.8): the on-chain `metadataHash`, and which members of the document it covers. Both lists
 * are JSON pointers (RFC 6901) that name existing members only.
 */
import type { Hex } from '@touchstone/verdict'
import type { PassportMetadata } from './metadata.ts'
import type { Product } from './product.ts'

const zeroHash: Hex = `0x${'0'.repeat(64)}`

const explanation: Readonly<Record<PassportMetadata['status'], string>> = {
  match:
    'keccak256 over the RFC 8785 (JCS) form of the off-chain product metadata, recorded in the token contract. It covers only the supplier-written product metadata.',
  mismatch:
    'keccak256 over the RFC 8785 (JCS) form of the off-chain product metadata, recorded in the token contract. The stored metadata does not have this hash, so no supplier-written text is shown.',
  none: 'keccak256 over the RFC 8785 (JCS) form of the off-chain product metadata, as recorded in the token contract. No metadata is available under this hash, so no supplier-written text is shown.',
}

export function evidenceOf(metadata: PassportMetadata, product: Product) {
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
