/**
 * Recovers transactions that were signed and not mined (spec §4.9). They are sent again byte for byte, get higher fees when they are stuck,
 * and are given up only when another transaction has used their nonce at a safe block.
 */
import type { Hex } from '@touchstone/verdict'
import type { LocalAccount } from 'viem'
import { parseTransaction } from 'viem/utils'
import { eachConcurrently } from '../../lib/async/concurrency.ts'
import type { Log } from '../../lib/log.ts'
import {
  isOutcomeInChain,
  isSuperseded,
  keptOutcome,
  minedOutcome,
  type WriteOutcome,
  outcomeBefore,
  send,
  supersededOutcome,
} from './outcome.ts'
import { isAboutRequest, type RpcClient } from '../rpc/client.ts'
import type { Operation, OperationStore } from './operations.ts'
import { throwChainUnavailable } from '../../lib/errors.ts'
import { currentFees, minedCount, numberFrom, replacementFees, signTransaction } from './transaction.ts'

type RecoveryOptions = Readonly<{
  rpc: RpcClient
  contract: Hex
  chainId: number
  keys: Readonly<Record<string, LocalAccount>>
  operations: OperationStore
  log: Log
  stuckAfterMs: number
  maxFeePerGas: bigint
}>

/** Numbers of operations that were open at the start of a recovery. */
type Recovered = Readonly<{ confirmed: number; failed: number; pending: number }>

