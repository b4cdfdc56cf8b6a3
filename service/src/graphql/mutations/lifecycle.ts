/** Steps of the lifecycle as mutations (spec §3): bind a tag, activate, claim, flag, resolve, recycle. */
import { assetFlags, lifecycleStates, reportFlags, type Hex } from '@touchstone/verdict'
import { repeatedClaim, type WriteRequest } from '../../chain/transactions/calls.ts'
import { writeFailure } from '../../chain/transactions/failures.ts'
import type { TransferReads } from '../../chain/transactions/transfer-reads.ts'
import type { Writer } from '../../chain/transactions/writer.ts'
import { parseTagUid } from '../../domain/tag-uid.ts'
import { type ForgeryLimiter, type ResolveTap, resolveTapFor, type TapOutcome } from '../../tap/resolve-tap.ts'
import { bindingTerms, mayBind, registerBound } from '../../tap/binding.ts'
import { batchIdPattern } from '../../tap/keys/batch.ts'
import type { TagStore } from '../../tap/tag-registry.ts'
import { type Approvals, formatWaiting } from '../../access/approvals/approvals.ts'
import { type Approval, operationKeyOf as approvalOperation } from '../../access/approvals/store.ts'
import type { GraphqlContext } from '../context.ts'
import { isGiven } from '../queries/pages.ts'
import { isFilled, type Input, type InputError, type InputReader, type Maybe, type Valid } from './inputs.ts'
import {
  actorOf,
  mutation,
  productPayload,
  rejected,
  rejectedAt,
  type MutationOutcome,
  type Writes,
} from './mutation.ts'
import { type ModelDeps, modelError } from './models.ts'
import { consentErrors, howToSign } from './typed-data.ts'

type StepInput = Input<'productId', 'idempotencyKey'>
type FlagName = keyof typeof assetFlags
type FlagInput = Input<'productId', 'note' | 'idempotencyKey'> & { readonly reports: readonly FlagName[] }
type ResolveInput = Input<'productId', 'note' | 'idempotencyKey'> & { readonly reports?: Maybe<readonly FlagName[]> }
type RecycleInput = Input<'productId', 'signature' | 'deadline' | 'idempotencyKey'>

