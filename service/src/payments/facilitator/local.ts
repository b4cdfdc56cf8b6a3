/**
 * The facilitator in this process: it simulates payments many at a time, and settles many with one transaction. Its reports are of
 * mined transactions; where one says nothing of a payment, the chain is asked (on-chain.ts).
 */
import type { Hex } from '@touchstone/verdict'
import type { LocalAccount } from 'viem'
import { keccak256, parseErc6492Signature } from 'viem/utils'
import { isAboutRequest, type RpcClient } from '../../chain/rpc/client.ts'
import { createBatcher } from '../../lib/async/batch.ts'
import { withDeadline } from '../../lib/async/deadline.ts'
import type { BlockId } from '../../domain/chain.ts'
import type { Log } from '../../lib/log.ts'
import { GatewayFault, type PaymentErrorCode } from '../errors.ts'
import { paymentName } from '../key.ts'
import { executionOf, onPendingBlock, type PaymentChain } from '../on-chain.ts'
import { checkSignature, paymentDigest, type Payment } from '../x402/payment.ts'
import type { PaymentTerms } from '../x402/terms.ts'
import { simulateBatch, type Call } from './call-batch.ts'
import { createExposure } from './exposure.ts'
import { buyerError, type Facilitator, type SettlementReport } from './facilitator.ts'
import { createSender, type SendResult } from './sender.ts'
import type { NonceSlots } from './slots.ts'
import type { Tracked } from './tracker.ts'

type LocalOptions = {
  readonly rpc: RpcClient
  readonly chain: PaymentChain
  readonly accounts: readonly LocalAccount[]
  readonly slots: NonceSlots
  readonly terms: PaymentTerms
  /** Factories that may deploy a buyer's wallet at the facilitator's expense (ERC-6492). */
  readonly walletFactories: readonly Hex[]
  readonly log: Log
  readonly followMs?: number | undefined
  readonly missingSeconds?: number | undefined
}

/**
 * `codeHash` is undefined for an account without code. `wallet`: the code hash of the wallet that pays, or the factory that deploys it. `calls` are
 * limited to little more gas than the simulation took.
 */
type Assessment = {
  readonly ok: boolean
  readonly codeHash: Hex | undefined
  readonly wallet: Hex | undefined
  readonly calls: readonly Call[]
}

/** Payments in one simulation. Their gas must fit a block, and the answer is limited like the code of a contract (EIP-170). */
const maxSimulated = 30
const deploymentGas = 1_500_000
/** Gas for the simulation of a call that is not a payment. A claim of fifty vouchers takes about a million. */
const maxCallGas = 8_000_000
/** Seconds in which such a call is mined or given up. */
const callSeconds = 3_600n
const noCode: ReadonlySet<string> = new Set([`0x${'0'.repeat(64)}`, keccak256('0x')])

