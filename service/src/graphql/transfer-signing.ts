/**
 * The query `transferTypedData` (spec §4.9, §5): what a wallet signs for a step, made from what the chain holds now, with the
 * deadline that is sent back with the signature.
 */
import type { TransferPosition, TransferReads } from '../chain/transfer-reads.ts'
import { walletTypedData, type Signable } from '../chain/transfer-typed-data.ts'
import { addressOf, deadlineOf, messageOf, productIdOf, say, transferIdOf } from './mutation-inputs.ts'
import type { InputError, Maybe } from './mutation-inputs.ts'
import { answerErrors, deadlineErrors, instantOf, longestOffer, offerErrors, stateErrors } from './transfer-rules.ts'

type Step = 'INITIATE' | 'ACCEPT' | 'CANCEL' | 'CLAIM' | 'RECYCLE'
type Input = Readonly<{
  action: Step
  productId?: Maybe<string>
  transferId?: Maybe<string>
  toAddress?: Maybe<string>
  message?: Maybe<string>
  deadline?: Maybe<string>
}>

/** What is signed; `deadline` in unix seconds where the step has one, `transferId` where it is about a transfer. */
type Signing = Readonly<{ signable: Signable; deadline: bigint | null; transferId: string | null }>

export function transferTypedData(transfers: TransferReads) {
  return async ({ input }: { input: Input }) => {
    const errors: InputError[] = []
    const signing = await steps[input.action](transfers, input, errors)
    if (signing === null || errors.length > 0) return { success: false, errors }
    const { signable, deadline, transferId } = signing
    return {
      typedData: walletTypedData(transfers.domain, signable),
      deadline: deadline === null ? null : instantOf(deadline),
      nonce: signable.message.nonce,
      transferId,
      success: true,
      errors: [],
    }
  }
}

type MakeSigning = (transfers: TransferReads, input: Input, errors: InputError[]) => Promise<Signing | null>

const steps: Readonly<Record<Step, MakeSigning>> = {
  async INITIATE(transfers, input, errors) {
    const tokenId = productOf(input, errors)
    const to = addressOf(input.toAddress, 'toAddress', errors)
    const message = messageOf(input.message, errors)
    const given = deadlineOf(input.deadline, errors)
    if (tokenId === null || to === null || errors.length > 0) return null
    const position = await transfers.position(tokenId)
    const { record, offer } = position
    const expiry = given ?? latest(position)
    errors.push(...offerErrors(position, { to, expiry }))
    const terms = { tokenId, from: record.owner, to, expiry, nonce: offer.nonce, messageHash: message.hash }
    return {
      signable: { type: 'InitiateTransfer', message: terms },
      deadline: expiry,
      transferId: `${tokenId}-${offer.nonce + 1}`,
    }
  },

  async ACCEPT(transfers, input, errors) {
    const found = await pending(transfers, input, errors)
    if (found === null) return null
    const { position, nonce, id } = found
    const { record, offer, tokenId } = position
    const terms = { tokenId, from: record.owner, to: offer.to ?? record.owner, expiry: offer.expiry, nonce }
    return { signable: { type: 'AcceptTransfer', message: terms }, deadline: offer.expiry, transferId: id }
  },

  async CANCEL(transfers, input, errors) {
    const found = await pending(transfers, input, errors)
    if (found === null) return null
    const { position, nonce, id } = found
    const message = { tokenId: position.tokenId, from: position.record.owner, nonce }
    return { signable: { type: 'CancelTransfer', message }, deadline: null, transferId: id }
  },

  async CLAIM(transfers, input, errors) {
    const tokenId = productOf(input, errors)
    const claimant = addressOf(input.toAddress, 'toAddress', errors)
    const given = deadlineOf(input.deadline, errors)
    if (tokenId === null || claimant === null || errors.length > 0) return null
    const position = await transfers.position(tokenId)
    const deadline = given ?? latest(position)
    errors.push(...stateErrors(position, 3, 'claimed'), ...deadlineErrors(position, deadline))
    const message = { tokenId, claimant, nonce: position.offer.nonce, deadline }
    return { signable: { type: 'ClaimConsent', message }, deadline, transferId: null }
  },

  async RECYCLE(transfers, input, errors) {
    const tokenId = productOf(input, errors)
    const given = deadlineOf(input.deadline, errors)
    if (tokenId === null || errors.length > 0) return null
    const position = await transfers.position(tokenId)
    const deadline = given ?? latest(position)
    errors.push(...stateErrors(position, 4, 'recycled by its owner'), ...deadlineErrors(position, deadline))
    const message = { tokenId, owner: position.record.owner, nonce: position.offer.nonce, deadline }
    return { signable: { type: 'Recycle', message }, deadline, transferId: null }
  },
}

function productOf({ productId, action }: Input, errors: InputError[]): bigint | null {
  return typeof productId === 'string'
    ? productIdOf(productId, errors)
    : say(errors, 'productId', `Action ${action} is about a product: give its id.`)
}

async function pending(transfers: TransferReads, { transferId, action }: Input, errors: InputError[]) {
  if (typeof transferId !== 'string')
    return say(errors, 'transferId', `Action ${action} is about a transfer: give its id.`)
  const answered = transferIdOf(transferId, errors)
  if (answered === null) return null
  const position = await transfers.position(answered.tokenId)
  errors.push(...answerErrors(position, answered.nonce))
  return { position, ...answered }
}

function latest({ block }: TransferPosition): bigint {
  return block.timestamp + longestOffer
}
