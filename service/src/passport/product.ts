/**
 * The product of a passport: UNTP 0.7.0 `Product` with the on-chain state as `assetStatus` (spec §2.8). It has fixed keys, because a
 * supplier key such as `@id` would pass every schema and still change the JSON-LD graph.
 */
import { formatSecond } from '../domain/text.ts'
import { checksumAddress, verdictChainId, type Hex, type LifecycleState, type StateCode } from '@touchstone/verdict'
import { countryOf, unspecifiedCountry } from './country.ts'
import type { ItemKey } from '../domain/gs1/serial.ts'
import { gs1Vocabulary, linksOf, unspecifiedFacilityUrl, vocabularyUrl } from './links.ts'
import type { ProductText } from './metadata.ts'
import { chainName, type TimedBlock } from '../domain/chain.ts'
import { parseHttpsUrl } from '../domain/https-url.ts'

export type ProductInput = {
  readonly baseUrl: string
  readonly tokenId: bigint
  readonly item: ItemKey | null
  /** The state of the token at the pinned block. */
  readonly record: {
    readonly state: LifecycleState
    readonly stateCode: StateCode
    readonly flagged: boolean
    readonly ownerCommitment: Hex | null
  }
  readonly tapCounter: number
  /** The block that state, hash and reference were read at. */
  readonly block: TimedBlock
  readonly contract: Hex
}

export type Product = ReturnType<typeof productOf>

/** Builds the product. `text` holds no field unless the metadata matched its on-chain hash. */
export function productOf(input: ProductInput, text: ProductText) {
  const { baseUrl, tokenId, item, record, tapCounter, block } = input
  const links = linksOf(baseUrl, input)
  const image = imageLink(text.image)
  const characteristics = {
    ...(text.brand !== undefined && { brand: text.brand }),
    ...(text.sku !== undefined && { sku: text.sku }),
    ...(text.size !== undefined && { size: text.size }),
    ...(text.origin !== undefined && { origin: text.origin }),
    ...(item !== null && { gtin: item.gtin }),
  }
  return {
    type: ['Product'],
    id: links.page,
    name: text.name ?? `Product ${tokenId}`,
    ...(text.description !== undefined && { description: text.description }),
    idScheme: { type: ['IdentifierScheme'], ...(item === null ? tokenScheme(baseUrl) : gtinScheme) },
    ...(text.sku !== undefined && { modelNumber: text.sku }),
    itemNumber: item === null ? tokenId.toString() : item.serial,
    idGranularity: 'item',
    ...(image !== null && { productImage: image }),
    // An empty object would be a node without meaning in JSON-LD.
    ...(Object.keys(characteristics).length > 0 && { characteristics }),
    productCategory: [],
    producedAtFacility: {
      type: ['Facility'],
      id: unspecifiedFacilityUrl(baseUrl),
      name: 'Not specified by the supplier',
    },
    countryOfProduction: (text.origin === undefined ? null : countryOf(text.origin)) ?? unspecifiedCountry,
    relatedDocument: [
      {
        linkURL: links.page,
        linkName: 'Human-readable passport',
        mediaType: 'text/html',
        linkType: `${gs1Vocabulary}pip`,
      },
      {
        linkURL: links.verdict,
        linkName: 'Keyless on-chain verdict',
        mediaType: 'application/json',
        linkType: `${gs1Vocabulary}verificationService`,
      },
    ],
    assetStatus: {
      type: ['AssetStatus'],
      state: record.state,
      stateCode: record.stateCode,
      flagged: record.flagged,
      // Left out, not null: JSON-LD drops null, and the two readings of the document would differ.
      ...(record.ownerCommitment !== null && { ownerCommitment: record.ownerCommitment }),
      tapCounter,
      observedAt: formatSecond(Number(block.timestamp)),
      chainRef: chainReference(input),
      network: chainName,
      auditStatus: 'unaudited',
      productionReady: false,
      coveredByMetadataHash: false,
    },
  }
}

const gtinScheme = {
  id: 'https://id.gs1.org/01/',
  name: 'GS1 Global Trade Item Number (GTIN) with serial number, AI (01)(21)',
}

function tokenScheme(baseUrl: string) {
  return { id: `${vocabularyUrl(baseUrl)}#token-id`, name: 'Token id in the registry contract' }
}

/** Names the chain, contract, token and block that the document was read from (spec §2.2). Token ids are text: they reach 2^256 − 1. */
function chainReference({ tokenId, block, contract }: Pick<ProductInput, 'tokenId' | 'block' | 'contract'>) {
  return {
    type: ['ChainReference'],
    chainId: verdictChainId,
    contract: checksumAddress(contract),
    tokenId: tokenId.toString(),
    blockNumber: Number(block.number),
    blockHash: block.hash,
  }
}

const imageTypes = new Map([
  ['avif', 'image/avif'],
  ['gif', 'image/gif'],
  ['jpeg', 'image/jpeg'],
  ['jpg', 'image/jpeg'],
  ['png', 'image/png'],
  ['svg', 'image/svg+xml'],
  ['webp', 'image/webp'],
])

/** Links an https image without user name or password; null for everything else. The server never fetches it. */
function imageLink(image: string | undefined) {
  const url = image === undefined ? null : parseHttpsUrl(image)
  if (url === null) return null
  const mediaType = imageTypes.get(/\.([a-z]+)$/i.exec(url.pathname)?.[1]?.toLowerCase() ?? '')
  return {
    linkURL: url.href,
    linkName: 'Product image (supplier-provided)',
    ...(mediaType !== undefined && { mediaType }),
  }
}
