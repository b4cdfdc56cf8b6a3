/**
 * The body of POST /verify (spec §4.8): an order, a probe, or an error code. Directories probe with an empty body or `{}` and get the payment
 * requirements. Malformed bodies are rejected before a payment is spent on them.
 */
import { createHash } from 'node:crypto'
import { parseTokenId } from '@touchstone/verdict'
import { chainName } from '../domain/chain.ts'
import { parseJsonObject } from '../lib/json.ts'
import type { PaymentErrorCode } from './errors.ts'

/**
 * `requestHash` (SHA-256, hex) binds a payment to this request, because the buyer's signature covers no part of it. `eas`: the proof also
 * comes as an EAS off-chain attestation.
 */
export type Order = {
  readonly tokenId: bigint
  readonly assetId: string
  readonly eas: boolean
  readonly requestHash: string
}

type ParsedOrder =
  | { readonly kind: 'order'; readonly order: Order }
  | { readonly kind: 'probe' }
  | { readonly kind: 'error'; readonly error: PaymentErrorCode }

export function parseOrder(text: string): ParsedOrder {
  if (text.trim() === '') return { kind: 'probe' }
  const body = parseJsonObject(text)
  if (body === null) return { kind: 'error', error: 'invalid_body' }
  const { assetId, chain, eas = false } = body
  if (chain !== undefined && chain !== chainName) return { kind: 'error', error: 'unsupported_chain' }
  if (typeof eas !== 'boolean') return { kind: 'error', error: 'invalid_body' }
  if (assetId === undefined) return { kind: 'probe' }
  const tokenId = typeof assetId === 'string' && assetId.length <= 78 ? parseTokenId(assetId) : null
  if (tokenId === null) return { kind: 'error', error: 'invalid_asset_id' }
  if (!isAttestable(tokenId)) return { kind: 'error', error: 'asset_id_not_attestable' }
  return { kind: 'order', order: toOrder(tokenId, eas) }
}

function toOrder(tokenId: bigint, eas: boolean): Order {
  const assetId = tokenId.toString()
  return {
    tokenId,
    assetId,
    eas,
    // Computed on use, because only a paid request needs it.
    get requestHash() {
      const request = eas ? [assetId, chainName, 'eas'] : [assetId, chainName]
      return createHash('sha256').update(JSON.stringify(request)).digest('hex')
    },
  }
}

/**
 * Returns whether a token id may be attested. The raw signature covers 128 bytes that begin with the id, and the buyer chooses the id: bytes
 * that parse as an unsigned transaction would authorise it. They begin with a type byte and a list of 125 bytes (EIP-2718: 00–7f, f8 7d),
 * or a legacy list of 126 bytes (f8 7e). One random id in 43,000 is affected; the registry mints none of them.
 */
export function isAttestable(tokenId: bigint): boolean {
  const head = tokenId.toString(16).padStart(64, '0').slice(0, 6)
  return !head.startsWith('f87e') && !/^[0-7][0-9a-f]f87d/.test(head)
}