export function createLifecycleMutations(
  { transfers, approvals }: { readonly transfers: TransferReads; readonly approvals: Approvals },
  { executeWrite, rejectionOf, operationKeyOf, previousRequest }: Writes,
) {
  async function write(request: WriteRequest & { readonly tokenId: bigint }, key: string, context: GraphqlContext) {
    const operationKey = await operationKeyOf(key, context)
    return productPayload(request.tokenId, await executeWrite(request, operationKey, context), context)
  }

  const step = (kind: 'activate' | 'announceRecycle') =>
    mutation(readStep, ({ tokenId, key }, context) => write({ kind, tokenId }, key, context))

  const flagProduct = mutation(
    (input: FlagInput, read) => ({
      ...readStep(input, read),
      bits: readFlags(input.reports, read),
      reasonHash: readNote(input.note, read),
    }),
    ({ key, ...values }, context) => write({ kind: 'flag', ...values }, key, context),
  )

  const resolveProduct = mutation(
    (input: ResolveInput, read) => ({
      ...readStep(input, read),
      named: input.reports ? readFlags(input.reports, read) : undefined,
      reasonHash: readNote(input.note, read),
    }),
    async ({ tokenId, key, named, reasonHash }, context) => {
      const bits = named ?? (await allReports(tokenId, await operationKeyOf(key, context)))
      if (bits === 0) return rejectedAt('reports', `Product ${tokenId} has no reports.`)
      return write({ kind: 'resolve', tokenId, bits, reasonHash }, key, context)
    },
  )

  /** Returns all reports of a product. Under a key that was used before these are the reports that were resolved then. */
  async function allReports(tokenId: bigint, operationKey: string): Promise<number> {
    const sent = await previousRequest(operationKey)
    if (sent?.kind === 'resolve' && sent.tokenId === tokenId) return sent.bits
    return (await transfers.position(tokenId)).record.flags & reportFlags
  }

  const recycleProduct = mutation(
    (input: RecycleInput, read) => ({ ...readStep(input, read), consent: readConsent(input, read) }),
    async ({ tokenId, key, consent }, context) => {
      const operationKey = await operationKeyOf(key, context)
      if (consent === undefined) {
        const request = { kind: 'recycle', tokenId } as const
        const known = await approvals.findByKey(operationKey)
        if (known !== null || (approvals.isRequired('recycle') && (await previousRequest(operationKey)) === undefined))
          return recycleByTwo(request, operationKey, known, context)
        return recycled(request, await executeWrite(request, operationKey, context), context)
      }
      const isRepeat = (await previousRequest(operationKey)) !== undefined
      const errors = isRepeat ? [] : await consentErrors(transfers, 'RECYCLE', { tokenId, ...consent })
      if (errors.length > 0) return rejected(errors)
      return write({ kind: 'recycleBySig', tokenId, ...consent }, key, context)
    },
  )

  async function recycled({ tokenId }: Recycling, result: MutationOutcome, context: GraphqlContext) {
    if (!result.ok && result.code === 'NOT_OWNER') return rejectedAt('signature', howToSign.RECYCLE)
    return productPayload(tokenId, result, context)
  }

  /** Asks for the approval of a second key. Repeated, it answers with what became of the request. */
  async function recycleByTwo(request: Recycling, requestKey: string, known: Approval | null, context: GraphqlContext) {
    const subject = request.tokenId.toString()
    const rejection = known === null ? await rejectionOf(request) : null
    if (rejection !== null) return recycled(request, rejection, context)
    const asked = await approvals.request({ act: 'recycle', subject, requestKey }, actorOf(context))
    if (!asked.ok)
      return asked.because === 'missing'
        ? rejectedAt('productId', `Product ${subject} does not exist.`)
        : rejectedAt('idempotencyKey', writeFailure('IDEMPOTENCY_CONFLICT').message)
    const { approval } = asked
    const isSent = approval.txHash !== null
    const payload = isSent
      ? await recycled(request, await executeWrite(request, approvalOperation(approval.id), context), context)
      : rejectedAt('input', formatWaiting(approval))
    return { ...payload, approval }
  }

  return {
    activateProduct: step('activate'),
    flagProduct,
    resolveProduct,
    recycleProduct,
    announceRecycle: step('announceRecycle'),
  }
}

type Recycling = Readonly<{ kind: 'recycle'; tokenId: bigint }>

function readStep({ productId, idempotencyKey }: StepInput, read: InputReader) {
  return { tokenId: read.productId(productId), key: read.idempotencyKey(idempotencyKey) }
}

function readFlags(names: readonly FlagName[], read: InputReader): number {
  const bits = names.reduce((all, name) => all | assetFlags[name], 0)
  if (bits === 0) read.reject('reports', 'Name at least one report.')
  if ((bits & assetFlags.TAMPER) !== 0 && bits !== assetFlags.TAMPER)
    read.reject('reports', 'TAMPER is the attester’s word, the others are reports: give TAMPER alone.')
  return bits
}

/** The chain holds the hash of the note, which shows later that this note was the reason. */
function readNote(note: Maybe<string>, read: InputReader) {
  return read.hashedText(note, 'note', 1_000).hash
}

function readConsent(input: RecycleInput, read: InputReader) {
  if (!isGiven(input.signature)) return undefined
  const signature = read.signature(input.signature, howToSign.RECYCLE)
  const deadline = read.signedDeadline(input.deadline)
  return signature === null || deadline === null ? null : { signature, deadline }
}

export type BindDeps = ModelDeps &
  Readonly<{
    tags: Pick<TagStore, 'tagOfUid' | 'tagOfToken' | 'tokenOfItem' | 'importTag' | 'batch'>
    transfers: Pick<TransferReads, 'position'>
    /** The commitment of a tag on chain. Undefined without a pepper. */
    tagHash?: ((uid: Uint8Array) => Hex) | undefined
    /** Reads the token that a tag is bound to under TAG_PEPPER_PREVIOUS; null for none. */
    formerBinding: (uid: Uint8Array) => Promise<bigint | null>
    /** Updates the index after a token was registered as an item. */
    itemChanged: (tokenId: bigint) => Promise<void>
  }>

type BindTagInput = Input<'productId' | 'uid' | 'batchId', 'gtin' | 'serialNumber' | 'idempotencyKey'>

/** A key with brands gets no id of a product that may be of another brand. */
const takenElsewhere = 'The tag or the item is registered already, or the tag is of another batch: take another one.'

