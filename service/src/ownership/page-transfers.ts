/**
 * Sends transfers from a page (spec §4.9, §5), by the rules of GraphQL and of the contract. The owner offers a claimed
 * item to one account, that account accepts, either ends the offer. Each signs; the signature is checked before the
 * operator pays for the transaction.
 */
import { lifecycleStates, type Hex } from '@touchstone/verdict'
import { zeroHash } from '../domain/chain.ts'
import type { TransferPosition } from '../chain/transactions/transfer-reads.ts'
import { type Signable, walletTypedData } from '../chain/transactions/typed-data.ts'
import type { TransferId } from './transfer-id.ts'
import { answerRequest, answers, clockSlack, invalidationOf, longestOffer, offerOf } from './consents.ts'
import { createSignedWrites, type SentWrite, type SendOutcome, type SignedWriteDeps, stepKey } from './signed-writes.ts'

/** The tap that the owner made. */
type Tapped = { readonly tokenId: bigint; readonly epoch: number; readonly tapCounter: number }
type OfferInput = Tapped & { readonly account: Hex; readonly to: Hex }
type AnswerInput = { readonly transferId: TransferId; readonly account: Hex }
type WithdrawalInput = Tapped & { readonly account: Hex }
type Signed = { readonly signature: Hex }

/** `typedData` is for `eth_signTypedData_v4`. `transferId` is that of the offer that is made or answered. */
type TransferTerms = {
  readonly typedData: ReturnType<typeof walletTypedData>
  readonly deadline?: string
  readonly transferId?: string
}
/**
 * `held`: the item is reported. `over`: there is no such offer any more. `notOwner`, `another`: the account is not the one that may take
 * the step. `self`: the item is offered to its owner. `unsigned`: the signature is not the account's.
 */
export type TransferRefusal =
  | Exclude<SendOutcome, SentWrite>
  | 'held'
  | 'over'
  | 'notOwner'
  | 'another'
  | 'self'
  | 'unsigned'
/** `standing`: another offer stands, which must end first. */
export type Standing = { readonly standing: string }
type TransferOutcome = SentWrite | Standing | TransferRefusal
type OfferOutcome = { readonly status: SentWrite['status']; readonly transferId: string } | Standing | TransferRefusal

/** A standing offer, as its page shows it. `until` is in unix seconds. */
type OfferView = {
  readonly status: 'standing' | 'expired' | 'held' | 'over'
  readonly until: bigint
}

export type PageTransfers = ReturnType<typeof createPageTransfers>

