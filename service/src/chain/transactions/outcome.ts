/** Sends a signed transaction, reads its receipt, and makes the result that is kept for repeats. */
import type { Hex } from '@touchstone/verdict'
import { toEventSelector } from 'viem/utils'
import { sleep } from '../../lib/async/sleep.ts'
import { reasonOf } from '../../lib/errors.ts'
import { isObject } from '../../lib/json.ts'
import type { Log } from '../../lib/log.ts'
import { writeFailure, type WriteFailure } from './failures.ts'
import { quantity } from '../rpc/answer.ts'
import { isKnownTransaction, isRefusal, type RpcClient } from '../rpc/client.ts'
import type { SignedTransaction } from './operations.ts'

/** A mined transaction. `tokenIds` are those that it minted, in order. */
export type Mined = Readonly<{ txHash: Hex; blockNumber: bigint; blockHash: Hex; tokenIds: readonly bigint[] }>
export type WriteOutcome = Readonly<{ status: 'CONFIRMED' | 'FAILED'; text: string }>

/**
 * Sends the bytes to the node, once. `sent`: the node has them, or the chain already; `rejected`: the node answered with an error;
 * `unknown`: no answer came.
 */
export async function send(
  rpc: RpcClient,
  { raw, txHash }: SignedTransaction,
  log: Log,
): Promise<'sent' | 'rejected' | 'unknown'> {
  try {
    await rpc('eth_sendRawTransaction', [raw])
    return 'sent'
  } catch (error) {
    if (!isRefusal(error)) {
      log.warn('no answer to a sent transaction', { txHash, reason: reasonOf(error) })
      return 'unknown'
    }
    if (isKnownTransaction(error) || /nonce too low/i.test(error.message)) return 'sent'
    log.warn('transaction rejected by the node', { txHash, reason: error.message })
    return 'rejected'
  }
}

/** Returns the outcome of the first of these transactions that is mined; `undefined` while none is. */
export async function minedOutcome(
  rpc: RpcClient,
  hashes: readonly Hex[],
  contract: Hex,
  options: Parameters<RpcClient>[2] = {},
): Promise<WriteOutcome | undefined> {
  for (const txHash of hashes) {
    const receipt = (await rpc('eth_getTransactionReceipt', [txHash], options)) as Receipt | null
    if (receipt === null) continue
    const text = JSON.stringify({
      txHash,
      blockNumber: BigInt(receipt.blockNumber).toString(),
      blockHash: receipt.blockHash,
      tokenIds: receipt.logs
        .filter((log) => isMint(log, contract))
        .map(({ topics }) => BigInt(topics[1] ?? 0).toString()),
    })
    return { status: receipt.status === '0x1' ? 'CONFIRMED' : 'FAILED', text }
  }
  return undefined
}

/**
 * Returns whether the block of a stored outcome is in the chain. Undefined: the provider has no such block, because it may be behind; with
 * `unanimous`, no provider has it. The receipt is not asked for, because nodes delete old ones. A superseded transaction has no block; that
 * outcome is final.
 */
export async function isOutcomeInChain(
  rpc: RpcClient,
  text: string,
  options: Parameters<RpcClient>[2] = {},
): Promise<boolean | undefined> {
  const { blockNumber, blockHash, superseded } = JSON.parse(text) as StoredOutcome
  if (superseded === true) return true
  const block = await rpc('eth_getBlockByNumber', [quantity(BigInt(blockNumber)), false], options)
  return isObject(block) ? block['hash'] === blockHash : undefined
}

/** Reads until there is an outcome, `waitMs` have passed, or `signal` aborts; an unreachable node counts as none yet. */
export async function awaitOutcome(
  ask: () => Promise<WriteOutcome | undefined>,
  waitMs: number,
  signal: AbortSignal,
): Promise<WriteOutcome | undefined> {
  const until = performance.now() + waitMs
  for (let pauseMs = 5; !signal.aborted; pauseMs = Math.min(500, pauseMs * 1.5)) {
    const outcome = await ask().catch(() => undefined)
    if (outcome !== undefined) return outcome
    if (performance.now() + pauseMs > until) break
    await sleep(pauseMs, { signal })
  }
  return undefined
}

export function parseOutcome({
  status,
  text,
}: WriteOutcome): (Mined & { ok: true; status: 'CONFIRMED' }) | WriteFailure {
  const { txHash, blockNumber, blockHash, tokenIds, superseded } = JSON.parse(text) as StoredOutcome
  if (superseded === true) return writeFailure('SUPERSEDED', txHash)
  if (status === 'FAILED') return writeFailure('REVERTED', txHash)
  return { ok: true, status, txHash, blockNumber: BigInt(blockNumber), blockHash, tokenIds: tokenIds.map(BigInt) }
}

/** Formats the outcome that a reopened operation had, so that it can hold again. */
export function keptOutcome({ status, text }: WriteOutcome): string {
  return JSON.stringify({ ...JSON.parse(text), was: status })
}

/** Parses what `keptOutcome` has formatted. */
export function outcomeBefore(kept: string): WriteOutcome {
  const { was, ...outcome } = JSON.parse(kept) as StoredOutcome & { was: WriteOutcome['status'] }
  return { status: was, text: JSON.stringify(outcome) }
}

/** Returns whether another transaction has used the nonce of an operation for good. */
export function isSuperseded({ outcome }: { readonly outcome: string | null }): boolean {
  return outcome !== null && (JSON.parse(outcome) as StoredOutcome).superseded === true
}

/** Returns the outcome of a transaction whose nonce another one has used for good. */
export function supersededOutcome(txHash: Hex): WriteOutcome {
  return { status: 'FAILED', text: JSON.stringify({ txHash, superseded: true }) }
}

type Receipt = {
  status: Hex
  blockNumber: Hex
  blockHash: Hex
  logs: readonly { address: Hex; topics: readonly Hex[] }[]
}
type StoredOutcome = { txHash: Hex; blockNumber: string; blockHash: Hex; tokenIds: string[]; superseded?: boolean }

const assetMinted = toEventSelector('AssetMinted(uint256,address,bytes32)')

function isMint({ address, topics }: Receipt['logs'][number], contract: Hex): boolean {
  return topics[0] === assetMinted && address.toLowerCase() === contract.toLowerCase()
}