const notMined: InputError = {
  field: 'input',
  message: 'The binding is not mined yet, so the tag is not registered here. Repeat this request to register it.',
}

const fieldOf = { batch: 'batchId', tag: 'uid', item: 'serialNumber' } as const

export function createBindTag(
  { tags, transfers, tagHash, formerBinding, itemChanged, classes }: BindDeps,
  { executeWrite, executeSigned, operationKeyOf }: Writes,
) {
  function readBinding(input: BindTagInput, read: InputReader) {
    const tokenId = read.productId(input.productId)
    const uid = readUid(input.uid, read)
    const item = read.item(input)
    if (isFilled(input.serialNumber) && !isFilled(input.gtin))
      read.reject('gtin', 'A serial number is unique within a GTIN only: give the gtin too.')
    const key = isFilled(input.idempotencyKey) ? read.idempotencyKey(input.idempotencyKey) : undefined
    if (!batchIdPattern.test(input.batchId)) read.reject('batchId', 'A batch id has 1 to 64 of A-Z a-z 0-9 . _ and -.')
    const hash = tagHash ?? read.reject('input', 'TAG_PEPPER is not set, so no tag can be bound.')
    return { tokenId, uid, batchId: input.batchId, item, key, hash }
  }

  return mutation(readBinding, async ({ tokenId, uid, batchId, item = null, key, hash }, context) => {
    const allowed = await mayBind(tags, formerBinding, { tokenId, uid, batchId, item, brands: context.key.brands })
    if (!allowed.ok) {
      const isNamed = context.key.brands === null || allowed.own
      return rejectedAt(fieldOf[allowed.about], isNamed ? allowed.message : takenElsewhere)
    }
    const foreign = await modelError({ classes }, item?.gtin, context)
    if (foreign !== null) return rejected([foreign])
    const commitment = hash(uid)
    const request = { kind: 'bindTag', tokenId, tagHash: commitment } as const
    const more = { terms: bindingTerms({ batchId, item }) }
    // The pair is bound once, so it is the key if the caller sends none. A repeat registers the tag that was bound.
    const result =
      key === undefined
        ? await executeSigned(request, `bind:${tokenId}:${commitment}`, context, more)
        : await executeWrite(request, await operationKeyOf(key, context), context, more)
    // The sentence of the contract names the product that has the tag.
    if (!result.ok && result.code === 'TAG_TAKEN' && context.key.brands !== null)
      return rejectedAt('uid', takenElsewhere)
    if (!result.ok) return productPayload(tokenId, result, context)
    if (!result.mined) return rejected([notMined], result.txHash)
    const binding = { tokenId, uid, batchId, item, epoch: allowed.epoch }
    const registered = await registerBound(tags, binding, actorOf(context), async () =>
      result.repeated ? lateError(tokenId) : null,
    )
    if (typeof registered === 'object') return rejected([{ field: 'uid', message: registered.refusal }], result.txHash)
    if (item !== null && registered === 'registered') await itemChanged(tokenId)
    return productPayload(tokenId, result, context)
  })

  /** Returns why a repeat registers nothing: what is sold is registered by the operator only. */
  async function lateError(tokenId: bigint): Promise<string | null> {
    const state = lifecycleStates[(await transfers.position(tokenId)).record.state]
    if (state === 'BOUND') return null
    return `Product ${tokenId} is ${state}: its tag is bound, and no longer registered by bindTag. The operator registers it: touchstone tag import`
  }
}

function readUid(text: string, read: InputReader): Uint8Array | null {
  return parseTagUid(text) ?? read.reject('uid', 'A UID has 14 hex digits and begins with 04.')
}

export type ClaimDeps = Readonly<{
  writer: Pick<Writer, 'attestClaim'>
  transfers: TransferReads
  resolveTap: ResolveTap
  /** Counts the failed cryptograms of each key. */
  forgeryLimiter?: ForgeryLimiter | undefined
}>

type ClaimInput = Input<
  'productId' | 'claimant' | 'picc' | 'cmac',
  'hint' | 'signature' | 'deadline' | 'idempotencyKey'
>

type Claim = Valid<ReturnType<typeof readClaim>>

