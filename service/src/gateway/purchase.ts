/**
 * What a buyer asks for (spec §4.8): the body of POST /verify as a purchase, or the code of its refusal.
 * Probes of directories send nothing, or `{}`: they get the offer. Malformed bodies are refused before a payment is wasted on them.
 */
import { createHash } from 'node:crypto'
import { parseTokenId } from '@touchstone/verdict'
import type { ErrorCode } from './answers.ts'
import { isAttestable } from './attestable.ts'
import { chainName } from './terms.ts'

/** `requestHash` (SHA-256, hex) ties a payment to this request: nothing in the buyer's signature does. */
export type Purchase = { readonly tokenId: bigint; readonly assetId: string; readonly requestHash: string }

/** `probe`: nothing is asked for yet. */
export type ParsedBody =
  | { readonly kind: 'purchase'; readonly purchase: Purchase }
  | { readonly kind: 'probe' }
  | { readonly kind: 'refused'; readonly error: ErrorCode }

export function parsePurchase(text: string): ParsedBody {
  if (text.trim() === '') return { kind: 'probe' }
  const body = objectOf(text)
  if (body === undefined) return { kind: 'refused', error: 'invalid_body' }
  const { assetId, chain } = body
  if (chain !== undefined && chain !== chainName) return { kind: 'refused', error: 'unsupported_chain' }
  if (assetId === undefined) return { kind: 'probe' }
  const tokenId = typeof assetId === 'string' && assetId.length <= 78 ? parseTokenId(assetId) : null
  if (tokenId === null) return { kind: 'refused', error: 'invalid_asset_id' }
  if (!isAttestable(tokenId)) return { kind: 'refused', error: 'asset_id_not_attestable' }
  return { kind: 'purchase', purchase: purchaseOf(tokenId) }
}

function objectOf(text: string): { assetId?: unknown; chain?: unknown } | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined
  } catch {
    return undefined
  }
}

function purchaseOf(tokenId: bigint): Purchase {
  const assetId = tokenId.toString()
  return {
    tokenId,
    assetId,
    // Only a paid request has use for it.
    get requestHash() {
      return createHash('sha256')
        .update(JSON.stringify([assetId, chainName]))
        .digest('hex')
    },
  }
}
