/** Sends steps that visitors of a page have signed; the operator's relayer pays (spec §3). */
import { createHash } from 'node:crypto'
import type { Hex } from '@touchstone/verdict'
import { sentRequest, type WriteRequest } from '../chain/transactions/calls.ts'
import type { OperationStore } from '../chain/transactions/operations.ts'
import type { TransferReads } from '../chain/transactions/transfer-reads.ts'
import type { Writer } from '../chain/transactions/writer.ts'

export type Sent = { readonly status: 'mined' | 'sent'; readonly txHash: Hex }
/** `taken`: the state of the item does not allow the step. `used`: the key was used for another step. `refused`: it cannot be sent now. */
export type SendOutcome = Sent | 'taken' | 'used' | 'refused'

export type SignedWriteParts = {
  readonly writer: Pick<Writer, 'write' | 'attestClaim'>
  readonly operations: Pick<OperationStore, 'find'>
  readonly transfers: TransferReads
}

/** A transaction that was mined and reverted is sent again under another key, this often at most. */
const mostTries = 5

export function createSignedWrites({ writer, operations, transfers }: SignedWriteParts) {
  async function sendOnce(request: WriteRequest, idempotencyKey: string, requestId?: string) {
    const by = { who: 'page', ...(requestId !== undefined && { requestId }) }
    const result = await writer.write(request, { idempotencyKey, by })
    if (!result.ok) return result.code
    if (result.status === 'SIMULATED') throw new Error('A step was only simulated.')
    if (result.status === 'CONFIRMED') transfers.reached(result.blockNumber)
    return { status: result.status === 'CONFIRMED' ? ('mined' as const) : ('sent' as const), txHash: result.txHash }
  }

  /** Sends a step once: the same step under the same key gets the first outcome. Throws CHAIN_UNAVAILABLE. */
  async function send(request: WriteRequest, key: string, requestId?: string): Promise<SendOutcome> {
    for (let tried = 1; ; tried += 1) {
      const result = await sendOnce(request, tried === 1 ? key : `${key}:${tried}`, requestId)
      if (typeof result === 'object') return result
      const isFinal = (result !== 'REVERTED' && result !== 'SUPERSEDED') || tried === mostTries
      if (isFinal) return outcomes[result] ?? 'refused'
    }
  }

  /**
   * Returns the request that was sent under a key, or undefined for none. A kind that follows from the input alone
   * returns null.
   */
  async function previous(key: string): Promise<WriteRequest | null | undefined> {
    const operation = await operations.find(key)
    return operation && sentRequest(operation.raw)
  }

  return { send, previous }
}

const outcomes: Readonly<Record<string, SendOutcome>> = {
  WRONG_STATE: 'taken',
  NO_PENDING_TRANSFER: 'taken',
  TRANSFER_PENDING: 'taken',
  TRANSFER_EXPIRED: 'taken',
  IDEMPOTENCY_CONFLICT: 'used',
}

/** Makes the key of an operation. It holds no address and no signature, because keys of operations are listed. */
export function stepKey(step: string, ...values: readonly (string | number | bigint)[]): string {
  return `page-${step}:${createHash('sha256').update(values.join(' ')).digest('hex')}`
}