export function createRecovery(options: RecoveryOptions) {
  const { rpc, contract, chainId, keys, operations, log, stuckAfterMs, maxFeePerGas } = options
  const accounts = new Map(Object.values(keys).map((account) => [account.address.toLowerCase() as Hex, account]))
  let recheckMs = firstRecheckMs

  /**
   * Settles or sends again every open operation of every operator key, former keys included. It does so too for what a reorganisation
   * removed, or mined with another outcome. It runs at the start of the service and may be repeated at any time. `signedMs` leaves out
   * operations that were signed in so many milliseconds: the process that signed one follows it. A failure keeps no other operation waiting,
   * because each has a nonce of its own. The first one is thrown at the end.
   */
  async function recover({ signedMs = 0 } = {}): Promise<Recovered> {
    const counts = { confirmed: 0, failed: 0, pending: 0 }
    async function recoverOne(operation: Operation): Promise<void> {
      const { status } = await revive(operation)
      counts[status === 'CONFIRMED' ? 'confirmed' : status === 'FAILED' ? 'failed' : 'pending'] += 1
    }
    async function recoverSigner(signer: Hex): Promise<void> {
      const count = await minedCount(rpc, signer).catch(throwChainUnavailable)
      await reopenLost(signer, count, { settledMs: 0, limit: 1_000 })
      await recheckSettled(signer)
      // Those that are not mined come first, because the others may have no receipt for a long time.
      const [pending, below] = [await operations.pending(signer, count), await operations.pendingBelow(signer, count)]
      const isDue = ({ ageMs }: Operation) => ageMs >= signedMs
      const open = await eachConcurrently(pending.filter(isDue), 1, recoverOne)
      const mined = await eachConcurrently(below.filter(isDue), atOnce, recoverOne)
      const failures = [...open, ...mined]
      if (failures.length > 0) throw failures[0]
    }
    const signers = [...new Set([...accounts.keys(), ...(await operations.openSigners())])]
    const failures = await eachConcurrently(signers, 1, recoverSigner)
    if (counts.confirmed + counts.failed + counts.pending > 0) log.info('open operations taken up again', counts)
    if (failures.length > 0) throw failures[0]
    recheckMs = laterRecheckMs
    return counts
  }

  /** Reopens operations that were settled lately in a block that another one has replaced. Each block is looked at once. */
  async function recheckSettled(signer: Hex): Promise<void> {
    const looks = new Map<string, ReturnType<typeof isOutcomeInChain>>()
    for (const operation of await operations.settledWithin(signer, recheckMs)) {
      const { outcome } = operation
      if (outcome === null) continue
      const { blockHash = '' } = JSON.parse(outcome) as { blockHash?: string }
      const look = looks.get(blockHash) ?? isOutcomeInChain(rpc, outcome).catch(() => undefined)
      looks.set(blockHash, look)
      if ((await look) === false) await reopenIfLost(operation)
    }
  }

  /**
   * Reopens what the chain has lost: settled operations whose nonce counts as unused. A provider that is behind counts too few. Then the
   * first of them is in the chain, and so are the others. A superseded one says nothing.
   */
  async function reopenLost(signer: Hex, unused: bigint, { settledMs, limit }: Lost): Promise<void> {
    for (const operation of await operations.settledFrom(signer, unused, settledMs, limit)) {
      const isLost = (await reopenIfLost(operation)).status === 'PENDING'
      if (!isLost && !isSuperseded(operation)) return
    }
  }

  /** Reopens a settled operation that a reorganisation removed, or gave another outcome. Returns it as it is now. */
  async function reopenIfLost(operation: Operation): Promise<Operation> {
    const { key, status, outcome } = operation
    if (status === 'PENDING' || outcome === null || !(await isLost(operation, outcome).catch(() => false)))
      return operation
    await operations.reopen(key, outcome, keptOutcome({ status, text: outcome }))
    return (await operations.find(key)) ?? operation
  }

  /** An absence proves nothing, because providers lag behind, start anew and delete what is old. Another block or receipt does. */
  async function isLost(operation: Operation, outcome: string): Promise<boolean> {
    const isInChain = await isOutcomeInChain(rpc, outcome)
    if (isInChain === true) return false
    const mined = await minedOutcome(rpc, await operations.hashes(operation.key), contract)
    if (mined !== undefined) return mined.text !== outcome
    return isInChain === false || (await isChainRestored(operation, outcome))
  }

  /** Returns whether a chain was restored that is before the block of the outcome, and has the nonce unused. */
  async function isChainRestored({ signer, nonce }: Operation, outcome: string): Promise<boolean> {
    if ((await isOutcomeInChain(rpc, outcome, { unanimous: true })) !== undefined) return false
    return (await minedCount(rpc, signer, { unanimous: true })) <= nonce
  }

  /** Settles an operation that was mined or superseded, and sends any other again. Returns it as it is now. */
  async function revive(operation: Operation): Promise<Operation> {
    const outcome =
      (await minedOutcome(rpc, await operations.hashes(operation.key), contract)) ?? (await withoutReceipt(operation))
    if (outcome !== undefined) {
      await operations.settle(operation.key, outcome.status, outcome.text)
      return { ...operation, status: outcome.status, outcome: outcome.text }
    }
    const current = operation.ageMs < stuckAfterMs ? operation : await withHigherFees(operation)
    await send(rpc, current, log)
    return current
  }

  /**
   * Returns the outcome of a transaction without a receipt: the former one where its block is in the chain again. It cannot be superseded
   * unless another block is in that place.
   */
  async function withoutReceipt(operation: Operation): Promise<WriteOutcome | undefined> {
    const { outcome: kept } = operation
    const isBack = kept !== null && (await isOutcomeInChain(rpc, kept))
    if (kept !== null && isBack === true) return outcomeBefore(kept)
    return isBack === false ? supersededBy(operation) : undefined
  }

  /** Returns an outcome where another transaction has the nonce, deep enough that this one can never be mined. */
  async function supersededBy({ signer, nonce, txHash, key }: Operation): Promise<WriteOutcome | undefined> {
    // A node may lack the state of that block, such as the local chain after a restart. Sending once more harms nothing.
    const used = await numberFrom(rpc, 'eth_getTransactionCount', [signer, 'safe']).catch((error: unknown) => {
      if (isAboutRequest(error)) return 0n
      throw error
    })
    if (used <= nonce) return undefined
    // It may have been mined between the two questions, and a provider that lags behind does not know it yet.
    const hashes = await operations.hashes(key)
    const outcome = await minedOutcome(rpc, hashes, contract, { unanimous: true })
    if (outcome !== undefined) return outcome
    // A node may know the transaction and not the receipt. Then the outcome of a mined one is unknown.
    for (const hash of hashes) {
      if ((await rpc('eth_getTransactionByHash', [hash], { unanimous: true })) === null) continue
      log.warn('a sent transaction is known, and no provider has its receipt', { txHash: hash })
      return undefined
    }
    return supersededOutcome(txHash)
  }

  /**
   * Signs again with fees at least 10 % higher, which nodes ask for. Nothing changes unless the chain's fee or tip
   * is above the old one, within the limit.
   */
  async function withHigherFees(operation: Operation): Promise<Operation> {
    const account = accounts.get(operation.signer)
    const { to, data, gas, ...before } = parseTransaction(operation.raw)
    const fees = replacementFees(before, await currentFees(rpc), maxFeePerGas)
    if (account === undefined || !to || data === undefined || gas === undefined) return operation
    if (fees === undefined) return operation
    const replacement = await signTransaction(account, { chainId, to, data, gas, nonce: operation.nonce, fees })
    if (!(await operations.replace(operation.txHash, replacement))) return operation
    log.info('stuck transaction replaced', { txHash: operation.txHash, by: replacement.txHash })
    return { ...operation, ...replacement, ageMs: 0 }
  }

  /**
   * Sends again operations before this one, whose nonce cannot be mined while an earlier one is missing. A user waits for it, so that it
   * leaves most of a long queue to `recover`.
   */
  async function resendBefore(operation: Operation, fromNonce: bigint, underway: ReadonlySet<string>): Promise<void> {
    await reopenLost(operation.signer, fromNonce, { settledMs: lostAfterMs, limit: resentByOne })
    const earlier = await operations.pending(operation.signer, fromNonce)
    const waiting = earlier.filter(
      ({ key, nonce, ageMs }) => nonce < operation.nonce && ageMs > inFlightMs && !underway.has(key),
    )
    await eachConcurrently(waiting.slice(0, resentByOne), atOnce, (old) => send(rpc, old, log))
  }

  return { recover, revive, reopenIfLost, resendBefore }
}

/** Looks at `limit` operations at most, which were settled at least `settledMs` ago. */
type Lost = Readonly<{ settledMs: number; limit: number }>

/** Operations that are looked at, or sent again, at the same time. */
const atOnce = 8
/** Operations that a new write reopens, and sends again, at most. */
const resentByOne = 32

/** Milliseconds since which settled operations are checked again, by the first recovery of a process and by later ones. */
const firstRecheckMs = 3_600_000
const laterRecheckMs = 120_000
/** A younger transaction is still being sent by the process that signed it. */
const inFlightMs = 2_000
/** A transaction that was settled longer ago, and is still not counted by the node, has left the chain. */
const lostAfterMs = 30_000
