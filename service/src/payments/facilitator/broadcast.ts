/**
 * Sends the transactions of the facilitator's key one at a time. The nonce is the chain's pending count, read inside the queue: parallel
 * payments all settle, and a restarted chain does not invalidate a remembered nonce. A lock does the same across processes.
 */
import type { Hex } from '@touchstone/verdict'
import { keccak256, type LocalAccount } from 'viem'
import { isRefusal, isRevert, type RpcClient } from '../../chain/rpc/client.ts'
import { chainId } from '../../domain/chain.ts'
import { createQueue } from '../../lib/async/concurrency.ts'
import { onPendingBlock, parseQuantity } from '../rpc.ts'

/** Runs `work` while no other process does so for the same key. */
type KeyLock = <T>(address: Hex, work: () => Promise<T>) => Promise<T>

/** `unknown`: the transaction may have been sent. All others: it was certainly not sent, `fault` for any further reason. */
type NotSent = 'revert' | 'no_gas' | 'too_costly' | 'fault' | 'unknown'

export class BroadcastError extends Error {
  readonly reason: NotSent

  constructor(reason: NotSent, options: { cause: unknown }) {
    super(`not sent: ${reason}`, options)
    this.name = 'BroadcastError'
    this.reason = reason
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
      throw new BroadcastError(reasonFor(cause, isRevert(cause) ? 'revert' : 'fault'), { cause })
    }
  }

  return async (call, onSigned) => {
    const prepared = await prepare(call)
    if (prepared.gas > maxGas) throw new BroadcastError('too_costly', { cause: `${prepared.gas} gas` })
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
      throw cause instanceof BroadcastError ? cause : new BroadcastError('fault', { cause })
    })
  }

  async function send(raw: Hex): Promise<void> {
    try {
      await rpc('eth_sendRawTransaction', [raw])
    } catch (cause) {
      if (isRefusal(cause) && /already known|already imported/i.test(cause.message)) return
      throw new BroadcastError(reasonFor(cause, isRefusal(cause) ? 'fault' : 'unknown'), { cause })
    }
  }
}

function reasonFor(cause: unknown, otherwise: NotSent): NotSent {
  return isRefusal(cause) && /insufficient funds|gas required exceeds allowance/i.test(cause.message)
    ? 'no_gas'
    : otherwise
}
