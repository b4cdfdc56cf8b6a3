/**
 * Transfers in two steps by signature (spec §4.9, §5): the owner offers, the recipient accepts, either takes it back. Checked
 * off chain at one block first; then the operator's key pays for what they signed.
 */
import type { Hex } from '@touchstone/verdict'
import { keccak256, zeroHash } from 'viem'
import type { TransferPosition, TransferReads } from '../chain/transfer-reads.ts'
import { digestOf, type Signable } from '../chain/transfer-typed-data.ts'
import { sentRequest } from '../chain/write-calls-sent.ts'
import type { WriteRequest } from '../chain/write-calls.ts'
import type { StoredOperation } from '../chain/writer-store.ts'
import type { TransferRow } from '../store/transfers.ts'
import type { TransferMessageStore } from '../store/transfer-messages.ts'
import type { GraphqlContext } from './context.ts'
import { addressOf, messageOf, productIdOf, signatureOf, signedDeadlineOf, transferIdOf } from './mutation-inputs.ts'
import type { InputError, Maybe } from './mutation-inputs.ts'
import { refused, type CarryOut, type FailureFields, type Written } from './mutation-writes.ts'
import { answerErrors, instantOf, offerErrors } from './transfer-rules.ts'

export type TransferDeps = Readonly<{
  transfers: TransferReads
  operations: Readonly<{ find: (key: string) => Promise<StoredOperation | undefined> }>
  messages: TransferMessageStore
}>

type TransferInput = Readonly<{
  productId: string
  toAddress: string
  message?: Maybe<string>
  signature?: Maybe<string>
  deadline?: Maybe<string>
}>
type AnswerInput = Readonly<{ transferId: string; signature?: Maybe<string> }>

/** What the owner signs; the nonce of the chain comes to it. */
type Terms = Readonly<{ tokenId: bigint; from: Hex; to: Hex; expiry: bigint; messageHash: Hex }>

const howToSign = {
  initiate:
    'Initiating a transfer needs the signature of the owner. Ask transferTypedData with the same productId, toAddress and message, let the owner’s wallet sign its typedData (eth_signTypedData_v4), and send the signature with its deadline.',
  accept:
    'Accepting needs the signature of the recipient. Ask transferTypedData with action ACCEPT and this transferId, and let the recipient’s wallet sign its typedData (eth_signTypedData_v4).',
  cancel:
    'Cancelling needs the signature of the owner or the recipient. Ask transferTypedData with action CANCEL and this transferId, and let the wallet sign its typedData (eth_signTypedData_v4).',
} as const

