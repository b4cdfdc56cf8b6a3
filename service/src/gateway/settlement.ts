/**
 * From `settling` to an end. A transfer may be on its way, so that only what the chain says counts; what it does not say yet stays
 * `settling`, and the same authorization is settled again, which its nonce makes harmless.
 */
import { checksumAddress, type Hex } from '@touchstone/verdict'
import { reasonOf } from '../errors.ts'
import type { Log } from '../log.ts'
import { refuse, type ErrorCode, type Outcome } from './answers.ts'
import { withPayment } from './attest.ts'
import type { Facilitator, Report } from './facilitator.ts'
import { paymentOf, type Ledger, type PaymentKey, type PaymentRow } from './ledger.ts'
import type { Count } from './metrics.ts'
import type { Payment } from './payment.ts'
import type { PaymentChain, Truth } from './payment-chain.ts'
import { chainName, type Terms } from './terms.ts'

/** A row in work: `claim` is ours, so that nobody else sends or drops it. */
export type Settling = {
  readonly key: PaymentKey
  readonly claim: string
  readonly payment: Payment
  readonly proof: string
  readonly fromBlock: bigint
  readonly transaction: Hex | null
}

/** A claim outlives whatever may send: 15 s for the facilitator. What comes after it, anyone may do. */
export const settlingSeconds = 25
const facilitatorMs = 15_000
/** How long the chain may lag behind a receipt, in milliseconds. */
const lagMs = 4_000

export type Settlement = ReturnType<typeof createSettlement>

export function createSettlement({
  ledger,
  chain,
  facilitator,
  terms,
  count,
  log,
}: {
  readonly ledger: Ledger
  readonly chain: Pick<PaymentChain, 'truthOf' | 'whyRefused'>
  readonly facilitator: Facilitator
  readonly terms: Terms
  readonly count: Count
  readonly log: Log
}) {
  /** Executes the payment and asks the chain. It does not throw: what goes wrong is `settlement_pending`, and tried again later. */
  async function settle(row: Settling): Promise<Outcome> {
    const report = await execute(row)
    const until = performance.now() + (report.sent === 'mined' ? lagMs : 0)
    for (;;) {
      const truth = await truthOf(row)
      const ended = truth && (await endOf(row, truth).catch(notRecorded))
      if (ended !== undefined) return ended
      if (truth?.kind === 'unused') {
        const refusal = await refusalOf(row, report).catch(() => undefined)
        if (refusal !== undefined) return refused(row, refusal)
      }
      if (performance.now() > until) break
      await new Promise((resolve) => setTimeout(resolve, 250))
    }
    count('pending')
    await ledger.free(row.key, row.claim).catch(notRecorded)
    return refuse('settlement_pending')
  }

  const truthOf = ({ payment, fromBlock }: Settling) =>
    chain.truthOf(payment, fromBlock).catch((error: unknown) => {
      log.warn('the chain does not say what became of a payment', { reason: reasonOf(error) })
      return undefined
    })

  async function execute(row: Settling): Promise<Report> {
    try {
      const onSent = (hash: Hex) => ledger.sent(row.key, hash).catch(notRecorded)
      const settled = facilitator.settle(row.payment, { known: row.transaction ?? undefined, onSent })
      return await inTime(facilitatorMs, settled)
    } catch (error) {
      log.warn('the facilitator did not settle', { reason: reasonOf(error) })
      return { sent: 'perhaps' }
    }
  }

  /** The answer where the chain has decided, recorded; undefined where it has not. */
  async function endOf(row: Settling, truth: Truth): Promise<Outcome | undefined> {
    switch (truth.kind) {
      case 'paid':
        return paid(row, truth.transaction)
      case 'spent':
        return dead(row, 'nonce_already_used')
      case 'expired':
        return dead(row, 'authorization_expired')
      case 'unused':
      case 'unknown':
        return undefined
    }
  }

  /** The proof is delivered also where the ledger fails: whoever asks again is answered from the same row with the same bytes. */
  async function paid(row: Settling, transaction: Hex): Promise<Outcome> {
    const answer = answerOf(row, transaction)
    const body = await ledger.done(row.key, { transaction, answer }).catch((error: unknown) => {
      notRecorded(error)
      return answer
    })
    count('settled')
    return { kind: 'proof', body, transaction, payer: row.payment.from }
  }

  async function dead(row: Settling, reason: ErrorCode): Promise<Outcome> {
    await ledger.dead(row.key, reason)
    return refuse(reason)
  }

  /** Only for a transaction that was certainly not sent, or was mined and reverted. */
  async function refusalOf(row: Settling, { sent, refusal }: Report): Promise<ErrorCode | undefined> {
    if (sent !== 'reverted' && (sent !== 'no' || row.transaction !== null)) return undefined
    const reason = refusal ?? (await chain.whyRefused(row.payment))
    return reason === 'nonce_already_used' ? undefined : reason // used by now: the next look at the chain says by what
  }

  async function refused(row: Settling, error: ErrorCode): Promise<Outcome> {
    await ledger.drop(row.key, row.claim).catch(notRecorded)
    return refuse(error)
  }

  function answerOf({ payment, proof }: Settling, transaction: Hex): string {
    const payer = checksumAddress(payment.from)
    const amount = payment.value.toString()
    return withPayment(proof, { success: true, transaction, payer, network: chainName, amount, asset: terms.asset })
  }

  function notRecorded(error: unknown): undefined {
    log.error('the ledger of payments fails', { reason: reasonOf(error) })
    return undefined
  }

  /** The answer where the chain has decided already; nothing is sent. */
  async function look(row: Settling): Promise<Outcome | undefined> {
    const truth = await truthOf(row)
    return truth && endOf(row, truth).catch(notRecorded)
  }

  return {
    settle,
    look,
    /** The same as `settle` for a row found `settling`: first whether it is decided already. */
    async resume(row: Settling): Promise<Outcome> {
      const truth = await truthOf(row)
      const ended = truth && (await endOf(row, truth).catch(notRecorded))
      if (ended !== undefined) return ended
      if (truth?.kind === 'unused') return settle(row)
      await ledger.free(row.key, row.claim).catch(notRecorded)
      return refuse('settlement_pending')
    },
  }
}

/** A row of the ledger that is `settling` or `done`, in work. */
export function settlingOf(row: PaymentRow, claim: string): Settling {
  const { payer, nonce, payload, proof, fromBlock, transaction } = row
  if (proof === null || fromBlock === null) throw new Error('A row is settling without its proof.')
  return { key: { payer, nonce }, claim, payment: paymentOf(payload), proof, fromBlock, transaction }
}

async function inTime<T>(milliseconds: number, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('no answer in time')), milliseconds)
  })
  return Promise.race([work, late]).finally(() => clearTimeout(timer))
}
