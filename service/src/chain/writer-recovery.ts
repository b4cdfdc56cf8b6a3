/**
 * What was signed and not mined: sent again byte for byte, given higher fees when it is stuck, and given up only when
 * another transaction has used its nonce at a safe block (spec §4.9).
 */
import type { Hex } from '@touchstone/verdict'
import type { LocalAccount } from 'viem'
import { parseTransaction } from 'viem'
import type { Log } from '../log.ts'
import { minedOutcome, send, supersededOutcome } from './writer-outcome.ts'
import type { Outcome } from './writer-outcome.ts'
import type { WriterRpc } from './writer-rpc.ts'
import type { OperationStore, StoredOperation } from './writer-store.ts'
import { chainUnavailable, currentFees, numberFrom, pendingCount, signTransaction } from './writer-transaction.ts'
import type { SignedTransaction } from './writer-transaction.ts'

export type RecoveryOptions = Readonly<{
  rpc: WriterRpc
  contract: Hex
  chainId: number
  keys: Readonly<Record<string, LocalAccount>>
  operations: OperationStore
  log: Log
  stuckAfterMs: number
  maxFeePerGas: bigint
}>

/** Counts of operations that were open at the start of a recovery. */
export type Recovered = Readonly<{ confirmed: number; failed: number; pending: number }>

export function createRecovery({
  rpc,
  contract,
  chainId,
  keys,
  operations,
  log,
  stuckAfterMs,
  maxFeePerGas,
}: RecoveryOptions) {
  const accounts = new Map(Object.values(keys).map((account) => [account.address.toLowerCase() as Hex, account]))

  /**
   * Settles or sends again all that is open, for every operator key; also what the chain has lost since it was mined.
   * For the start of the service, and safe to repeat at any time.
   */
  async function recover(): Promise<Recovered> {
    const counts = { confirmed: 0, failed: 0, pending: 0 }
    for (const signer of accounts.keys()) {
      const count = await pendingCount(rpc, signer).catch((error: unknown) => {
        throw chainUnavailable(error)
      })
      await operations.reopen(signer, count)
      for (const operation of await operations.pending(signer)) {
        const { status } = await revive(operation)
        counts[status === 'CONFIRMED' ? 'confirmed' : status === 'FAILED' ? 'failed' : 'pending'] += 1
      }
    }
    if (counts.confirmed + counts.failed + counts.pending > 0) log.info('open operations taken up again', counts)
    return counts
  }

  /** The operation as it is now: settled if it was mined or superseded, else sent again. */
  async function revive(operation: StoredOperation): Promise<StoredOperation> {
    const outcome =
      (await minedOutcome(rpc, await operations.hashes(operation), contract)) ?? (await supersededBy(operation))
    if (outcome !== undefined) {
      await operations.settle(operation.key, outcome.status, outcome.text)
      return { ...operation, status: outcome.status, outcome: outcome.text }
    }
    const current = operation.ageMs < stuckAfterMs ? operation : await withHigherFees(operation)
    await send(rpc, current, log)
    return current
  }

  /** Another transaction has the nonce, deep enough that this one never comes back. */
  async function supersededBy({ signer, nonce, txHash, key }: StoredOperation): Promise<Outcome | undefined> {
    const used = await numberFrom(rpc, 'eth_getTransactionCount', [signer, 'safe'])
    if (used <= nonce) return undefined
    // It may have been mined between the two questions.
    return (await minedOutcome(rpc, await operations.hashes({ key, txHash }), contract)) ?? supersededOutcome(txHash)
  }

  /** Nodes replace a transaction only for fees at least 10 % higher. Without a better price the old bytes stay. */
  async function withHigherFees(operation: StoredOperation): Promise<StoredOperation> {
    const account = accounts.get(operation.signer)
    const {
      to,
      data,
      gas,
      maxFeePerGas: oldMax = 0n,
      maxPriorityFeePerGas: oldTip = 0n,
    } = parseTransaction(operation.raw)
    const current = await currentFees(rpc)
    if (account === undefined || !to || data === undefined || gas === undefined || current.maxFeePerGas <= oldMax)
      return operation
    const fees = {
      maxFeePerGas: larger(current.maxFeePerGas, raised(oldMax)),
      maxPriorityFeePerGas: larger(current.maxPriorityFeePerGas, raised(oldTip)),
    }
    if (fees.maxFeePerGas > maxFeePerGas) return operation
    const replacement = await signTransaction(account, { chainId, to, data, gas, nonce: operation.nonce, fees })
    if (!(await operations.replace(operation.txHash, replacement))) return operation
    log.info('stuck transaction replaced', { txHash: operation.txHash, by: replacement.txHash })
    return { ...operation, ...replacement, ageMs: 0 }
  }

  /** Sends again what stands before `operation`: its own nonce cannot be mined while an earlier one is missing. */
  async function resendBefore(operation: StoredOperation, fromNonce: bigint): Promise<void> {
    await operations.reopen(operation.signer, fromNonce, lostAfterMs)
    const earlier = await operations.pending(operation.signer, fromNonce)
    const waiting = earlier.filter(({ nonce, ageMs }) => nonce < operation.nonce && ageMs > inFlightMs)
    for (const old of waiting as SignedTransaction[]) await send(rpc, old, log)
  }

  return { recover, revive, resendBefore }
}

/** Younger transactions are being sent right now, by whoever signed them. */
const inFlightMs = 2_000
/** A transaction settled longer ago than any answer takes, and still not counted by the node, has left the chain. */
const lostAfterMs = 30_000

function raised(fee: bigint): bigint {
  return (fee * 9n) / 8n + 1n
}

function larger(one: bigint, other: bigint): bigint {
  return one > other ? one : other
}
