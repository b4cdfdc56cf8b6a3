/**
 * The product of a passport: UNTP 0.7.0 `Product` with the on-chain state as `assetStatus` (spec §2.8). It has fixed keys, because a
 * supplier key such as `@id` would pass every schema and still change the JSON-LD graph.
 */
import { formatSecond } from '../domain/text.ts'
import type { ChainRef, Verdict } from '@touchstone/verdict'
import { countryOf, unspecifiedCountry } from './country.ts'
import type { ItemKey } from '../domain/gs1/serial.ts'
import { gs1Vocabulary, linksOf, unspecifiedFacilityUrl, vocabularyUrl } from './links.ts'
import type { ProductText } from './metadata.ts'
import { parseHttpsUrl } from '../domain/https-url.ts'

export type ProductInput = {
  readonly baseUrl: string
  readonly verdict: Verdict
  readonly item: ItemKey | null
  readonly tapCounter: number
  /** The time of the verdict's block, in unix seconds. */
  readonly timestamp: bigint
}

export type Product = ReturnType<typeof productOf>

/** Builds the product. `text` holds no field unless the metadata matched its on-chain hash. */
export function productOf(input: ProductInput, text: ProductText) {
  const { baseUrl, verdict, item, tapCounter, timestamp } = input
  const { token_id: tokenId, state, state_code: stateCode, flagged, owner_commitment: ownerCommitment } = verdict
  const links = linksOf(baseUrl, { tokenId, item })
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
    itemNumber: item === null ? tokenId : item.serial,
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
      state,
      stateCode,
      flagged,
      // Left out, not null: JSON-LD drops null, and the two readings of the document would differ.
      ...(ownerCommitment !== null && { ownerCommitment }),
      tapCounter,
      observedAt: formatSecond(Number(timestamp)),
      chainRef: chainReference(verdict.chainRef),
      network: verdict.network,
      auditStatus: verdict.audit_status,
      productionReady: verdict.production_ready,
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

/** Names the chain, contract, token and block that the document was read from (spec §2.2). */
export function chainReference(ref: ChainRef) {
  return {
    type: ['ChainReference'],
    chainId: ref.chain_id,
    contract: ref.contract,
    tokenId: ref.token_id,
    blockNumber: ref.block_number,
    blockHash: ref.block_hash,
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
