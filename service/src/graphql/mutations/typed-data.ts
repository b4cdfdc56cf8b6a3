/**
 * Steps that need a signature: their typed data, its signers, and the query `transferTypedData` (spec §4.9, §5). The query makes the typed
 * data from the current state of the chain. Its deadline is sent back with the signature.
 */
import { lifecycleStates, reportFlags, zeroAddress, type Hex, type LifecycleState } from '@touchstone/verdict'
import { zeroHash } from '../../domain/chain.ts'
import type { TransferPosition, TransferReads } from '../../chain/transactions/transfer-reads.ts'
import { walletTypedData } from '../../chain/transactions/typed-data.ts'
import { flagNamesOf } from '../../domain/registry-event.ts'
import { formatInstant } from '../../domain/text.ts'
import { answers, clockSlack, consentOf, invalidationOf, longestOffer, offerOf } from '../../ownership/consents.ts'
import type { GraphqlContext } from '../context.ts'
import { isGiven } from '../queries/pages.ts'
import { readInput, type Input, type InputError, type InputReader, type Valid } from './inputs.ts'
import { nullIfIncomplete } from '../errors.ts'
import { rejected } from './mutation.ts'

/** How a caller gets the signature of each step. */
export const howToSign = {
  INITIATE:
    'Initiating a transfer needs the signature of the owner. Ask transferTypedData with the same productId, toAddress and message, let the owner’s wallet sign its typedData (eth_signTypedData_v4), and send the signature with its deadline.',
  ACCEPT:
    'Accepting needs the signature of the recipient. Ask transferTypedData with action ACCEPT and this transferId, and let the recipient’s wallet sign its typedData (eth_signTypedData_v4).',
  CANCEL:
    'Cancelling needs the signature of the owner or the recipient. Ask transferTypedData with action CANCEL and this transferId, and let the wallet sign its typedData (eth_signTypedData_v4).',
  CLAIM:
    'Claiming needs the claimant’s consent. Ask transferTypedData with action CLAIM, this productId and the claimant as toAddress. Let the claimant’s wallet sign its typedData (eth_signTypedData_v4), and send the signature with its deadline.',
  RECYCLE:
    'A claimed product is recycled by its owner’s signature only. Ask transferTypedData with action RECYCLE and this productId, let the owner’s wallet sign its typedData (eth_signTypedData_v4), and send the signature with its deadline.',
  INVALIDATE:
    'Voiding signed offers needs the signature of the owner. Ask transferTypedData with action INVALIDATE and this productId, and let the owner’s wallet sign its typedData (eth_signTypedData_v4).',
} as const

type SignedStep = keyof typeof howToSign

export const longestMessage = 2_000

/** The consents of one party, and the state that each leads from. */
const consents = {
  CLAIM: { state: 'ACTIVATED', step: 'claimed', party: 'claimant’s' },
  RECYCLE: { state: 'CLAIMED', step: 'recycled by its owner', party: 'owner’s' },
} as const satisfies Partial<Record<SignedStep, { state: LifecycleState; step: string; party: string }>>
type Consent = keyof typeof consents

/** Returns every reason against a step by consent, its signature included. */
export async function consentErrors(
  transfers: TransferReads,
  action: Consent,
  consent: Readonly<{ tokenId: bigint; claimant?: Hex; signature: Hex; deadline: bigint }>,
): Promise<InputError[]> {
  const position = await transfers.position(consent.tokenId)
  const errors = stepErrors(position, { ...consents[action], deadline: consent.deadline })
  if (errors.length > 0) return errors
  const { signer, signable } = consentOf(position, consent)
  if (await transfers.isSignedBy({ signer, signable, signature: consent.signature }, position)) return []
  const message = `This is not the ${consents[action].party} signature. ${howToSign[action]}`
  return [{ field: 'signature', message }]
}

/** Returns every reason against voiding signed, unsent offers. Without a signature that one is left out. */
export async function invalidationErrors(
  transfers: TransferReads,
  { tokenId, signature }: { readonly tokenId: bigint; readonly signature?: Hex },
): Promise<InputError[]> {
  const position = await transfers.position(tokenId)
  const errors = await endErrors(transfers, position)
  if (errors.length > 0 || signature === undefined) return errors
  const signer = position.record.owner
  if (await transfers.isSignedBy({ signer, signable: invalidationOf(position), signature }, position)) return []
  const { nonce } = position.offer
  const message = `This is not the owner’s signature over nonce ${nonce} of this product, which rises with every offer: if an offer was sent meanwhile, cancel it. ${howToSign.INVALIDATE}`
  return [{ field: 'signature', message }]
}

