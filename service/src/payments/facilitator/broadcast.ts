/**
 * Sends the transactions of the facilitator's key one at a time. The nonce is the chain's pending count, read inside the queue: parallel
 * payments all settle, and a restarted chain does not invalidate a remembered nonce. A lock does the same across processes.
 */
import type { Hex } from '@touchstone/verdict'
import { keccak256, type LocalAccount } from 'viem'
import { isRefusal, type RpcClient } from '../../chain/rpc/client.ts'
import { chainId } from '../../domain/chain.ts'
import { createQueue } from '../../lib/async/concurrency.ts'
import { onPendingBlock, parseQuantity } from '../on-chain.ts'
import type { Report } from './facilitator.ts'

/** Runs `work` while no other process does so for the same key. */
type KeyLock = <T>(address: Hex, work: () => Promise<T>) => Promise<T>

/** No transaction was sent, or perhaps one was. */
export class BroadcastError extends Error {
  readonly report: Report

  constructor(report: Report, options: { cause: unknown }) {
    super(`not sent: ${report.rejection ?? report.sent}`, options)
    this.name = 'BroadcastError'
    this.report = report
  }
}

/** `onSigned` receives the hash while the transaction is being sent, so that a crash in between loses nothing. Throws a BroadcastError. */
export type Broadcast = (call: { to: Hex; data: Hex }, onSigned: (hash: Hex) => Promise<void>) => Promise<Hex>

/** A transfer takes 60,000 to 90,000. The limit keeps a smart wallet's own check from spending the facilitator's ether. */
const maxGas = 400_000n

export function createBroadcast({
  rpc: provider,
  account,
  lock,
}: {
  readonly rpc: RpcClient
  readonly account: LocalAccount
  readonly lock: KeyLock
}): Broadcast {
  const rpc = onPendingBlock(provider)
  const inTurn = createQueue()

  /** Estimates gas and fees outside the queue. */
  async function prepare(call: { to: Hex; data: Hex }) {
    try {
      const [estimate, head, tip] = await Promise.all([
        rpc('eth_estimateGas', [{ from: account.address, ...call }]),
        rpc('eth_getBlockByNumber', ['latest', false]),
        rpc('eth_maxPriorityFeePerGas'),
      ])
      const maxPriorityFeePerGas = parseQuantity(tip)
      const baseFee = parseQuantity((head as { baseFeePerGas?: unknown }).baseFeePerGas)
      return {
        gas: (parseQuantity(estimate) * 5n) / 4n + 10_000n,
        maxPriorityFeePerGas,
        maxFeePerGas: 2n * baseFee + maxPriorityFeePerGas, // room for the base fee to double
      }
    } catch (cause) {
      throw new BroadcastError(reportFor(cause), { cause })
    }
  }

  return async (call, onSigned) => {
    const prepared = await prepare(call)
    if (prepared.gas > maxGas)
      throw new BroadcastError({ sent: 'no', rejection: 'payment_rejected' }, { cause: `${prepared.gas} gas` })
    const sent = inTurn(() =>
      lock(account.address, async () => {
        const count = await rpc('eth_getTransactionCount', [account.address, 'pending']).then(parseQuantity)
        const raw = await account.signTransaction({
          type: 'eip1559',
          chainId,
          nonce: Number(count),
          value: 0n,
          ...call,
          ...prepared,
        })
        await Promise.all([send(raw), onSigned(keccak256(raw))])
        return keccak256(raw)
      }),
    )
    return sent.catch((cause: unknown) => {
      throw cause instanceof BroadcastError ? cause : new BroadcastError({ sent: 'no' }, { cause })
    })
  }

  async function send(raw: Hex): Promise<void> {
    try {
      await rpc('eth_sendRawTransaction', [raw])
    } catch (cause) {
      if (isRefusal(cause) && /already known|already imported/i.test(cause.message)) return
      throw new BroadcastError(isRefusal(cause) ? reportFor(cause) : { sent: 'perhaps' }, { cause })
    }
  }
}

/** Returns the report of a transaction that was certainly not sent. */
function reportFor(cause: unknown): Report {
  const hasNoGas = isRefusal(cause) && /insufficient funds|gas required exceeds allowance/i.test(cause.message)
  return { sent: 'no', rejection: hasNoGas ? 'payment_unavailable' : undefined }
}
