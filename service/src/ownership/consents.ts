/** The consents to the steps of an item's life: what a party signs, and which account must have signed (spec §3, §4.9). */
import type { Hex } from '@touchstone/verdict'
import type { WriteRequest } from '../chain/transactions/calls.ts'
import type { TransferPosition } from '../chain/transactions/transfer-reads.ts'
import type { Signable } from '../chain/transactions/typed-data.ts'

type ConsentForm = { readonly signer: Hex; readonly signable: Signable }

/** Returns the consent to a claim by `claimant`, or without one to the recycling by the owner. `deadline` is in unix seconds. */
export function consentOf(
  { tokenId, record: { owner }, offer: { nonce } }: TransferPosition,
  { claimant, deadline }: { readonly claimant?: Hex; readonly deadline: bigint },
): ConsentForm {
  return claimant === undefined
    ? { signer: owner, signable: { type: 'Recycle', message: { tokenId, owner, nonce, deadline } } }
    : { signer: claimant, signable: { type: 'ClaimConsent', message: { tokenId, claimant, nonce, deadline } } }
}

/** The terms of an offer; the nonce of the chain comes to them. */
export type OfferTerms = Readonly<{ tokenId: bigint; from: Hex; to: Hex; expiry: bigint; messageHash: Hex }>

/** The longest and the default duration of an offer, in seconds. */
export const longestOffer = 72n * 3_600n

/** Tolerance in seconds, because a deadline may be checked at an earlier block of another provider. */
export const clockSlack = 60n

/** The message has the order of its type, which wallets show. */
export function offerOf({ messageHash, ...terms }: OfferTerms, nonce: number): Signable {
  return { type: 'InitiateTransfer', message: { ...terms, nonce, messageHash } }
}

/** The answers to an offer: what is signed, and by one of which accounts. */
export const answers = {
  ACCEPT({ tokenId, record: { owner: from }, offer: { to, expiry } }: TransferPosition, nonce: number) {
    const message = { tokenId, from, to: to ?? from, expiry, nonce }
    return { signers: [message.to], signable: { type: 'AcceptTransfer', message } as Signable }
  },
  CANCEL({ tokenId, record: { owner: from }, offer: { to } }: TransferPosition, nonce: number) {
    return {
      signers: [from, to ?? from],
      signable: { type: 'CancelTransfer', message: { tokenId, from, nonce } } as Signable,
    }
  },
}

/** Returns the transaction that sends an answer which `signer` signed. */
export function answerRequest(
  action: keyof typeof answers,
  { tokenId, signer, signature }: Readonly<{ tokenId: bigint; signer: Hex; signature: Hex }>,
): WriteRequest {
  return action === 'ACCEPT'
    ? { kind: 'acceptTransferBySig', tokenId, signature }
    : { kind: 'cancelTransferBySig', tokenId, signer, signature }
}

/** Returns what the owner signs to void what was signed and not sent. */
export function invalidationOf({ tokenId, record: { owner }, offer: { nonce } }: TransferPosition): Signable {
  return { type: 'InvalidateNonce', message: { tokenId, owner, nonce } }
}
