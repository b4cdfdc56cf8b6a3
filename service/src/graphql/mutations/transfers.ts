/**
 * Transfers in two steps by signature (spec §4.9, §5): the owner offers, the recipient accepts, either cancels. The owner voids what was
 * signed and not sent. Signatures are checked at one block first; then the operator's key pays for the transaction.
 */
import { parseTokenId, type Hex } from '@touchstone/verdict'
import { keccak256 } from 'viem/utils'
import { zeroHash } from '../../domain/chain.ts'
import type { WriteRequest } from '../../chain/transactions/calls.ts'
import type { TransferPosition, TransferReads } from '../../chain/transactions/transfer-reads.ts'
import { registryDigest } from '../../chain/transactions/typed-data.ts'
import type { Database } from '../../db/database.ts'
import { formatInstant } from '../../domain/text.ts'
import type { TransferRow } from '../../index/queries/transfers.ts'
import { answerRequest, answers, offerOf, type OfferTerms } from '../../ownership/consents.ts'
import { parseTransferId } from '../../ownership/transfer-id.ts'
import type { GraphqlContext } from '../context.ts'
import type { Input, InputError, InputReader } from './inputs.ts'
import { nullIfIncomplete } from '../errors.ts'
import { mutation, productPayload, rejected, rejectedAt, type Writes } from './mutation.ts'
import { putTransferMessage } from './stores.ts'
import { answerErrors, howToSign, invalidationErrors, longestMessage, offerErrors } from './typed-data.ts'

/** `nonce` is the one that was signed. `isPending`: the offer was sent before. */
type CheckedOffer =
  | { readonly ok: true; readonly nonce: number; readonly isPending: boolean }
  | { readonly ok: false; readonly errors: readonly InputError[] }
type SignedOffer = Omit<Extract<CheckedOffer, { ok: true }>, 'ok'> & {
  readonly position: TransferPosition
  readonly terms: OfferTerms
  readonly signature: Hex
}

type OfferInput = Input<'productId' | 'toAddress', 'message' | 'signature' | 'deadline'>