/** Returns every reason against INVALIDATE but the signature. A flagged product is no reason. */
async function endErrors(transfers: TransferReads, { tokenId, record }: TransferPosition): Promise<InputError[]> {
  const about = (message: string): InputError[] => [{ field: 'productId', message }]
  const state = lifecycleStates[record.state]
  if (state === 'NONE') return about(`Product ${tokenId} does not exist.`)
  if (state === 'RECYCLED')
    return about(`Product ${tokenId} is recycled: nothing that was signed for it counts any more.`)
  if ((await transfers.version()) > 1) return []
  const message =
    'This registry is version 1 of the contract, which cannot void a signed offer. It counts until its deadline; an offer that is sent can be cancelled.'
  return [{ field: 'input', message }]
}

type StepInput = Input<never, 'productId' | 'transferId' | 'toAddress' | 'message' | 'deadline'> & {
  readonly action: SignedStep
}

export function transferTypedData(transfers: TransferReads) {
  return async (_source: unknown, { input }: { readonly input: StepInput }, context: GraphqlContext) => {
    const found = readInput((read) => readStep(input, read))
    if (!found.ok) return rejected(found.errors)
    const position = await transfers.position(found.values.tokenId)
    const { errors, signable, deadline, transferId } = await typedStep(transfers, position, found.values, context)
    if (errors.length > 0) return rejected(errors)
    return {
      typedData: walletTypedData(transfers.domain, signable),
      deadline: deadline === null ? null : formatInstant(deadline),
      nonce: signable.message.nonce,
      transferId,
      success: true,
      errors: [],
    }
  }
}

function readStep({ action, productId, transferId, toAddress, message, deadline }: StepInput, read: InputReader) {
  const isAnswer = action === 'ACCEPT' || action === 'CANCEL'
  if (isAnswer && isGiven(productId))
    read.reject('productId', `Action ${action} is about a transfer: leave productId out.`)
  if (!isAnswer && isGiven(transferId))
    read.reject('transferId', `Action ${action} is about a product: leave transferId out.`)
  if (isAnswer) {
    if (typeof transferId !== 'string')
      return read.reject('transferId', `Action ${action} is about a transfer: give its id.`)
    const transfer = read.transferId(transferId)
    return transfer && { action, ...transfer }
  }
  const tokenId =
    typeof productId === 'string'
      ? read.productId(productId)
      : read.reject('productId', `Action ${action} is about a product: give its id.`)
  if (action === 'INVALIDATE') return { action, tokenId }
  return {
    action,
    tokenId,
    to: action === 'RECYCLE' ? zeroAddress : read.address(toAddress, 'toAddress'),
    messageHash: action === 'INITIATE' ? read.hashedText(message, 'message', longestMessage).hash : zeroHash,
    deadline: read.deadline(deadline),
  }
}

/** Returns the step with the reasons against it. `deadline` is in unix seconds, null where the step has none. */
async function typedStep(
  transfers: TransferReads,
  position: TransferPosition,
  values: Valid<NonNullable<ReturnType<typeof readStep>>>,
  context: GraphqlContext,
) {
  const { tokenId, record, offer } = position
  if ('id' in values) {
    const { action, id: transferId, nonce } = values
    const deadline = action === 'ACCEPT' ? offer.expiry : null
    const { signable } = answers[action](position, nonce)
    return { errors: await answerErrors(action, position, nonce, context), signable, deadline, transferId }
  }
  if (values.action === 'INVALIDATE')
    return {
      errors: await endErrors(transfers, position),
      signable: invalidationOf(position),
      deadline: null,
      transferId: null,
    }
  const { action, to, messageHash, deadline = latestDeadline(position) } = values
  if (action === 'INITIATE') {
    const terms = { tokenId, from: record.owner, to, expiry: deadline, messageHash }
    const transferId = `${tokenId}-${offer.nonce + 1}`
    return { errors: offerErrors(position, terms), signable: offerOf(terms, offer.nonce), deadline, transferId }
  }
  const { signable } = consentOf(position, { deadline, ...(action === 'CLAIM' && { claimant: to }) })
  return { errors: stepErrors(position, { ...consents[action], deadline }), signable, deadline, transferId: null }
}

