/**
 * Bounds the gas that payers can make the facilitator lose (spec §4.8). A transfer that passes its simulation may still fail in a block:
 * money that is spent elsewhere, or a contract wallet that only pretends. Each payer risks one such loss, then is blocked for a time.
 */
import type { Hex } from '@touchstone/verdict'
import { LRUCache } from 'lru-cache'
import type { Payment } from '../x402/payment.ts'

/** An account is blocked for ten minutes, a wallet for a day. */
const accountBlockMs = 600_000
const walletBlockMs = 86_400_000
/**
 * A kind of wallet is blocked for ten minutes after two failures more than it had recent sales. A sale brings the price in, which covers a
 * loss. Otherwise two wallets of a common kind would keep all others out.
 */
const kindFailures = 2
const mostSales = 20
/** Transfers of one kind of wallet that may be in flight at the same time. */
const kindInFlight = 2

/** `codeHash` is that of the payer's wallet; undefined for an account without code. */
export type Exposed = { readonly payment: Payment; readonly codeHash: Hex | undefined }
/** Ends the exposure of one payment. `failed`: its transfer was mined and moved nothing. */
type Leave = (ended: 'paid' | 'failed' | 'other') => void
/**
 * `first` is the value of the payment that was sent alone. `spendable` is what the balance leaves for others, null until `reading` ends: one
 * read for all that wait.
 */
type Payer = { inFlight: number; first: bigint; spendable: bigint | null; reading?: Promise<bigint> | undefined }

/** A cache with `max` has its whole tables from the start. By sizes it grows up to the same number. */
const atMost = (entries: number) => ({ maxSize: entries, sizeCalculation: () => 1 })

/** `balance` reads the payer's money at the newest block. */
export function createExposure({ balance }: { readonly balance: (payer: Hex) => Promise<bigint> }) {
  const payers = new Map<Hex, Payer>()
  const kinds = new Map<Hex, number>()
  const blocked = new LRUCache<Hex, true>(atMost(100_000))
  /** Failures of kinds of wallets, less their sales. */
  const failures = new LRUCache<Hex, number>({ ...atMost(10_000), ttl: accountBlockMs })
  /** Wallets that have bought and never failed since. */
  const customers = new LRUCache<Hex, true>(atMost(100_000))
  let waiting: (() => void)[] = []

  /**
   * Waits until this payment can be sent without more risk than the others in flight. The balance covers all of its payer's, and a wallet
   * has one at a time. Returns the milliseconds for which a payer or a kind of wallet is blocked. Throws what `balance` throws.
   */
  async function enter(exposed: Exposed): Promise<Leave | number> {
    const { payment, codeHash } = exposed
    for (;;) {
      if (blocked.has(payment.from)) return blocked.getRemainingTTL(payment.from)
      if (codeHash && (failures.get(codeHash) ?? 0) >= kindFailures && !customers.has(payment.from))
        return failures.getRemainingTTL(codeHash)
      const payer = payers.get(payment.from)
      // The simulation has covered a payment that is alone in flight.
      if (
        payer === undefined
          ? !codeHash || (kinds.get(codeHash) ?? 0) < kindInFlight
          : !codeHash && covers(payer, payment)
      )
        return reserve(exposed)
      if (payer?.spendable === null && !codeHash) {
        const held = await (payer.reading ??= balance(payment.from)).catch((error: unknown) => {
          payer.reading = undefined
          throw error
        })
        payer.spendable ??= held - payer.first
      } else await new Promise<void>((resolve) => waiting.push(resolve))
    }
  }

  const covers = ({ spendable }: Payer, { value }: Payment) => spendable !== null && spendable >= value

  function reserve({ payment, codeHash }: Exposed): Leave {
    const { from, value, deposit } = payment
    const payer = payers.get(from) ?? { inFlight: 0, first: value, spendable: null }
    payers.set(from, payer)
    payer.inFlight += 1
    if (payer.spendable !== null) payer.spendable -= value
    if (codeHash) kinds.set(codeHash, (kinds.get(codeHash) ?? 0) + 1)
    return (ended) => {
      payer.inFlight -= 1
      if (payer.inFlight === 0) payers.delete(from)
      if (codeHash) kinds.set(codeHash, (kinds.get(codeHash) ?? 1) - 1)
      if (kinds.get(codeHash ?? '0x') === 0) kinds.delete(codeHash ?? '0x')
      if (ended === 'failed') blocked.set(from, true, { ttl: codeHash ? walletBlockMs : accountBlockMs })
      if (codeHash) judge(codeHash, from, ended === 'paid' && deposit !== undefined ? 'other' : ended)
      const woken = waiting
      waiting = []
      for (const wake of woken) wake()
    }
  }

  function judge(kind: Hex, wallet: Hex, ended: Parameters<Leave>[0]): void {
    if (ended === 'other') return
    const count = failures.get(kind) ?? 0
    failures.set(kind, ended === 'failed' ? count + 1 : Math.max(count - 1, -mostSales))
    if (ended === 'paid') customers.set(wallet, true)
    else customers.delete(wallet)
  }

  return { enter }
}