export function createLocalFacilitator(options: LocalOptions): Facilitator {
  const { chain, slots, terms, followMs = 20_000 } = options
  const rpc = onPendingBlock(options.rpc)
  const sender = createSender({ ...options, heads: chain.heads })
  const exposure = createExposure({ balance: chain.balance })
  const factories = new Set<string>(options.walletFactories)
  /** Assessments of payments between their check and their settlement. */
  const assessed = new WeakMap<Payment, Assessment>()
  /** Payments that wait to be sent, or to be mined. */
  const underway = new Map<string, Promise<SettlementReport>>()

  const assess = createBatcher<Payment, Assessment>({
    maxItems: maxSimulated,
    weightOf: ({ signature }) => Math.ceil(signature.length / 500),
    concurrency: 4,
    isOfOneItem: isAboutRequest,
    /** Transfers of one simulation follow each other: one that fails is simulated alone. */
    async run(payments) {
      const found = await simulate(payments)
      if (payments.length === 1) return found
      return Promise.all(
        payments.map(async (payment, n) => (found[n]?.ok ? found[n] : ((await simulate([payment]))[0] as Assessment))),
      )
    },
  })

  /** Finds out what each payment would do now. */
  async function simulate(payments: readonly Payment[]): Promise<Assessment[]> {
    // The first report of a payment has the code of its account.
    const groups = payments.map((payment): readonly Call[] => [
      { target: payment.from, gasLimit: 0, data: '0x' },
      ...toCalls(payment, terms),
    ])
    const reports = await simulateBatch(rpc, groups.flat())
    let at = 0
    return payments.map((payment, index) => {
      const [, ...calls] = groups[index] ?? []
      const [account, ...results] = reports.slice(at, (at += 1 + calls.length))
      const codeHash = account === undefined || noCode.has(account.word) ? undefined : account.word
      const isPlain = codeHash === undefined && results.length === 1
      // A wallet that has code is not deployed again: the attempt would burn its gas.
      const skipped = codeHash === undefined ? 0 : results.length - 1
      const found: Assessment = {
        ok: results.at(-1)?.ok === true,
        codeHash,
        wallet: codeHash ?? parseSignature(payment.signature).factory?.target,
        calls: calls.slice(skipped).map((call, n) => ({
          ...call,
          gasLimit:
            isPlain && payment.deposit === undefined ? accountGas : withMargin(results[n + skipped]?.gasUsed ?? 0),
        })),
      }
      assessed.set(payment, found)
      return found
    })
  }

  /** Names what the buyer can mend, because the simulation only shows that the token rejects the payment. Undefined: it accepts it now. */
  async function reasonOf(payment: Payment, { codeHash }: Assessment): Promise<PaymentErrorCode | undefined> {
    const { factory, signature } = parseSignature(payment.signature)
    if (codeHash === undefined && factory === undefined && payment.signature.length !== 132) return 'invalid_signature'
    if (
      codeHash !== undefined &&
      !(await chain.acceptsSignature(payment.from, paymentDigest(payment, terms), signature))
    )
      return 'invalid_signature'
    return chain.rejectionReason(payment)
  }

  /** Follows the transaction that an earlier process has sent. Returns undefined for one that is mined or lost. */
  async function follow(settlement: bigint): Promise<{ readonly outcome: Promise<Tracked> } | 'elsewhere' | undefined> {
    const known = () => sender.find(settlement)
    if (known() === undefined && (await slots.isPending(settlement))) await sender.adopt()
    const outcome = known()
    if (outcome !== undefined) return { outcome }
    return (await slots.isPending(settlement)) ? 'elsewhere' : undefined
  }

  return {
    async verify(payment) {
      const { factory } = parseSignature(payment.signature)
      if (factory !== undefined && !factories.has(factory.target.toLowerCase()))
        return { ok: false, error: 'wallet_factory_not_allowed' }
      const found = await assess(payment)
      const reason = found.ok ? undefined : await reasonOf(payment, found)
      // The pending block of a node can be behind for a moment.
      if (found.ok || (reason === undefined && (await assess(payment)).ok)) return { ok: true }
      return { ok: false, error: await buyerError(reason ?? reasonOfWallet(found), chain) }
    },

    /**
     * Joins the settlement of the same payment. It may wait for other payments of its payer, or for a block. Meanwhile anyone may execute
     * the payment, or it expires. So the caller reads the chain after a time, and then joins again.
     */
    settle(payment, settlement) {
      const name = paymentName({ payer: payment.from, nonce: payment.nonce })
      const work = underway.get(name) ?? settleWhole(payment, settlement).finally(() => underway.delete(name))
      underway.set(name, work)
      return withDeadline(work, followMs, { onTimeout: () => ({ sent: 'perhaps' }) as const })
    },

    async execute(call) {
      const [report] = await simulateBatch(rpc, [{ ...call, gasLimit: maxCallGas }])
      if (report?.ok !== true) return 'rejected'
      const { timestamp } = await chain.heads.head()
      const gasLimit = withMargin(report.gasUsed)
      const payment = { validBefore: timestamp + callSeconds }
      const sent = await sender.submit({ payment, calls: [{ ...call, gasLimit }] })
      if (sent === 'unfunded')
        throw new GatewayFault('payment_unavailable', {
          cause: 'no account can pay for gas, or its price is above the limit',
        })
      return sent === 'rejected' ? 'rejected' : 'sent'
    },

    supports: async () => true,
    adopt: () => sender.adopt(),
    [Symbol.asyncDispose]: () => sender[Symbol.asyncDispose](),
  }

  async function settleWhole(payment: Payment, settlement: bigint | null): Promise<SettlementReport> {
    const followed = settlement === null ? undefined : await follow(settlement)
    if (followed === 'elsewhere') return { sent: 'perhaps' }
    if (followed !== undefined) return toReport(payment, await followed.outcome)
    const found = assessed.get(payment) ?? (await assess(payment))
    if (!found.ok) return { sent: 'no', rejection: await reasonOf(payment, found) }
    const leave = await exposure.enter({ payment, codeHash: found.wallet })
    if (typeof leave === 'number')
      return { sent: 'no', rejection: 'payer_blocked', retryAfter: Math.max(1, Math.ceil(leave / 1000)) }
    let ended: Parameters<typeof leave>[0] = 'other'
    try {
      // Another payment of the wallet may have deployed it since, or was expected to and was not sent.
      const { factory } = parseSignature(payment.signature)
      const latest = factory === undefined ? found : ((await simulate([payment]))[0] as Assessment)
      const sent = await sender.submit({ payment, calls: latest.calls })
      if (sent === 'rejected')
        return { sent: 'no', rejection: (await reasonOf(payment, latest)) ?? reasonOfWallet(latest) }
      const report = toReport(payment, sent)
      if (report.sent === 'mined') ended = report.paid ? 'paid' : 'other'
      else if (typeof sent === 'object' && (await isOfPayer(payment, sent.block).catch(() => false))) ended = 'failed'
      return report
    } finally {
      assessed.delete(payment)
      leave(ended)
    }
  }

  /** Returns whether a failure is the payer's. A payment also fails that an earlier transaction has paid, or that is mined too late. */
  async function isOfPayer(payment: Payment, block: BlockId): Promise<boolean> {
    if ((await chain.timeOf(block)) >= payment.validBefore) return false
    const { kind } = await chain.transferStatus(payment, block.number)
    return kind === 'unused' || kind === 'expired' || kind === 'spent'
  }

  function toReport(payment: Payment, sent: Exclude<SendResult, 'rejected'>): SettlementReport {
    if (sent === 'unfunded') return { sent: 'no', rejection: 'payment_unavailable' }
    if (sent === 'lost') return { sent: 'perhaps' }
    const paid = chain.findTransfer(payment, sent.logs)
    if (paid === undefined) return { sent: 'reverted' }
    return { sent: 'mined', ...(paid === 'paid' && { paid: { transaction: sent.transaction, block: sent.block } }) }
  }
}

