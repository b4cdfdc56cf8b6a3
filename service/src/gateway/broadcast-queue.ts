/**
 * Transactions of the facilitator's key, one at a time: the nonce is the chain's pending count, read inside the queue, so that of twenty
 * parallel payments twenty settle and a restarted chain cannot run away from a remembered nonce. A lock does the same across processes.
 */
import type { Hex } from '@touchstone/verdict'
import { keccak256, type LocalAccount } from 'viem'
import { asOfNow, isRefusal, isRevert, quantityOf, type PaymentRpc } from './rpc.ts'
import { chainId } from './terms.ts'

/** Runs `work` while no other process does so for the same key. */
export type KeyLock = <T>(address: Hex, work: () => Promise<T>) => Promise<T>

/** `revert`, `no_gas`, `too_costly`: this transaction was certainly not sent; `fault`: neither, for another reason; `unknown`: it may have been. */
export type NotSent = 'revert' | 'no_gas' | 'too_costly' | 'fault' | 'unknown'

export class BroadcastError extends Error {
  readonly reason: NotSent

  constructor(reason: NotSent, options: { cause: unknown }) {
    super(`not sent: ${reason}`, options)
    this.name = 'BroadcastError'
    this.reason = reason
  }
}

/** `onSigned` hears the hash while the transaction goes out, so that a crash in between loses nothing. It throws a BroadcastError. */
export type Broadcast = (call: { to: Hex; data: Hex }, onSigned: (hash: Hex) => Promise<void>) => Promise<Hex>

/** A transfer takes 60,000 to 90,000; a smart wallet's own check must not eat the facilitator's ether. */
const mostGas = 400_000n

export function createBroadcast({
  rpc: provider,
  account,
  lock,
}: {
  readonly rpc: PaymentRpc
  readonly account: LocalAccount
  readonly lock: KeyLock
}): Broadcast {
  const rpc = asOfNow(provider)
  let last: Promise<unknown> = Promise.resolve()

  async function prepare(call: { to: Hex; data: Hex }) {
    try {
      const [estimate, head, tip] = await Promise.all([
        rpc('eth_estimateGas', [{ from: account.address, ...call }]),
        rpc('eth_getBlockByNumber', ['latest', false]),
        rpc('eth_maxPriorityFeePerGas'),
      ])
      const maxPriorityFeePerGas = quantityOf(tip)
      const baseFee = quantityOf((head as { baseFeePerGas?: unknown }).baseFeePerGas)
      return {
        gas: (quantityOf(estimate) * 5n) / 4n + 10_000n,
        maxPriorityFeePerGas,
        maxFeePerGas: 2n * baseFee + maxPriorityFeePerGas, // room for the base fee to double
      }
    } catch (cause) {
      throw new BroadcastError(reasonFor(cause, isRevert(cause) ? 'revert' : 'fault'), { cause })
    }
  }

  return async (call, onSigned) => {
    const prepared = await prepare(call)
    if (prepared.gas > mostGas) throw new BroadcastError('too_costly', { cause: `${prepared.gas} gas` })
    const turn = last.then(() =>
      lock(account.address, async () => {
        const count = await rpc('eth_getTransactionCount', [account.address, 'pending']).then(quantityOf)
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
    last = turn.catch(() => {})
    return turn.catch((cause: unknown) => {
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