function latestDeadline({ time }: TransferPosition): bigint {
  return time + longestOffer
}

/** Returns every reason against an offer to `to` until `expiry`, in unix seconds. */
export function offerErrors(position: TransferPosition, { to, expiry }: { to: Hex; expiry: bigint }): InputError[] {
  const { record, offer, time, tokenId } = position
  const reason = immovable(position)
  if (reason !== null) return [{ field: 'productId', message: reason }]
  const errors = deadlineErrors(position, expiry)
  if (to === record.owner) errors.push({ field: 'toAddress', message: 'The product already belongs to the recipient.' })
  if (offer.to !== null && time <= offer.expiry) {
    const until = formatInstant(offer.expiry)
    const message = `Transfer ${tokenId}-${offer.nonce} of this product is pending until ${until}: it must be accepted, cancelled or expire first.`
    errors.push({ field: 'productId', message })
  }
  return errors
}

/**
 * Returns every reason against accepting or cancelling the offer that raised the nonce to `nonce`. A flagged product's offer may be
 * cancelled; version 1 of the contract refuses that itself.
 */
export async function answerErrors(
  action: keyof typeof answers,
  position: TransferPosition,
  nonce: number,
  context: GraphqlContext,
): Promise<InputError[]> {
  const { tokenId, record, offer, time } = position
  const about = (message: string): InputError[] => [{ field: 'transferId', message }]
  const state = lifecycleStates[record.state]
  if (state === 'NONE') return about(`Product ${tokenId} does not exist.`)
  if (offer.to === null || nonce !== offer.nonce)
    return about(
      (await wasOffered(position, nonce, context))
        ? 'The transfer is no longer pending: it was accepted, cancelled or dropped.'
        : `Product ${tokenId} never had a transfer ${tokenId}-${nonce}: take the id from initiateTransfer or from transfers(productId: "${tokenId}").`,
    )
  if (time > offer.expiry)
    return about(`The transfer expired at ${formatInstant(offer.expiry)}; the owner may offer the product again.`)
  const reason = action === 'CANCEL' && state === 'FLAGGED' ? null : immovable(position)
  return reason === null ? [] : about(reason)
}

/** Returns whether an offer raised the nonce to this one. Claims, restocking and voiding raise it too: the index decides once it is there. */
async function wasOffered(
  { tokenId, offer, block }: TransferPosition,
  nonce: number,
  { loaders }: GraphqlContext,
): Promise<boolean> {
  if (nonce === 0 || nonce > offer.nonce) return false
  const product = await nullIfIncomplete(loaders.productByToken.load(tokenId))
  const isComplete = (product?.indexed?.number ?? -1n) >= block.number
  return !isComplete || (await loaders.transferById.load(`${tokenId}-${nonce}`)) !== null
}

/** Returns every reason against a step that leads from `state` only and is signed until `deadline`. */
function stepErrors(
  position: TransferPosition,
  { state, step, deadline }: { readonly state: LifecycleState; readonly step: string; readonly deadline: bigint },
): InputError[] {
  const { tokenId, record } = position
  const errors = deadlineErrors(position, deadline)
  const current = lifecycleStates[record.state]
  if (current === state) return errors
  const message =
    current === 'NONE'
      ? `Product ${tokenId} does not exist.`
      : `Product ${tokenId} is ${current}; only a product that is ${state} can be ${step}.`
  return [{ field: 'productId', message }, ...errors]
}

function deadlineErrors(position: TransferPosition, deadline: bigint): InputError[] {
  const now = position.time
  const about = (message: string): InputError[] => [{ field: 'deadline', message }]
  if (deadline <= now) return about(`The deadline has passed; on chain it is ${formatInstant(now)}.`)
  const latest = latestDeadline(position)
  return deadline > latest + clockSlack
    ? about(`The deadline may lie at most 72 hours ahead: ${formatInstant(latest)}.`)
    : []
}

function immovable({ tokenId, record }: TransferPosition): string | null {
  const state = lifecycleStates[record.state]
  if (state === 'NONE') return `Product ${tokenId} does not exist.`
  if (state === 'RECYCLED') return `Product ${tokenId} is recycled: it changes hands no more.`
  if (state !== 'FLAGGED') return null
  const reports = flagNamesOf(record.flags & reportFlags).join(', ')
  return `Product ${tokenId} is flagged (${reports}): it cannot change hands until the reports are resolved.`
}
