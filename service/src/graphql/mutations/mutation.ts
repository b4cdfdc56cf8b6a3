/**
 * Every mutation takes the same steps (spec §4.9, §7): scope, input, one write under its key, a short wait for the index, payload. A
 * rejection by the contract is an error of the payload, at its field; only a fault is a GraphQL error.
 */
import type { Hex } from '@touchstone/verdict'
import { sentRequest, type WriteRequest } from '../../chain/transactions/calls.ts'
import { type WriteFailure, writeFailure, writeWithNextKey } from '../../chain/transactions/failures.ts'
import type { OperationStore } from '../../chain/transactions/operations.ts'
import type { TransferReads } from '../../chain/transactions/transfer-reads.ts'
import type { WriteOptions, Writer } from '../../chain/transactions/writer.ts'
import type { Actor } from '../../db/audit.ts'
import type { Log } from '../../lib/log.ts'
import type { ApiKey } from '../../access/api-keys.ts'
import type { Approvals } from '../../access/approvals/approvals.ts'
import type { GraphqlContext } from '../context.ts'
import type { Resolver } from '../schema.ts'
import { readInput, type InputError, type InputReader, type Valid } from './inputs.ts'

/**
 * Makes a resolver of a reader of the input and of the work with its values. `reasonsAgainst` finds why an unsigned step is impossible: its
 * errors replace those about the signature.
 */
export function mutation<Input, Values>(
  readValues: (input: Input, read: InputReader) => Values | null,
  run: (values: Valid<Values>, context: GraphqlContext) => Promise<unknown>,
  reasonsAgainst?: (input: Input, context: GraphqlContext) => Promise<readonly InputError[]>,
): Resolver {
  return async (_source, { input }: { readonly input: Input }, context) => {
    const found = readInput((read) => readValues(input, read))
    if (found.ok) return run(found.values, context)
    const isUnsigned = found.errors.every(({ field }) => field === 'signature' || field === 'deadline')
    const reasons = (isUnsigned && (await reasonsAgainst?.(input, context))) || []
    return rejected(reasons.length > 0 ? reasons : found.errors)
  }
}

/** The payload of a mutation that wrote nothing. */
export function rejected(errors: readonly InputError[], txHash?: Hex) {
  return { success: false, errors, txHash: txHash ?? null }
}

export function rejectedAt(field: string, message: string) {
  return rejected([{ field, message }])
}

/** The payload of a step of the lifecycle. The product is null while the index is behind. A fault of its read is one of that field alone. */
export async function productPayload(tokenId: bigint, result: MutationOutcome, { loaders }: GraphqlContext) {
  if (!result.ok) return rejected(result.errors, result.txHash)
  const product = result.indexed ? () => loaders.productByToken.clear(tokenId).load(tokenId) : null
  return { success: true, errors: [], txHash: result.txHash, product }
}

export type WriteDeps = Readonly<{
  writer: Pick<Writer, 'write' | 'simulate'>
  operations: Pick<OperationStore, 'find'>
  approvals: Pick<Approvals, 'findByKey'>
  transfers: Pick<TransferReads, 'reached'>
  /** Announces a mined block to the readers of this process. Resolves whether it was indexed within two seconds. */
  awaitIndexed: (block: bigint) => Promise<boolean>
  log: Log
}>

/**
 * `tokenIds` are those that were minted. `mined` and `indexed` are false while the chain or the index is behind. `repeated`: it was sent
 * before.
 */
export type Written = Readonly<{
  ok: true
  txHash: Hex
  repeated: boolean
  mined: boolean
  indexed: boolean
  tokenIds: readonly bigint[]
}>
type FailureCode = WriteFailure['code']
export type MutationOutcome =
  | Written
  | Readonly<{ ok: false; code: FailureCode; errors: readonly InputError[]; txHash: Hex | undefined }>

type FailureFields = Readonly<Partial<Record<FailureCode, string>>>

/** `fields` are those of failures, where they differ from those below. */
type WriteExtras = Pick<WriteOptions, 'guard' | 'terms'> & { readonly fields?: FailureFields }