export function createTransfersBySignature(
  { transfers, operations, messages }: TransferDeps,
  { carryOutSigned }: CarryOut,
) {
  const signedBy = (signer: Hex, signable: Signable, signature: Hex, { block }: TransferPosition) =>
    transfers.isSignedBy({ signer, digest: digestOf(transfers.domain, signable), signature }, block)

  async function initiate({ input }: { input: TransferInput }, context: GraphqlContext) {
    const errors: InputError[] = []
    const tokenId = productIdOf(input.productId, errors)
    const to = addressOf(input.toAddress, 'toAddress', errors)
    const message = messageOf(input.message, errors)
    const signature = signatureOf(input.signature, howToSign.initiate, errors)
    const deadline = signature === null ? null : signedDeadlineOf(input.deadline, errors)
    if (tokenId === null || to === null || signature === null || deadline === null || errors.length > 0)
      return refused(errors)

    const position = await transfers.position(tokenId)
    const { record, offer } = position
    const terms = { tokenId, from: record.owner, to, expiry: deadline, messageHash: message.hash }
    const before = offer.nonce - 1
    // The same offer sent again while it stands is the same transfer.
    const isStanding =
      offer.to === to && offer.expiry === deadline && (await isOffer(terms, before, signature, position))
    if (!isStanding) {
      const refusals = offerErrors(position, { to, expiry: deadline })
      if (refusals.length > 0) return refused(refusals)
      if (!(await isOffer(terms, offer.nonce, signature, position)))
        return refused([await unsigned(terms, before, signature, position)])
    }

    if (message.body !== null) await messages.put({ hash: message.hash, body: message.body })
    const nonce = isStanding ? before : offer.nonce
    const id = `${tokenId}-${nonce + 1}`
    const { from: _, ...call } = terms
    const digest = digestOf(transfers.domain, { type: 'InitiateTransfer', message: { ...terms, nonce } })
    const request = { kind: 'initiateTransferBySig', ...call, signature } as const
    const done = await carryOutSigned(request, `initiate:${digest}`, context, offerFields)
    if (done.ok) {
      const transfer = done.indexed ? await indexedTransfer(context, id) : null
      return {
        success: true,
        errors: [],
        txHash: done.txHash,
        transfer: transfer ?? offered(id, terms, done, position),
      }
    }
    // Signed twice over the same terms, or sent by somebody else: the transfer is there all the same.
    const isThere = isStanding || done.code === 'IDEMPOTENCY_CONFLICT'
    const transfer = isThere ? await indexedTransfer(context, id) : null
    if (transfer === null) return refused(done.errors, done.txHash)
    return { success: true, errors: [], txHash: transfer.initiatedTx, transfer }
  }

  const isOffer = (terms: Terms, nonce: number, signature: Hex, position: TransferPosition) =>
    nonce < 0
      ? Promise.resolve(false)
      : signedBy(terms.from, { type: 'InitiateTransfer', message: { ...terms, nonce } }, signature, position)

  async function unsigned(
    terms: Terms,
    before: number,
    signature: Hex,
    position: TransferPosition,
  ): Promise<InputError> {
    const wasUsed = await isOffer(terms, before, signature, position)
    const message = wasUsed
      ? `This signature started transfer ${terms.tokenId}-${before + 1}, which is over. Ask transferTypedData again and have it signed anew.`
      : `This is not the owner’s signature over these values at nonce ${position.offer.nonce}: it must be the current owner’s (65 bytes, low s, v 27 or 28; a smart account’s as ERC-1271 takes it), productId, toAddress, message and deadline must be those given to transferTypedData, and no other transfer may have come between.`
    return { field: 'signature', message }
  }

  async function accept({ input }: { input: AnswerInput }, context: GraphqlContext) {
    const answer = answerOf(input, 'accept')
    if (!answer.ok) return refused(answer.errors)
    const { tokenId, nonce, signature } = answer
    const position = await transfers.position(tokenId)
    const refusals = answerErrors(position, nonce)
    if (refusals.length > 0) return repeated(answer, refusals, context)
    const { record, offer } = position
    const to = offer.to ?? record.owner
    const message = { tokenId, from: record.owner, to, expiry: offer.expiry, nonce }
    if (!(await signedBy(to, { type: 'AcceptTransfer', message }, signature, position)))
      return refused([{ field: 'signature', message: notSignedBy('recipient', 'ACCEPT') }])
    return send(answer, { kind: 'acceptTransferBySig', tokenId, signature }, context)
  }

  async function cancel({ input }: { input: AnswerInput }, context: GraphqlContext) {
    const answer = answerOf(input, 'cancel')
    if (!answer.ok) return refused(answer.errors)
    const { tokenId, nonce, signature } = answer
    const position = await transfers.position(tokenId)
    const refusals = answerErrors(position, nonce)
    if (refusals.length > 0) return repeated(answer, refusals, context)
    const { record, offer } = position
    const signable = { type: 'CancelTransfer', message: { tokenId, from: record.owner, nonce } } as const
    for (const signer of [record.owner, offer.to ?? record.owner]) {
      if (await signedBy(signer, signable, signature, position))
        return send(answer, { kind: 'cancelTransferBySig', tokenId, signer, signature }, context)
    }
    return refused([{ field: 'signature', message: notSignedBy('owner or the recipient', 'CANCEL') }])
  }

  /** What the chain refuses now may have been done before with this very signature; then the answer is the same. */
  async function repeated(answer: Answer, refusals: readonly InputError[], context: GraphqlContext) {
    const known = await operations.find(answer.key)
    const request = known === undefined ? null : sentRequest(known.raw)
    if (request === null) return refused(refusals)
    const payload = await send(answer, request, context)
    return payload.success ? payload : refused(refusals)
  }

  async function send({ key, id }: Answer, request: WriteRequest, context: GraphqlContext) {
    const done = await carryOutSigned(request, key, context, answerFields)
    if (!done.ok) return refused(done.errors, done.txHash)
    const isBehind = done.mined && !done.indexed
    const transfer = isBehind ? null : await indexedTransfer(context, id)
    return { success: true, errors: [], txHash: done.txHash, transfer }
  }

  return { initiate, accept, cancel }
}

/** There is no `productId` in these inputs, and no `idempotencyKey`. */
const offerFields: FailureFields = { IDEMPOTENCY_CONFLICT: 'signature' }
const answerFields: FailureFields = {
  ASSET_NOT_FOUND: 'transferId',
  WRONG_STATE: 'transferId',
  IDEMPOTENCY_CONFLICT: 'signature',
}

type Answer = Readonly<{ ok: true; id: string; tokenId: bigint; nonce: number; signature: Hex; key: string }>

function answerOf(input: AnswerInput, step: 'accept' | 'cancel'): Answer | { ok: false; errors: InputError[] } {
  const errors: InputError[] = []
  const transfer = transferIdOf(input.transferId, errors)
  const signature = signatureOf(input.signature, howToSign[step], errors)
  if (transfer === null || signature === null) return { ok: false, errors }
  return { ok: true, ...transfer, signature, key: `${step}:${transfer.id}:${keccak256(signature)}` }
}

function notSignedBy(who: string, action: string): string {
  return `This is not the signature of the ${who} of this transfer over what transferTypedData gives for action ${action} (65 bytes, low s, v 27 or 28; a smart account’s as ERC-1271 takes it).`
}

/** The row as the index has it after the write; a loader may remember that there was none. */
function indexedTransfer({ loaders }: GraphqlContext, id: string): Promise<TransferRow | null> {
  return loaders.transferById.clear(id).load(id)
}

/** The offer as the index will have it. */
function offered(id: string, terms: Terms, { txHash }: Written, { block }: TransferPosition): TransferRow {
  const { tokenId, from, to, expiry, messageHash } = terms
  return {
    pk: 0n, // for the order of pages, in which it does not stand yet
    id,
    tokenId,
    from,
    to,
    status: 'PENDING',
    initiatedAt: instantOf(block.timestamp),
    initiatedTx: txHash,
    expiresAt: instantOf(expiry),
    settledTx: null,
    messageHash: messageHash === zeroHash ? null : messageHash,
  }
}
