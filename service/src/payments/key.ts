/** The names by which payments are known: their authorization, and the block of their transfer. */
import type { Hex } from '@touchstone/verdict'

/** An EIP-3009 authorization of one token; both in lower case. */
export type PaymentKey = { readonly payer: Hex; readonly nonce: Hex }
/** A block by number and hash. */
export type BlockRef = { readonly number: bigint; readonly hash: Hex }

/** Returns the name of a payment in maps of this process. */
export function paymentName({ payer, nonce }: PaymentKey): string {
  return `${payer}${nonce}`
}