/** A wallet may accept one call and reject the next, such as one with fees. It is refused then. An account gets another try. */
function reasonOfWallet({ wallet }: Assessment): PaymentErrorCode | undefined {
  return wallet && 'payment_rejected'
}

/** A plain transfer runs the token's code only; its cost depends on which balances are new. */
const accountGas = 100_000
/**
 * More gas than the simulation took, because the state may be colder when the block is made. Not much more, because a wallet may burn it.
 */
const withMargin = (gasUsed: number) => Math.ceil(gasUsed * 1.25) + 40_000

/** ERC-6492 wraps the signature of a wallet that its factory has yet to deploy. Malformed wrapping counts as a signature. */
function parseSignature(signature: Hex): { readonly signature: Hex; readonly factory?: Call } {
  try {
    const { address, data, signature: inner } = parseErc6492Signature(signature)
    if (address === undefined || data === undefined) return { signature }
    return { signature: inner, factory: { target: address, gasLimit: deploymentGas, data } }
  } catch {
    return { signature }
  }
}

/**
 * Returns the calls that settle a payment. They are the deployment of its wallet, unless the payer signed as an account, then the transfer.
 */
function toCalls(payment: Payment, terms: PaymentTerms): Call[] {
  if (payment.deposit !== undefined) return [executionOf(payment, terms.asset)]
  const { factory, signature: inner } = parseSignature(payment.signature)
  const transfer = executionOf({ ...payment, signature: inner }, terms.asset)
  if (factory === undefined) return [transfer]
  const isAccount = inner.length === 132 && checkSignature({ ...payment, signature: inner }, terms) === undefined
  return isAccount ? [transfer] : [factory, transfer]
}
