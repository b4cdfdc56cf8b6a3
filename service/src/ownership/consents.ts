/** The consent of one party to a step of an item's life: what it signs, and which account must have signed (spec §3). */
import type { Hex } from '@touchstone/verdict'
import type { TransferPosition } from '../chain/transactions/transfer-reads.ts'
import type { Signable } from '../chain/transactions/typed-data.ts'

export type ConsentForm = { readonly signer: Hex; readonly signable: Signable }

/** Returns the consent to a claim by `claimant`, or without one to the recycling by the owner. `deadline` is in unix seconds. */
export function consentOf(
  { tokenId, record: { owner }, offer: { nonce } }: TransferPosition,
  { claimant, deadline }: { readonly claimant?: Hex; readonly deadline: bigint },
): ConsentForm {
  return claimant === undefined
    ? { signer: owner, signable: { type: 'Recycle', message: { tokenId, owner, nonce, deadline } } }
    : { signer: claimant, signable: { type: 'ClaimConsent', message: { tokenId, claimant, nonce, deadline } } }
}
