/** Steps of the lifecycle (spec §3): activate, flag, resolve, recycle. */
import { assetFlags, reportFlags } from '@touchstone/verdict'
import type { WriteRequest } from '../../chain/transactions/calls.ts'
import type { TransferReads } from '../../chain/transactions/transfer-reads.ts'
import type { GraphqlContext } from '../context.ts'
import type { Input, InputReader, Maybe } from './inputs.ts'
import { mutation, productPayload, rejected, rejectedAt, type Writes } from './mutation.ts'
import { consentErrors, howToSign } from './transfers/typed-data.ts'

type StepInput = Input<'productId', 'idempotencyKey'>
type FlagName = keyof typeof assetFlags
type FlagInput = Input<'productId', 'note' | 'idempotencyKey'> & { readonly reports: readonly FlagName[] }
type ResolveInput = Input<'productId', 'note' | 'idempotencyKey'> & { readonly reports?: Maybe<readonly FlagName[]> }
type RecycleInput = Input<'productId', 'signature' | 'deadline' | 'idempotencyKey'>

export function createLifecycleMutations(
  { transfers }: { readonly transfers: TransferReads },
  { executeWrite, previousRequest }: Writes,
) {
  async function write(request: WriteRequest & { readonly tokenId: bigint }, key: string, context: GraphqlContext) {
    return productPayload(request.tokenId, await executeWrite(request, key, context), context)
  }

  const activate = mutation(readStep, ({ tokenId, key }, context) => write({ kind: 'activate', tokenId }, key, context))

  const flag = mutation(
    (input: FlagInput, read) => ({
      ...readStep(input, read),
      bits: readFlags(input.reports, read),
      reasonHash: readNote(input.note, read),
    }),
    ({ key, ...values }, context) => write({ kind: 'flag', ...values }, key, context),
  )

  const resolve = mutation(
    (input: ResolveInput, read) => ({
      ...readStep(input, read),
      named: input.reports ? readFlags(input.reports, read) : undefined,
      reasonHash: readNote(input.note, read),
    }),
    async ({ tokenId, key, named, reasonHash }, context) => {
      const bits = named ?? (await allReports(tokenId, key))
      if (bits === 0) return rejectedAt('reports', `Product ${tokenId} has no reports.`)
      return write({ kind: 'resolve', tokenId, bits, reasonHash }, key, context)
    },
  )

  /** Returns all reports of a product. Under a key that was used before these are the reports that were resolved then. */
  async function allReports(tokenId: bigint, key: string): Promise<number> {
    const sent = await previousRequest(key)
    if (sent?.kind === 'resolve' && sent.tokenId === tokenId) return sent.bits
    return (await transfers.position(tokenId)).record.flags & reportFlags
  }

  const recycle = mutation(
    (input: RecycleInput, read) => ({ ...readStep(input, read), consent: readConsent(input, read) }),
    async ({ tokenId, key, consent }, context) => {
      if (consent === undefined) {
        const result = await executeWrite({ kind: 'recycle', tokenId }, key, context)
        if (!result.ok && result.code === 'NOT_OWNER') return rejectedAt('signature', howToSign.RECYCLE)
        return productPayload(tokenId, result, context)
      }
      const isRepeat = (await previousRequest(key)) !== undefined
      const errors = isRepeat ? [] : await consentErrors(transfers, 'RECYCLE', { tokenId, ...consent })
      if (errors.length > 0) return rejected(errors)
      return write({ kind: 'recycleBySig', tokenId, ...consent }, key, context)
    },
  )

  return { activate, flag, resolve, recycle }
}

function readStep({ productId, idempotencyKey }: StepInput, read: InputReader) {
  return { tokenId: read.productId(productId), key: read.operationKey(idempotencyKey) }
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
  if (input.signature === null || input.signature === undefined) return undefined
  const signature = read.signature(input.signature, howToSign.RECYCLE)
  const deadline = read.signedDeadline(input.deadline)
  return signature === null || deadline === null ? null : { signature, deadline }
}
