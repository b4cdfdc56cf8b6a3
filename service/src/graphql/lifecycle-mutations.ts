/** The steps of the lifecycle beyond registering and transfers (spec §3): activate, flag, resolve, recycle. Binding and claiming have files of their own. */
import { assetFlags, reportFlags, type Hex } from '@touchstone/verdict'
import { keccak256, stringToHex, zeroHash } from 'viem'
import type { TransferReads } from '../chain/transfer-reads.ts'
import { digestOf } from '../chain/transfer-typed-data.ts'
import { sentRequest } from '../chain/write-calls-sent.ts'
import type { WriteRequest } from '../chain/write-calls.ts'
import type { StoredOperation } from '../chain/writer-store.ts'
import type { GraphqlContext } from './context.ts'
import { operationKeyOf, productIdOf, say, signatureOf, signedDeadlineOf, textOf } from './mutation-inputs.ts'
import type { InputError, Maybe } from './mutation-inputs.ts'
import { productPayload, refused, type CarryOut } from './mutation-writes.ts'
import { deadlineErrors, stateErrors } from './transfer-rules.ts'

export type LifecycleDeps = Readonly<{
  transfers: TransferReads
  operations: Readonly<{ find: (key: string) => Promise<StoredOperation | undefined> }>
}>

type StepInput = Readonly<{ productId: string; idempotencyKey?: Maybe<string> }>
type Report = keyof typeof assetFlags
type FlagInput = StepInput & Readonly<{ reports: readonly Report[]; note?: Maybe<string> }>
type ResolveInput = StepInput & Readonly<{ reports?: Maybe<readonly Report[]>; note?: Maybe<string> }>
type RecycleInput = StepInput & Readonly<{ signature?: Maybe<string>; deadline?: Maybe<string> }>

const howToRecycle =
  'A claimed product is recycled by its owner’s signature only. Ask transferTypedData with action RECYCLE and this productId, let the owner’s wallet sign its typedData (eth_signTypedData_v4), and send the signature with its deadline.'

export function createLifecycleMutations({ transfers, operations }: LifecycleDeps, { carryOut }: CarryOut) {
  async function write(request: WriteRequest & { readonly tokenId: bigint }, key: string, context: GraphqlContext) {
    return productPayload(request.tokenId, await carryOut(request, key, context), context)
  }

  async function activate({ input }: { input: StepInput }, context: GraphqlContext) {
    const errors: InputError[] = []
    const step = stepOf(input, errors)
    if (step === null) return refused(errors)
    return write({ kind: 'activate', tokenId: step.tokenId }, step.key, context)
  }

  async function flag({ input }: { input: FlagInput }, context: GraphqlContext) {
    const errors: InputError[] = []
    const step = stepOf(input, errors)
    const bits = bitsOf(input.reports, errors)
    const reasonHash = noteOf(input.note, errors)
    if (step === null || errors.length > 0) return refused(errors)
    return write({ kind: 'flag', tokenId: step.tokenId, bits, reasonHash }, step.key, context)
  }

  async function resolve({ input }: { input: ResolveInput }, context: GraphqlContext) {
    const errors: InputError[] = []
    const step = stepOf(input, errors)
    const { reports = null } = input
    const named = reports === null ? null : bitsOf(reports, errors)
    const reasonHash = noteOf(input.note, errors)
    if (step === null || errors.length > 0) return refused(errors)
    const { tokenId, key } = step
    const bits = named ?? (await allReports(tokenId, key))
    if (bits === 0) return refused([{ field: 'reports', message: `Product ${tokenId} has no reports.` }])
    return write({ kind: 'resolve', tokenId, bits, reasonHash }, key, context)
  }

  /** All reports of a product; under a key that was used before, those that were taken back then. */
  async function allReports(tokenId: bigint, key: string): Promise<number> {
    const known = await operations.find(key)
    const sent = known === undefined ? null : sentRequest(known.raw)
    if (sent?.kind === 'resolve' && sent.tokenId === tokenId) return sent.bits
    return (await transfers.position(tokenId)).record.flags & reportFlags
  }

  async function recycle({ input }: { input: RecycleInput }, context: GraphqlContext) {
    const errors: InputError[] = []
    const step = stepOf(input, errors)
    const { signature = null } = input
    const consent = signature === null ? null : consentOf({ ...input, signature }, errors)
    if (step === null || errors.length > 0) return refused(errors)
    const { tokenId, key } = step
    if (consent === null) {
      const done = await carryOut({ kind: 'recycle', tokenId }, key, context)
      if (!done.ok && done.code === 'NOT_OWNER') return refused([{ field: 'signature', message: howToRecycle }])
      return productPayload(tokenId, done, context)
    }
    const isRepeat = (await operations.find(key)) !== undefined
    const reasons = isRepeat ? [] : await consentErrors(tokenId, consent)
    if (reasons.length > 0) return refused(reasons)
    return write({ kind: 'recycleBySig', tokenId, ...consent }, key, context)
  }

  async function consentErrors(tokenId: bigint, { deadline, signature }: Consent): Promise<InputError[]> {
    const position = await transfers.position(tokenId)
    const errors = [...stateErrors(position, 4, 'recycled by its owner'), ...deadlineErrors(position, deadline)]
    if (errors.length > 0) return errors
    const { owner } = position.record
    const message = { tokenId, owner, nonce: position.offer.nonce, deadline }
    const digest = digestOf(transfers.domain, { type: 'Recycle', message })
    if (await transfers.isSignedBy({ signer: owner, digest, signature }, position.block)) return []
    return [{ field: 'signature', message: `This is not the owner’s signature. ${howToRecycle}` }]
  }

  return { activate, flag, resolve, recycle }
}

type Consent = Readonly<{ signature: Hex; deadline: bigint }>

function consentOf(input: RecycleInput, errors: InputError[]): Consent | null {
  const signature = signatureOf(input.signature, howToRecycle, errors)
  const deadline = signedDeadlineOf(input.deadline, errors)
  return signature === null || deadline === null ? null : { signature, deadline }
}

function stepOf({ productId, idempotencyKey }: StepInput, errors: InputError[]) {
  const tokenId = productIdOf(productId, errors)
  const key = operationKeyOf(idempotencyKey, errors)
  return tokenId === null || key === null ? null : { tokenId, key }
}

function bitsOf(reports: readonly Report[], errors: InputError[]): number {
  const bits = reports.reduce((all, report) => all | assetFlags[report], 0)
  if (bits === 0) say(errors, 'reports', 'Name at least one report.')
  if ((bits & assetFlags.TAMPER) !== 0 && bits !== assetFlags.TAMPER)
    say(errors, 'reports', 'TAMPER is the attester’s word, the others are reports: give TAMPER alone.')
  return bits
}

/** Only the hash goes on chain: whoever keeps the note can show later that it was the reason. */
function noteOf(note: Maybe<string>, errors: InputError[]): Hex {
  const text = textOf(note, { field: 'note', max: 1_000, lines: true }, errors)
  return text === null ? zeroHash : keccak256(stringToHex(text))
}