function readClaim(input: ClaimInput, read: InputReader) {
  const { picc, cmac } = input
  const tokenId = read.productId(input.productId)
  const claimant = read.address(input.claimant, 'claimant')
  const signature = read.signature(input.signature, howToSign.CLAIM)
  const deadline = signature === null ? null : read.signedDeadline(input.deadline)
  if (!/^[0-9a-fA-F]{32}$/.test(picc)) read.reject('picc', 'It has 32 hex digits, from the address that the tap gave.')
  if (!/^[0-9a-fA-F]{16}$/.test(cmac)) read.reject('cmac', 'It has 16 hex digits, from the address that the tap gave.')
  const hint = input.hint?.slice(0, 16)
  return { tokenId, claimant, signature, deadline, picc, cmac, hint, key: read.idempotencyKey(input.idempotencyKey) }
}

const fields = { ZERO_ADDRESS: 'claimant' } as const

export function createClaimProduct(
  { writer, transfers, ...taps }: ClaimDeps,
  { executeWrite, operationKeyOf, previousRequest }: Writes,
) {
  return mutation(readClaim, async (claim, context) => {
    const asked = { ...claim, key: await operationKeyOf(claim.key, context) }
    const before = await previousRequest(asked.key)
    if (before !== undefined) return repeatClaim(before, asked, context)
    const payload = await claimNow(asked, context)
    if (payload.success || payload.txHash !== null) return payload
    // Another process may have sent the same request meanwhile, with an attestation of its own.
    const meanwhile = await previousRequest(asked.key)
    return meanwhile === undefined ? payload : repeatClaim(meanwhile, asked, context)
  })

  /** Verifies the tap, and sends the claim with an attestation of this moment. */
  async function claimNow(claim: Claim, context: GraphqlContext) {
    const { tokenId, claimant, signature: claimantSignature, deadline, picc, cmac, hint, key } = claim
    const errors = await consentErrors(transfers, 'CLAIM', claim)
    if (errors.length > 0) return rejected(errors)
    const tapped = await resolveTapFor(`key ${context.key.id}`, taps, { picc, cmac, hint })
    if (tapped.kind === 'busy' && tapped.status === 429)
      return rejectedAt('picc', `${tooManyForged}, or again in ${tapped.seconds} s.`)
    if (tapped.kind !== 'resolved') return rejectedAt('picc', tapErrors[tapped.kind])
    const wrongTag = `The tag is not that of product ${tokenId}.`
    if (tapped.verdict.token_id !== tokenId.toString()) return rejectedAt('picc', wrongTag)
    const claimed = { tokenId, claimant, deadline, tapCounter: tapped.tag.tapCounter }
    const attestation = await writer.attestClaim({ ...claimed, tagHash: tapped.tag.tagHash })
    if (!attestation.ok)
      return attestation.code === 'REFUSED' ? rejectedAt('picc', wrongTag) : rejectedAt('input', attestation.message)
    const { attester, attesterSignature } = attestation
    const request = { kind: 'claim', ...claimed, attester, attesterSignature, claimantSignature } as const
    return productPayload(tokenId, await executeWrite(request, key, context, { fields }), context)
  }

  /** Sends the previous request again: the attester would sign another nonce now, and the tap is consumed. */
  async function repeatClaim(sent: WriteRequest | null, claim: Claim, context: GraphqlContext) {
    const request = repeatedClaim(sent, claim)
    if (request === null) return rejectedAt('idempotencyKey', writeFailure('IDEMPOTENCY_CONFLICT').message)
    return productPayload(claim.tokenId, await executeWrite(request, claim.key, context, { fields }), context)
  }
}

const tooManyForged =
  'Many taps that this key sent did not verify, so that this one is not looked for now: send it with the hint of its link'

const tapErrors: Readonly<Record<Exclude<TapOutcome['kind'], 'resolved'>, string>> = {
  not_configured: 'This verifier lacks tag keys, so that the tap cannot be checked.',
  replayed: 'This tap was used before: tap the tag again.',
  busy: 'Many forged taps are arriving, so that this one is not looked for now: send it again.',
  challenge: 'Taps must come in pairs here (TAP_CHALLENGE): claim with touchstone asset claim.',
  unbound: 'The tag is genuine, but bound to no product.',
  malformed: 'The tap did not verify: its cryptogram is not that of a known tag.',
  counterfeit: 'The tap did not verify: its cryptogram is not that of a known tag.',
}