export type Writes = ReturnType<typeof createWrites>

/** Returns who acts, for the audit trail. */
export function actorOf({ key, requestId }: GraphqlContext): Actor {
  return { who: `key:${key.id}`, requestId }
}

export function createWrites({ writer, operations, approvals, transfers, awaitIndexed, log }: WriteDeps) {
  /** Writes under a key. Throws CHAIN_UNAVAILABLE when nothing was signed because the chain did not answer. */
  async function executeWrite(
    request: WriteRequest,
    idempotencyKey: string,
    context: GraphqlContext,
    { fields = {}, ...more }: WriteExtras = {},
  ): Promise<MutationOutcome> {
    // The key of a request for approval is used, although nothing may be sent under it yet.
    if ((await approvals.findByKey(idempotencyKey)) !== null)
      return failed(writeFailure('IDEMPOTENCY_CONFLICT'), fields)
    const result = await writer.write(request, { idempotencyKey, by: actorOf(context), ...more })
    if (!result.ok) return failed(result, fields)
    const { txHash, repeated } = result
    log.info('written', { kind: request.kind, apiKey: context.key.id, repeated, txHash })
    if (result.status === 'PENDING') return { ok: true, txHash, repeated, mined: false, indexed: false, tokenIds: [] }
    const { blockNumber, tokenIds } = result
    return { ok: true, txHash, repeated, mined: true, indexed: await awaitBlock(blockNumber), tokenIds }
  }

  /** Announces a mined block to all readers of this process, and waits for the index a little. */
  function awaitBlock(block: bigint): Promise<boolean> {
    transfers.reached(block)
    return awaitIndexed(block)
  }

  /** Returns why the contract would reject a request now, or null. Throws CHAIN_UNAVAILABLE. */
  async function rejectionOf(request: WriteRequest): Promise<Extract<MutationOutcome, { ok: false }> | null> {
    const result = await writer.simulate(request)
    return result.ok ? null : failed(result, {})
  }

  /** Writes a step whose key follows from its signature. After a try that reverted, the next is made or returns its reason. */
  async function executeSigned(
    request: WriteRequest,
    baseKey: string,
    context: GraphqlContext,
    extras: WriteExtras = {},
  ): Promise<MutationOutcome> {
    return writeWithNextKey((tried) =>
      executeWrite(request, tried === 1 ? baseKey : `${baseKey}:${tried}`, context, extras),
    )
  }

  /** Returns the key of the operation for an idempotency key, which belongs to the API key that sends it. */
  function operationKeyOf(idempotencyKey: string, { key }: GraphqlContext): Promise<string> {
    const own = `graphql:${ownedKey(key, idempotencyKey)}`
    return storedKey(own, `graphql:${idempotencyKey}`, async (one) => (await operations.find(one)) !== undefined)
  }

  /** Returns the request that was sent under a key, as `sentRequest` does. The key of a request for approval gives null. */
  async function previousRequest(key: string) {
    return (await approvals.findByKey(key)) === null ? sentRequest(operations, key) : null
  }

  return { executeWrite, executeSigned, awaitBlock, rejectionOf, operationKeyOf, previousRequest }
}

/** Joins an idempotency key to its API key by a space, which neither holds. */
export function ownedKey({ id }: ApiKey, idempotencyKey: string): string {
  return `${id} ${idempotencyKey}`
}

/** Returns the key that has a row: rows of earlier versions name no API key and keep their meaning. */
export async function storedKey(
  own: string,
  former: string,
  isStored: (key: string) => Promise<boolean>,
): Promise<string> {
  return !(await isStored(own)) && (await isStored(former)) ? former : own
}

/** The field that a failure is about. The others are about the whole input. */
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

function failed(
  { code, message, txHash }: WriteFailure,
  fields: FailureFields,
): Extract<MutationOutcome, { ok: false }> {
  return { ok: false, code, errors: [{ field: fields[code] ?? fieldOf[code] ?? 'input', message }], txHash }
}
