/** Sends steps that visitors of a page have signed; the operator's relayer pays (spec §3). */
import { hash } from 'node:crypto'
import type { Hex } from '@touchstone/verdict'
import { sentRequest, type WriteRequest } from '../chain/transactions/calls.ts'
import { writeWithNextKey } from '../chain/transactions/failures.ts'
import type { OperationStore } from '../chain/transactions/operations.ts'
import type { TransferReads } from '../chain/transactions/transfer-reads.ts'
import type { Writer } from '../chain/transactions/writer.ts'

export type SentWrite = { readonly status: 'mined' | 'sent'; readonly txHash: Hex }
/** `taken`: the state of the item does not allow the step. `used`: the key was used for another step. `refused`: it cannot be sent now. */
export type SendOutcome = SentWrite | 'taken' | 'used' | 'refused'

export type SignedWriteDeps = {
  readonly writer: Pick<Writer, 'write' | 'attestClaim'>
  readonly operations: Pick<OperationStore, 'find'>
  readonly transfers: TransferReads
}

export function createSignedWrites({ writer, operations, transfers }: SignedWriteDeps) {
  /** Sends a step once: the same step under the same key gets the first outcome. Throws CHAIN_UNAVAILABLE. */
  async function send(request: WriteRequest, key: string, requestId?: string): Promise<SendOutcome> {
    const by = { who: 'page', ...(requestId !== undefined && { requestId }) }
    const result = await writeWithNextKey((tried) =>
      writer.write(request, { idempotencyKey: tried === 1 ? key : `${key}:${tried}`, by }),
    )
    if (!result.ok) return outcomes[result.code] ?? 'refused'
    if (result.status === 'CONFIRMED') transfers.reached(result.blockNumber)
    return { status: result.status === 'CONFIRMED' ? 'mined' : 'sent', txHash: result.txHash }
  }

  const previous = (key: string) => sentRequest(operations, key)

  return {
    send,
    previous,
    /**
     * Sends a step whose signatures all do the same: once one of them was sent, others get its outcome. A party can make any number of
     * signatures, and together they would pass the check before the first is mined. Throws CHAIN_UNAVAILABLE.
     */
    sendFirst: async (request: WriteRequest, key: string, requestId?: string): Promise<SendOutcome> => {
      const outcome = await send((await previous(key)) ?? request, key, requestId)
      const first = outcome === 'used' ? await previous(key) : undefined
      return first ? send(first, key, requestId) : outcome
    },
  }
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
  return `page-${step}:${hash('sha256', values.join(' '))}`
}
