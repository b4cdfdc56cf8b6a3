/** What became of a signed transaction: sending it, reading its receipt, and the result that is kept for repeats. */
import type { Hex } from '@touchstone/verdict'
import { setTimeout as delay } from 'node:timers/promises'
import { toEventSelector } from 'viem'
import { reasonOf } from '../errors.ts'
import type { Log } from '../log.ts'
import { writeFailure } from './write-calls-failures.ts'
import type { WriteFailure } from './write-calls-failures.ts'
import { RpcRefusal } from './writer-rpc.ts'
import type { WriterRpc } from './writer-rpc.ts'

/** Mined. `tokenIds` are those that the transaction minted, in order. */
export type Mined = Readonly<{ txHash: Hex; blockNumber: bigint; blockHash: Hex; tokenIds: readonly bigint[] }>
export type Outcome = Readonly<{ status: 'CONFIRMED' | 'FAILED'; text: string }>

/** `sent` the node has it, `refused` it said no, `unknown` no answer came. */
export type Sending = 'sent' | 'refused' | 'unknown'

/** Hands the bytes to the node, once. Bytes that the node or the chain already has count as sent. */
export async function send(rpc: WriterRpc, { raw, txHash }: { raw: Hex; txHash: Hex }, log: Log): Promise<Sending> {
  try {
    await rpc('eth_sendRawTransaction', [raw])
    return 'sent'
  } catch (error) {
    if (!(error instanceof RpcRefusal)) {
      log.warn('no answer to a sent transaction', { txHash, reason: reasonOf(error) })
      return 'unknown'
    }
    if (/already known|already imported|nonce too low|known transaction/i.test(error.message)) return 'sent'
    log.warn('transaction refused by the node', { txHash, reason: error.message })
    return 'refused'
  }
}

/** The outcome of the first of these transactions that was mined, by `contract`; `undefined` while none is. */
export async function minedOutcome(
  rpc: WriterRpc,
  hashes: readonly Hex[],
  contract: Hex,
): Promise<Outcome | undefined> {
  for (const txHash of hashes) {
    const receipt = (await rpc('eth_getTransactionReceipt', [txHash])) as Receipt | null
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

/** Asks for a receipt until there is one, `waitMs` have passed, or `signal` aborts; an unreachable node counts as no answer yet. */
export async function awaitOutcome(
  ask: () => Promise<Outcome | undefined>,
  waitMs: number,
  signal: AbortSignal,
): Promise<Outcome | undefined> {
  const until = performance.now() + waitMs
  for (let pauseMs = 5; !signal.aborted; pauseMs = Math.min(500, pauseMs * 1.5)) {
    const outcome = await ask().catch(() => undefined)
    if (outcome !== undefined) return outcome
    if (performance.now() + pauseMs > until) break
    await delay(pauseMs, undefined, { signal }).catch(() => {})
  }
  return undefined
}

/** The result that a stored outcome stands for. */
export function minedOf({ status, text }: Outcome): (Mined & { ok: true; status: 'CONFIRMED' }) | WriteFailure {
  const { txHash, blockNumber, blockHash, tokenIds, superseded } = JSON.parse(text) as StoredOutcome
  if (superseded === true) return writeFailure('SUPERSEDED', txHash)
  if (status === 'FAILED') return writeFailure('REVERTED', txHash)
  return { ok: true, status, txHash, blockNumber: BigInt(blockNumber), blockHash, tokenIds: tokenIds.map(BigInt) }
}

/** Another transaction has used the nonce for good. */
export function supersededOutcome(txHash: Hex): Outcome {
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