export function createTransferMutations(
  { transfers, database }: { readonly transfers: TransferReads; readonly database: Pick<Database, 'transaction'> },
  { executeSigned, previousRequest }: Writes,
) {
  const initiateTransfer = mutation(
    readOffer,
    async ({ tokenId, to, message, signature, deadline: expiry }, context) => {
      const position = await transfers.position(tokenId)
      const terms: OfferTerms = { tokenId, from: position.record.owner, to, expiry, messageHash: message.hash }
      const signed = await checkOffer(position, terms, signature)
      if (!signed.ok) return (await repeatOffer(terms, signature, context)) ?? rejected(signed.errors)
      const { hash, body } = message
      const offer = { id: idOf(terms, signed.nonce), from: terms.from, to }
      if (body !== null) await putTransferMessage(database, { hash, body, offer })
      return sendOffer({ position, terms, signature, ...signed }, context)
    },
    async ({ productId }: OfferInput) => {
      const tokenId = parseTokenId(productId)
      if (tokenId === null || (await transfers.position(tokenId)).record.state !== 0) return []
      return [{ field: 'productId', message: `Product ${tokenId} does not exist.` }]
    },
  )

  /** Returns the nonce over which the owner signed these terms, or every reason against the offer. */
  async function checkOffer(position: TransferPosition, terms: OfferTerms, signature: Hex): Promise<CheckedOffer> {
    const { offer } = position
    const isSigned = async (nonce: number) =>
      nonce >= 0 && transfers.isSignedBy({ signer: terms.from, signable: offerOf(terms, nonce), signature }, position)
    const before = offer.nonce - 1
    // The same signed offer, sent again while it is pending, is the same transfer.
    if (offer.to === terms.to && offer.expiry === terms.expiry && (await isSigned(before)))
      return { ok: true, nonce: before, isPending: true }
    const errors = offerErrors(position, terms)
    if (errors.length > 0) return { ok: false, errors }
    if (await isSigned(offer.nonce)) return { ok: true, nonce: offer.nonce, isPending: false }
    const message = (await isSigned(before))
      ? `This signature is over nonce ${before}, which is used up: its transfer is over, or the owner has voided it. Ask transferTypedData again and have it signed anew.`
      : `This is not the owner’s signature over these values at nonce ${offer.nonce}: it must be the current owner’s (65 bytes, low s, v 27 or 28; a smart account’s as ERC-1271 takes it). Send productId, toAddress, message and deadline as you gave them to transferTypedData; no other transfer may have come between.`
    return { ok: false, errors: [{ field: 'signature', message }] }
  }

  async function sendOffer({ position, terms, signature, nonce, isPending }: SignedOffer, context: GraphqlContext) {
    const id = idOf(terms, nonce)
    const result = await writeOffer(terms, nonce, signature, context)
    if (result.ok) {
      const indexed = result.indexed ? await nullIfIncomplete(indexedTransfer(context, id)) : null
      const transfer = indexed ?? pendingTransfer(id, terms, result.txHash, position)
      return { success: true, errors: [], txHash: result.txHash, transfer }
    }
    // The same terms may have been signed twice, or sent by another client: the transfer exists all the same.
    const exists = isPending || result.code === 'IDEMPOTENCY_CONFLICT'
    const transfer = exists ? await indexedTransfer(context, id) : null
    if (transfer === null) return rejected(result.errors, result.txHash)
    return { success: true, errors: [], txHash: transfer.initiatedTx, transfer }
  }

  const keyOf = (terms: OfferTerms, nonce: number) =>
    `initiate:${registryDigest(transfers.domain, offerOf(terms, nonce))}`

  function writeOffer({ from, ...call }: OfferTerms, nonce: number, signature: Hex, context: GraphqlContext) {
    const request = { kind: 'initiateTransferBySig', ...call, signature } as const
    const fields = { IDEMPOTENCY_CONFLICT: 'signature' }
    return executeSigned(request, keyOf({ from, ...call }, nonce), context, { fields })
  }

  /** Returns the payload again of an offer that was accepted since: its product has another owner now. Returns null for any other. */
  async function repeatOffer(terms: OfferTerms, signature: Hex, context: GraphqlContext) {
    const made = (await nullIfIncomplete(context.loaders.transfersOf.load(terms.tokenId))) ?? []
    for (const transfer of made.filter(({ status, to }) => status === 'CONFIRMED' && to === terms.to)) {
      const own = { ...terms, from: transfer.from }
      const nonce = (parseTransferId(transfer.id)?.nonce ?? 0) - 1
      if (nonce < 0 || (await previousRequest(keyOf(own, nonce))) === undefined) continue
      const result = await writeOffer(own, nonce, signature, context)
      if (result.ok) return { success: true, errors: [], txHash: result.txHash, transfer }
    }
    return null
  }

  const acceptTransfer = answer('ACCEPT', 'recipient')
  const cancelTransfer = answer('CANCEL', 'owner or the recipient')

  function answer(action: keyof typeof answers, party: string) {
    return mutation(
      (input: AnswerInput, read) => readAnswer(input, action, read),
      async (answered, context) => {
        const { tokenId, nonce, signature } = answered
        const position = await transfers.position(tokenId)
        const errors = await answerErrors(action, position, nonce, context)
        if (errors.length > 0) return repeatAnswer(answered, errors, context)
        const { signers, signable } = answers[action](position, nonce)
        for (const signer of signers)
          if (await transfers.isSignedBy({ signer, signable, signature }, position))
            return sendAnswer(answerRequest(action, { tokenId, signer, signature }), answered, context)
        return rejectedAt(
          'signature',
          `This is not the signature of the ${party} of this transfer over the typed data of action ${action}. Ask transferTypedData and sign that (65 bytes, low s, v 27 or 28; a smart account’s as ERC-1271 takes it).`,
        )
      },
      async ({ transferId }, context) => {
        const parsed = parseTransferId(transferId)
        if (parsed === null) return []
        return answerErrors(action, await transfers.position(parsed.tokenId), parsed.nonce, context)
      },
    )
  }

  /** Returns the first payload again when this very signature has been used for what the chain rejects now. */
  async function repeatAnswer(answered: Answer, errors: readonly InputError[], context: GraphqlContext) {
    const request = await previousRequest(answered.key)
    const payload = request ? await sendAnswer(request, answered, context) : null
    return payload?.success === true ? payload : rejected(errors)
  }

  async function sendAnswer(request: WriteRequest, { key, id }: Answer, context: GraphqlContext) {
    const fields = { ASSET_NOT_FOUND: 'transferId', WRONG_STATE: 'transferId', IDEMPOTENCY_CONFLICT: 'signature' }
    const result = await executeSigned(request, key, context, { fields })
    if (!result.ok) return rejected(result.errors, result.txHash)
    const isBehind = result.mined && !result.indexed
    const transfer = isBehind ? null : () => indexedTransfer(context, id)
    return { success: true, errors: [], txHash: result.txHash, transfer }
  }

  /** The same signature again gives the first outcome: the nonce that it covers is over by then. */
  const invalidateNonce = mutation(
    readInvalidation,
    async ({ tokenId, signature }, context) => {
      const key = `invalidate:${tokenId}:${keccak256(signature)}`
      const isRepeat = (await previousRequest(key)) !== undefined
      const errors = isRepeat ? [] : await invalidationErrors(transfers, { tokenId, signature })
      if (errors.length > 0) return rejected(errors)
      const request = { kind: 'invalidateNonceBySig', tokenId, signature } as const
      return productPayload(tokenId, await executeSigned(request, key, context), context)
    },
    async ({ productId }: InvalidationInput) => {
      const tokenId = parseTokenId(productId)
      return tokenId === null ? [] : invalidationErrors(transfers, { tokenId })
    },
  )

  return { initiateTransfer, acceptTransfer, cancelTransfer, invalidateNonce }
}

