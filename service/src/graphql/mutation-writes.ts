/**
 * How every mutation writes (spec §4.9, §7): once under its key, then a short wait for the index, so that the answer shows
 * what was done. What the contract refuses is an error of the payload, at the field it is about.
 */
import type { Hex } from '@touchstone/verdict'
import type { AssetReader } from '../chain/asset-reader.ts'
import type { TransferReads } from '../chain/transfer-reads.ts'
import type { WriteRequest } from '../chain/write-calls.ts'
import type { Writer, WriteResult } from '../chain/writer.ts'
import { ServiceError } from '../errors.ts'
import type { Log } from '../log.ts'
import type { GraphqlContext } from './context.ts'
import type { InputError } from './mutation-inputs.ts'

/** The index, as far as mutations wait for it. */
type IndexWait = Readonly<{
  /** Whether a block was indexed within the time, in milliseconds. */
  until: (block: bigint, withinMs: number) => Promise<boolean>
  /** There is a new block: look now. */
  nudge: () => void
}>

export type WriteDeps = Readonly<{
  writer: Pick<Writer, 'write'>
  transfers: Pick<TransferReads, 'reached'>
  reader: Pick<AssetReader, 'dropHead'>
  index: IndexWait
  log: Log
}>

/** `tokenIds` are those that were minted; `mined` and `indexed` are false while the chain or the index has not got there. */
export type Written = Readonly<{
  ok: true
  txHash: Hex
  mined: boolean
  indexed: boolean
  tokenIds: readonly bigint[]
}>
export type NotWritten = Readonly<{ ok: false; code: FailureCode; errors: readonly InputError[]; txHash?: Hex }>
export type CarryOut = ReturnType<typeof createCarryOut>
type Failure = Extract<WriteResult, { ok: false }>
type Done = Extract<WriteResult, { status: 'CONFIRMED' | 'PENDING' }>
type FailureCode = Failure['code']

/** Which field a failure is about, where it is not the one below. */
export type FailureFields = Readonly<Partial<Record<FailureCode, string>>>

const indexWaitMs = 2_000

/** Signed steps have no key of the caller's: one that reverted is tried under another, this often at most. */
const mostTries = 5

export function createCarryOut({ writer, transfers, reader, index, log }: WriteDeps) {
  async function shown(result: Done): Promise<Written> {
    const { txHash } = result
    if (result.status === 'PENDING') return { ok: true, txHash, mined: false, indexed: false, tokenIds: [] }
    const { blockNumber, tokenIds } = result
    reader.dropHead(blockNumber)
    transfers.reached(blockNumber)
    index.nudge()
    return { ok: true, txHash, mined: true, indexed: await index.until(blockNumber, indexWaitMs), tokenIds }
  }

  /** Writes under a key. Throws CHAIN_UNAVAILABLE when nothing was signed because the chain did not answer. */
  async function carryOut(
    request: WriteRequest,
    idempotencyKey: string,
    { key: { id } }: GraphqlContext,
    fields: FailureFields = {},
  ): Promise<Written | NotWritten> {
    const result = await writer.write(request, { idempotencyKey })
    if (!result.ok) return notWritten(result, fields)
    if (result.status === 'SIMULATED') throw new ServiceError('INTERNAL', 'A write was only simulated.')
    log.info('written', { kind: request.kind, apiKey: id, txHash: result.txHash })
    return shown(result)
  }

  /** The same for steps whose key follows from what was signed: after a reverted try, the next says why it cannot be, or does it. */
  async function carryOutSigned(
    request: WriteRequest,
    baseKey: string,
    context: GraphqlContext,
    fields: FailureFields = {},
  ): Promise<Written | NotWritten> {
    for (let tried = 1; ; tried += 1) {
      const done = await carryOut(request, tried === 1 ? baseKey : `${baseKey}:${tried}`, context, fields)
      const isOver = done.ok || (done.code !== 'REVERTED' && done.code !== 'SUPERSEDED')
      if (isOver || tried === mostTries) return done
    }
  }

  return { carryOut, carryOutSigned }
}

/** The field of each failure that is about one; the others are about the whole input. */
const fieldOf: FailureFields = {
  ASSET_NOT_FOUND: 'productId',
  WRONG_STATE: 'productId',
  TRANSFER_PENDING: 'productId',
  TRANSFER_TO_OWNER: 'toAddress',
  ZERO_ADDRESS: 'toAddress',
  EXPIRY_PASSED: 'deadline',
  SIGNATURE_EXPIRED: 'deadline',
  INVALID_SIGNATURE: 'signature',
  NO_PENDING_TRANSFER: 'transferId',
  TRANSFER_EXPIRED: 'transferId',
  NOT_TRANSFER_PARTY: 'signature',
  NOT_OWNER: 'productId',
  TAG_TAKEN: 'uid',
  INVALID_FLAGS: 'reports',
  FLAGS_ALREADY_SET: 'reports',
  FLAGS_NOT_SET: 'reports',
  FLAGS_NOT_ALLOWED: 'reports',
  IDEMPOTENCY_CONFLICT: 'idempotencyKey',
}

function notWritten({ code, message, txHash }: Failure, fields: FailureFields): NotWritten {
  const field = fields[code] ?? fieldOf[code] ?? 'input'
  return { ok: false, code, errors: [{ field, message }], ...(txHash === undefined ? {} : { txHash }) }
}

/** A payload that says why nothing was done. */
export function refused(errors: readonly InputError[], txHash?: Hex) {
  return { success: false, errors, txHash: txHash ?? null }
}

/** The payload of a step of the lifecycle; the product as it is afterwards, or null while the index has not got there. */
export async function productPayload(tokenId: bigint, done: Written | NotWritten, { loaders }: GraphqlContext) {
  if (!done.ok) return refused(done.errors, done.txHash)
  const product = done.indexed ? await loaders.productByToken.clear(tokenId).load(tokenId) : null
  return { success: true, errors: [], txHash: done.txHash, product }
}