export function createPageTransfers(deps: SignedWriteDeps) {
  const { transfers } = deps
  const { send, sendFirst, previous } = createSignedWrites(deps)

  const toSign = (signable: Signable) => ({ typedData: walletTypedData(transfers.domain, signable) })

  /** Sends the answer to an offer. The same signature again gets the first outcome, although the offer is over by then. */
  async function answer(
    action: keyof typeof answers,
    { transferId, account, signature }: AnswerInput & Signed,
    requestId?: string,
  ): Promise<TransferOutcome> {
    const { tokenId, nonce, id } = transferId
    const key = stepKey(action.toLowerCase(), id, account)
    const position = await transfers.position(tokenId)
    const refusal = partyRefusal(action, position, nonce, account)
    if (refusal !== null) {
      const earlier = await previous(key)
      const isSame = earlier && 'signature' in earlier && earlier.signature === signature
      return isSame ? send(earlier, key, requestId) : refusal
    }
    const { signable } = answers[action](position, nonce)
    if (!(await transfers.isSignedBy({ signer: account, signable, signature }, position))) return 'unsigned'
    return sendFirst(answerRequest(action, { tokenId, signer: account, signature }), key, requestId)
  }

  async function answerTerms(
    action: keyof typeof answers,
    { transferId: { id, tokenId, nonce }, account }: AnswerInput,
  ): Promise<TransferTerms | TransferRefusal> {
    const position = await transfers.position(tokenId)
    const refusal = partyRefusal(action, position, nonce, account)
    return refusal ?? { ...toSign(answers[action](position, nonce).signable), transferId: id }
  }

  return {
    /** Returns what is known of an offer at the newest block. Throws CHAIN_UNAVAILABLE. */
    async view({ tokenId, nonce }: TransferId): Promise<OfferView> {
      const position = await transfers.position(tokenId)
      const refusal = answerRefusal('ACCEPT', position, nonce)
      const { to, nonce: current, expiry: until } = position.offer
      if (refusal !== 'over') return { status: refusal ?? 'standing', until }
      return { status: to !== null && nonce === current ? 'expired' : 'over', until }
    },

    /** Returns what the owner signs to offer the item. Throws CHAIN_UNAVAILABLE. */
    async offerTerms({ tokenId, account, to }: OfferInput): Promise<TransferTerms | Standing | TransferRefusal> {
      const position = await transfers.position(tokenId)
      const refusal = offerRefusal(position, { account, to })
      if (refusal !== null) return refusal
      const expiry = position.time + longestOffer
      const { nonce } = position.offer
      const signable = offerOf({ tokenId, from: account, to, expiry, messageHash: zeroHash }, nonce)
      return { ...toSign(signable), deadline: String(expiry), transferId: `${tokenId}-${nonce + 1}` }
    },

    /** Makes the offer. One tap makes one offer: the operator's gas cannot be spent in a loop. Throws CHAIN_UNAVAILABLE. */
    async offer(input: OfferInput & Signed & { deadline: bigint }, requestId?: string): Promise<OfferOutcome> {
      const { tokenId, epoch, tapCounter, account, to, deadline: expiry, signature } = input
      const position = await transfers.position(tokenId)
      const { record, offer, time } = position
      const terms = { tokenId, from: account, to, expiry, messageHash: zeroHash }
      const isSigned = (nonce: number) =>
        transfers.isSignedBy({ signer: account, signable: offerOf(terms, nonce), signature }, position)
      // The same signed offer, sent again while it stands, is the same offer.
      const isStanding =
        account === record.owner && offer.to === to && offer.expiry === expiry && (await isSigned(offer.nonce - 1))
      if (isStanding) return { status: 'mined', transferId: `${tokenId}-${offer.nonce}` }
      const refusal = offerRefusal(position, { account, to })
      if (refusal !== null) return refusal
      const isInTime = expiry > time && expiry <= time + longestOffer + clockSlack
      if (!isInTime || !(await isSigned(offer.nonce))) return 'unsigned'
      const key = stepKey('offer', tokenId, epoch, tapCounter)
      const request = { kind: 'initiateTransferBySig', tokenId, to, expiry, messageHash: zeroHash, signature } as const
      const outcome = await send(request, key, requestId)
      if (typeof outcome === 'string') return outcome
      return { status: outcome.status, transferId: `${tokenId}-${offer.nonce + 1}` }
    },

    acceptTerms: (input: AnswerInput) => answerTerms('ACCEPT', input),
    accept: (input: AnswerInput & Signed, requestId?: string) => answer('ACCEPT', input, requestId),
    cancelTerms: (input: AnswerInput) => answerTerms('CANCEL', input),
    cancel: (input: AnswerInput & Signed, requestId?: string) => answer('CANCEL', input, requestId),

    /**
     * Returns what the owner signs to void what was signed and not sent. Where an offer stands, the owner signs its
     * end. Throws CHAIN_UNAVAILABLE.
     */
    async withdrawalTerms({ tokenId, account }: WithdrawalInput): Promise<TransferTerms | TransferRefusal> {
      const position = await transfers.position(tokenId)
      const { nonce } = position.offer
      if (answerRefusal('CANCEL', position, nonce) === null) {
        return answerTerms('CANCEL', { transferId: { id: `${tokenId}-${nonce}`, tokenId, nonce }, account })
      }
      return voidRefusal(position, account) ?? (await versionRefusal()) ?? toSign(invalidationOf(position))
    },

    /** Voids what the owner signed and what was not sent. One tap voids once. Throws CHAIN_UNAVAILABLE. */
    async withdraw(
      { tokenId, epoch, tapCounter, account, signature }: WithdrawalInput & Signed,
      requestId?: string,
    ): Promise<TransferOutcome> {
      const key = stepKey('void', tokenId, epoch, tapCounter)
      const request = { kind: 'invalidateNonceBySig', tokenId, signature } as const
      // The same signature again gets the first outcome: the nonce that it covers is over by then.
      if ((await previous(key)) !== undefined) return send(request, key, requestId)
      const position = await transfers.position(tokenId)
      const refusal = voidRefusal(position, account) ?? (await versionRefusal())
      if (refusal !== null) return refusal
      const signable = invalidationOf(position)
      const isSigned = await transfers.isSignedBy({ signer: account, signable, signature }, position)
      // It may have been sent meanwhile.
      if (!isSigned && (await previous(key)) === undefined) return 'unsigned'
      return send(request, key, requestId)
    },
  }

  /** Version 1 of the contract cannot void what was signed. */
  async function versionRefusal(): Promise<'taken' | null> {
    return (await transfers.version()) > 1 ? null : 'taken'
  }
}

function offerRefusal(
  { tokenId, record, offer, time }: TransferPosition,
  { account, to }: { readonly account: Hex; readonly to: Hex },
): Standing | TransferRefusal | null {
  const state = lifecycleStates[record.state]
  if (state !== 'CLAIMED') return state === 'FLAGGED' ? 'held' : 'taken'
  if (account !== record.owner) return 'notOwner'
  if (to === record.owner) return 'self'
  const isStanding = offer.to !== null && time <= offer.expiry
  return isStanding ? { standing: `${tokenId}-${offer.nonce}` } : null
}

/** A reported item's offer may be ended, not accepted. */
function answerRefusal(
  action: keyof typeof answers,
  { record, offer, time }: TransferPosition,
  nonce: number,
): 'over' | 'held' | null {
  if (offer.to === null || offer.nonce !== nonce || time > offer.expiry) return 'over'
  return lifecycleStates[record.state] === 'FLAGGED' && action === 'ACCEPT' ? 'held' : null
}

function partyRefusal(
  action: keyof typeof answers,
  position: TransferPosition,
  nonce: number,
  account: Hex,
): 'over' | 'held' | 'another' | null {
  const isParty = answers[action](position, nonce).signers.includes(account)
  return answerRefusal(action, position, nonce) ?? (isParty ? null : 'another')
}

function voidRefusal({ record }: TransferPosition, account: Hex): 'taken' | 'notOwner' | null {
  if (hasEnded(record)) return 'taken'
  return account === record.owner ? null : 'notOwner'
}

/** Returns whether an item does not exist, or is recycled. */
function hasEnded({ state }: TransferPosition['record']): boolean {
  return lifecycleStates[state] === 'NONE' || lifecycleStates[state] === 'RECYCLED'
}