/** Returns the id of the transfer that an offer makes: the offer raises the nonce that was signed. */
function idOf({ tokenId }: OfferTerms, nonce: number): string {
  return `${tokenId}-${nonce + 1}`
}

function readOffer(input: OfferInput, read: InputReader) {
  const tokenId = read.productId(input.productId)
  const to = read.address(input.toAddress, 'toAddress')
  const message = read.hashedText(input.message, 'message', longestMessage)
  const signature = read.signature(input.signature, howToSign.INITIATE)
  const deadline = signature === null ? null : read.signedDeadline(input.deadline)
  return { tokenId, to, message, signature, deadline }
}

type InvalidationInput = Input<'productId', 'signature'>

function readInvalidation({ productId, signature }: InvalidationInput, read: InputReader) {
  return { tokenId: read.productId(productId), signature: read.signature(signature, howToSign.INVALIDATE) }
}

type AnswerInput = Input<'transferId', 'signature'>
type Answer = Readonly<{ id: string; tokenId: bigint; nonce: number; signature: Hex; key: string }>

function readAnswer(input: AnswerInput, action: keyof typeof answers, read: InputReader): Answer | null {
  const transfer = read.transferId(input.transferId)
  const signature = read.signature(input.signature, howToSign[action])
  if (transfer === null || signature === null) return null
  return { ...transfer, signature, key: `${action.toLowerCase()}:${transfer.id}:${keccak256(signature)}` }
}

/** Reads the row after the write; the loader may have cached that there was none. */
function indexedTransfer({ loaders }: GraphqlContext, id: string): Promise<TransferRow | null> {
  return loaders.transferById.clear(id).load(id)
}

/** Returns the offer as the index will have it. */
function pendingTransfer(id: string, terms: OfferTerms, txHash: Hex, { time }: TransferPosition): TransferRow {
  const { tokenId, from, to, expiry, messageHash } = terms
  return {
    pk: 0n, // it is on no page yet
    id,
    tokenId,
    from,
    to,
    status: 'PENDING',
    initiatedAt: formatInstant(time),
    initiatedTx: txHash,
    expiresAt: formatInstant(expiry),
    settledTx: null,
    messageHash: messageHash === zeroHash ? null : messageHash,
  }
}
