/**
 * Takes a payment from `settling` to an end (spec §4.8). A transfer may be pending, so that only the chain decides. While it does not,
 * the row stays `settling` and the same authorization is settled again, which its nonce makes harmless.
 */
import { checksumAddress, type Hex } from '@touchstone/verdict'
import { chainName } from '../domain/chain.ts'
import { withDeadline } from '../lib/async/deadline.ts'
import { sleep } from '../lib/async/sleep.ts'
import { reasonOf } from '../lib/errors.ts'
import type { Log } from '../lib/log.ts'
import { withPayment } from './attestation/attest.ts'
import { failure, type ErrorCode, type Outcome } from './errors.ts'
import type { Facilitator, Report } from './facilitator/facilitator.ts'
import { parsePayload, type Ledger, type PaymentKey, type PaymentRow } from './ledger.ts'
import type { PaymentChain, TransferStatus } from './on-chain.ts'
import type { Payment } from './x402/payment.ts'
import type { Terms } from './x402/terms.ts'

/** A row whose `claim` is held, so that no other process sends or deletes it. */
export type Settling = {
  readonly key: PaymentKey
  readonly claim: string
  readonly payment: Payment
  readonly proof: string
  readonly fromBlock: bigint
  readonly transaction: Hex | null
}

/** A claim outlives every step that may send: 15 s for the facilitator. Later steps are safe without it. */
export const settlingSeconds = 25
/** Longest lag of the chain behind a receipt, in milliseconds. */
const lagMs = 4_000

/** Counts an event for the metrics. */
export type Count = (what: 'offers' | 'settled' | 'pending' | 'reconciled' | 'refused' | 'replayed' | 'faults') => void

/** Milliseconds for a step of the facilitator. Defaults: 5 s to verify; 15 s to settle, and 12 s of them for the receipt. */
export type PaymentDeadlines = {
  readonly verifyMs?: number
  readonly settleMs?: number
  readonly receiptMs?: number
}

/** The components that checkout, settlement and reconciliation share. */
export type PaymentComponents = {
  readonly ledger: Ledger
  readonly chain: PaymentChain
  readonly facilitator: Facilitator
  readonly terms: Terms
  readonly count: Count
  readonly log: Log
  readonly deadlines?: PaymentDeadlines | undefined
}

export type Settlement = ReturnType<typeof createSettlement>

export function createSettlement({
  ledger,
  chain,
  facilitator,
  terms,
  count,
  log,
  deadlines: { settleMs = 15_000 } = {},
}: PaymentComponents) {
  /** Executes the payment and reads the chain. Never throws: every failure is `settlement_pending`, and is retried later. */
  async function settle(row: Settling): Promise<Outcome> {
    const report = await execute(row)
    const until = performance.now() + (report.sent === 'mined' ? lagMs : 0)
    for (;;) {
      const { status, outcome } = await decide(row)
      if (outcome !== undefined) return outcome
      if (status?.kind === 'unused') {
        const rejection = await rejectionOf(row, report).catch(() => undefined)
        if (rejection !== undefined) {
          await ledger.dropSettling(row.key, row.claim).catch(notRecorded)
          return failure(rejection)
        }
      }
      if (performance.now() > until) break
      await sleep(250)
    }
    count('pending')
    return leavePending(row)
  }

  async function execute(row: Settling): Promise<Report> {
    try {
      const onSent = (hash: Hex) => ledger.sent(row.key, hash).catch(notRecorded)
      const settled = facilitator.settle(row.payment, { known: row.transaction ?? undefined, onSent })
      return await withDeadline(settled, settleMs)
    } catch (error) {
      log.warn('the facilitator did not settle', { reason: reasonOf(error) })
      return { sent: 'perhaps' }
    }
  }

  /** Reads the chain once. `outcome` is set when the chain has decided; it is recorded then. */
  async function decide(row: Settling): Promise<{ status?: TransferStatus; outcome?: Outcome }> {
    try {
      const status = await chain.transferStatus(row.payment, row.fromBlock)
      const outcome = await conclude(row, status).catch(notRecorded)
      return { status, ...(outcome && { outcome }) }
    } catch (error) {
      log.warn('the chain does not show the outcome of a payment', { reason: reasonOf(error) })
      return {}
    }
  }

  async function conclude(row: Settling, status: TransferStatus): Promise<Outcome | undefined> {
    switch (status.kind) {
      case 'paid':
        return complete(row, status.transaction)
      case 'spent':
        return reject(row, 'nonce_already_used')
      case 'expired':
        return reject(row, 'authorization_expired')
      case 'unused':
      case 'unknown':
        return undefined
    }
  }

  /** Returns the proof even when the ledger fails: a retry gets the same bytes from the same row. */
  async function complete(row: Settling, transaction: Hex): Promise<Outcome> {
    const answer = formatAnswer(row, transaction)
    const body = await ledger.done(row.key, { transaction, answer }).catch((error: unknown) => {
      notRecorded(error)
      return answer
    })
    count('settled')
    return { kind: 'proof', body, transaction, payer: row.payment.from }
  }

  function formatAnswer({ payment, proof }: Settling, transaction: Hex): string {
    const payer = checksumAddress(payment.from)
    const amount = payment.value.toString()
    return withPayment(proof, { success: true, transaction, payer, network: chainName, amount, asset: terms.asset })
  }

  async function reject(row: Settling, reason: ErrorCode): Promise<Outcome> {
    await ledger.reject(row.key, reason)
    return failure(reason)
  }

  /** Returns the reason of a transaction that was certainly not sent, or was mined and reverted. */
  async function rejectionOf(row: Settling, { sent, rejection }: Report): Promise<ErrorCode | undefined> {
    if (sent !== 'reverted' && (sent !== 'no' || row.transaction !== null)) return undefined
    const reason = rejection ?? (await chain.rejectionReason(row.payment))
    return reason === 'nonce_already_used' ? undefined : reason // the next read of the chain shows what used it
  }

  async function leavePending(row: Settling): Promise<Outcome> {
    await ledger.releaseClaim(row.key, row.claim).catch(notRecorded)
    return failure('settlement_pending')
  }

  function notRecorded(error: unknown): undefined {
    log.error('the ledger of payments fails', { reason: reasonOf(error) })
    return undefined
  }

  return {
    settle,
    /** Returns the outcome where the chain has decided already; sends nothing. */
    poll: async (row: Settling): Promise<Outcome | undefined> => (await decide(row)).outcome,
    /** Settles a row that was found `settling`, unless the chain has decided already. */
    async resume(row: Settling): Promise<Outcome> {
      const { status, outcome } = await decide(row)
      if (outcome !== undefined) return outcome
      return status?.kind === 'unused' ? settle(row) : leavePending(row)
    },
  }
}

/** Converts a row that is `settling` or `done`. */
export function toSettling(row: PaymentRow, claim: string): Settling {
  const { payer, nonce, payload, proof, fromBlock, transaction } = row
  if (proof === null || fromBlock === null) throw new Error('A settling row has no proof.')
  return { key: { payer, nonce }, claim, payment: parsePayload(payload), proof, fromBlock, transaction }
}
