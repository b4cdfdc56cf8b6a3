/**
 * The sale of a proof through a payment channel, step by step. The steps are ledger, signature, terms, the sum of the channel, the proof,
 * the deposit where one comes with the voucher, and one statement that charges and stores. The chain is not written for a sale; claims.ts
 * collects many together.
 */
import { createHash } from 'node:crypto'
import { checksumAddress, type Hex } from '@touchstone/verdict'
import { chainName } from '../../domain/chain.ts'
import { sleep } from '../../lib/async/sleep.ts'
import { withPayment, type Attest } from '../attestation/attest.ts'
import { renewed } from '../attestation/renewal.ts'
import type { Checkout, CheckoutRequest } from '../checkout.ts'
import {
  abandoned,
  attemptUntil,
  chainMs,
  createSharedAttempts,
  paymentFailure,
  GatewayFault,
  ledgerMs,
  saysUncharged,
  within,
  type Attempted,
  type PaymentErrorCode,
  type PaymentOutcome,
} from '../errors.ts'
import { nameOfAnswered, nameOfRenewal, type FoundRow } from '../ledger/intake.ts'
import type { PaymentComponents } from '../settlement.ts'
import { correctiveHeader, type ChannelTerms } from '../x402/terms.ts'
import { checkChannelTerms, checkVoucher, type PresentedVoucher } from './presented.ts'
import type { ReadChannels } from './state.ts'
import type { Channel, ChannelStore } from './store.ts'

/** The pause between two looks for a deposit that was mined. */
const pollMs = 400
/** Longest lag of a provider behind a deposit that was mined for an earlier request, in milliseconds. */
const lagMs = 4_000

export type VoucherRequest = Omit<CheckoutRequest, 'presented'> & { readonly voucher: PresentedVoucher }
export type ChannelSales = ReturnType<typeof createChannelSales>

type ChannelSalesOptions = Pick<PaymentComponents, 'ledger' | 'chain' | 'terms' | 'count'> & {
  readonly store: ChannelStore
  readonly readChannels: ReadChannels
  /** The checkout of deposits. */
  readonly deposits: Pick<Checkout, 'buy'>
  readonly attest: Attest
  readonly channels: ChannelTerms
}

export function createChannelSales(options: ChannelSalesOptions) {
  const { store, readChannels, chain, ledger, deposits, attest, terms, channels, count } = options
  /** A flood of the same voucher makes one proof. */
  const shared = createSharedAttempts<VoucherRequest>((one, other) => one.order.requestHash === other.order.requestHash)
  const recorded = <T>(work: Promise<T>) => within(ledgerMs, 'ledger_unavailable', work)

  /** Sells the proof, or answers from the ledger. Throws a GatewayFault. */
  async function buy(request: VoucherRequest): Promise<PaymentOutcome> {
    const badSignature = checkVoucher(request.voucher)
    if (badSignature !== undefined) return paymentFailure(badSignature)
    const sellOnce = () => sell(request).catch((fault: unknown) => rethrow(fault, request))
    return attemptUntil(request.until, () => shared.attempt(request.voucher.key.nonce, request, sellOnce))
  }

  /** Throws a fault again. It does not say that nothing was charged once the ledger has the voucher or its deposit. */
  async function rethrow(fault: unknown, { voucher: { key, deposit: paid } }: VoucherRequest): Promise<never> {
    const keys = paid === undefined ? [key] : [key, { payer: paid.from, nonce: paid.nonce }]
    const rows = saysUncharged(fault) ? await Promise.all(keys.map((one) => recorded(ledger.find(one)))) : []
    throw rows.some((row) => row !== undefined) ? new GatewayFault('settlement_pending', { cause: fault }) : fault
  }

  async function sell(request: VoucherRequest): Promise<Attempted> {
    const { voucher, order, closed } = request
    const { requestHash } = order
    const { key, identifier } = voucher
    const find = () => recorded(ledger.find({ ...key, requestHash, identifier }))
    const row = await find()
    const known = row && (await answerFrom(row, request))
    if (known !== undefined) return known
    const error = checkChannelTerms(voucher, terms, channels)
    if (error !== undefined) return paymentFailure(error)
    const { number: fromBlock } = await within(chainMs, 'payment_unavailable', chain.heads.headOnTime())
    const before = await findChannel(voucher)
    const charged = before?.charged ?? 0n
    if (voucher.cumulative !== charged + terms.price) {
      // Another process may have sold it since the first look. Its row was stored together with the sum that was read just now.
      const sold = voucher.cumulative <= charged ? await find() : undefined
      const answer = sold && (await answerFrom(sold, request))
      return answer ?? correct('voucher_amount_mismatch', await findChannel(voucher, true), voucher)
    }
    const added = voucher.deposit?.value ?? 0n
    if (voucher.cumulative > spendable(before) + added) return paymentFailure('channel_underfunded')
    const proof = await attest(order)
    if (proof === null) return paymentFailure('asset_not_found')
    if (closed.aborted) return abandoned
    const deposited = await deposit(request)
    if (deposited?.kind === 'error') return deposited
    const wasMade = deposited?.wasDelivered !== undefined
    const channel = deposited === undefined ? before : await findFunded(request, wasMade)
    if (channel === undefined && wasMade) {
      if (deposited.key.nonce === voucher.deposit?.nonce) return paymentFailure('channel_underfunded')
      // It was an earlier deposit whose answer was lost, and is too small. The next attempt makes this one.
      await recorded(ledger.setUndelivered(deposited.key, false))
      return 'retry'
    }
    const transaction = deposited?.transaction ?? null
    if (channel === undefined) return paymentFailure('settlement_pending', { key, transaction })
    const answer = formatAnswer(voucher, proof, transaction)
    const sale = { voucher, price: terms.price, requestHash, tokenId: order.tokenId, answer, fromBlock }
    // The outcome of a statement without an answer is unknown. The same voucher finds it out.
    if (!(await within(ledgerMs, 'settlement_pending', store.sell(sale)))) return 'retry'
    count('vouchers')
    count('units', terms.price)
    return {
      kind: 'proof',
      body: answer,
      transaction,
      key,
      recorded: Promise.resolve(),
      delivers: deposited?.delivers,
      channel: charge(channel, voucher.cumulative, terms.price),
    }
  }

  /** Answers a purchase that was made. It was made by this voucher, or by an earlier one of the same account that did not get its proof. */
  async function answerFrom(row: FoundRow, { voucher, order }: VoucherRequest): Promise<Attempted | undefined> {
    const { key, identifier, cumulative } = voucher
    const isSame = row.nonce === key.nonce
    // Vouchers for other sellers are public once they are claimed, and so are those to this seller through another service.
    const isTheirs = async () =>
      checkChannelTerms(voucher, terms, channels) === undefined && !isPublic(voucher, await findChannel(voucher, true))
    if (!isSame && !(await isTheirs())) return undefined
    if (row.requestHash !== order.requestHash) {
      if (!isSame) return paymentFailure('payment_identifier_used')
      const channel = await findChannel(voucher, true)
      // A client that has its proof signs over a higher sum. The proof is given again once, because it is renewed with time: its own name
      // among those of the payment says that it was.
      if (
        row.isRecent &&
        !isPublic(voucher, channel) &&
        (await recorded(ledger.identify(row, nameOfAnswered(row.nonce))))
      )
        await recorded(ledger.setUndelivered(row, true))
      return correct('payment_already_used', channel, voucher)
    }
    // A client that has lost its records signs the same vouchers again, and wants a new proof.
    if (isSame && !row.isRecent && !row.undelivered)
      return correct('payment_already_used', await findChannel(voucher, true), voucher)
    // A transfer that is on its way, or another undelivered voucher of the channel, does not concern this voucher.
    if (row.state !== 'done' || row.answer === null) return isSame ? paymentFailure('settlement_pending') : undefined
    const found = { payer: row.payer, nonce: row.nonce }
    const stored = { kind: 'proof', body: row.answer, transaction: row.transaction, key: found } as const
    const outcome = row.isOther ? await renewed(stored, order, options) : stored
    if (outcome === 'retry' || outcome.kind !== 'proof') return outcome
    const isRenewed = outcome.body !== stored.body
    const names = [...(isRenewed ? [nameOfRenewal()] : []), ...(row.isOther && identifier ? [identifier] : [])]
    const isNamed = names.length > 0 && (await recorded(ledger.identify(row, ...names)))
    if (isRenewed && !isNamed) {
      await recorded(ledger.setUndelivered(row, false)) // it was renewed as often as one price allows
      return undefined
    }
    count('replayed')
    const channel = await recorded(store.find(voucher.channelId))
    const price = isSame ? terms.price : 0n
    const sum = isSame ? cumulative : cumulative - terms.price
    return {
      ...outcome,
      wasDelivered: !row.undelivered,
      delivers: row.undelivered && !isPublic(voucher, channel) ? found : undefined,
      ...(channel && { channel: charge(channel, sum, price) }),
    }
  }

  /**
   * Returns the channel as the ledger and the chain have it. The chain is asked where the ledger is old, does not suffice, or has no voucher
   * over the sum, and for the `newest` claims. Returns undefined where nothing was deposited.
   */
  async function findChannel(voucher: PresentedVoucher, newest = false): Promise<Channel | undefined> {
    const known = await recorded(store.find(voucher.channelId))
    const isEnough = !newest && known?.isFresh === true && voucher.cumulative <= spendable(known)
    return isEnough && known.signature !== null ? known : readChannel(voucher, known)
  }

  async function readChannel({ channelId, config }: PresentedVoucher, known?: Channel): Promise<Channel | undefined> {
    const [state] = await within(chainMs, 'payment_unavailable', readChannels([channelId]))
    if (state === undefined || (known === undefined && state.balance === 0n)) return undefined
    const [channel] = await recorded(store.refresh([{ id: channelId, config, state }]))
    return channel
  }

  /**
   * Settles the deposit that comes with a voucher, once. It is a payment of its own: its outcome does not depend on this sale. It costs gas, so
   * that the sale goes on after its client has hung up.
   */
  async function deposit({ voucher, order, until }: VoucherRequest) {
    if (voucher.deposit === undefined) return undefined
    const requestHash = createHash('sha256').update(`deposit ${voucher.channelId}`).digest('hex')
    const presented = { payment: voucher.deposit, accepted: voucher.accepted }
    return deposits.buy({ presented, order: { ...order, requestHash }, until, closed: new AbortController().signal })
  }

  /** Waits until the provider shows the deposit that was mined. One that an earlier request made is shown by all but a lagging one. */
  async function findFunded({ voucher, until }: VoucherRequest, wasMade: boolean): Promise<Channel | undefined> {
    const end = wasMade ? Math.min(until, performance.now() + lagMs) : until
    for (;;) {
      const channel = await readChannel(voucher)
      if (channel !== undefined && voucher.cumulative <= spendable(channel)) return channel
      if (performance.now() > end) return undefined
      await sleep(pollMs)
    }
  }

  /** Returns an error with the sum of the channel, and the voucher that proves it. A public voucher learns what the chain shows. */
  function correct(error: PaymentErrorCode, channel: Channel | undefined, voucher: PresentedVoucher): PaymentOutcome {
    const isShown = isPublic(voucher, channel)
    const charged = (isShown ? channel?.claimed : channel?.charged) ?? 0n
    const signature = (isShown ? null : channel?.signature) ?? null
    const channelState = formatState(voucher.channelId, channel, charged)
    const found = {
      channelState,
      ...(signature !== null && { voucherState: { signedMaxClaimable: charged.toString(), signature } }),
    }
    return { kind: 'error', error, corrective: correctiveHeader(terms, channels, found) }
  }

  function formatAnswer({ key, channelId, cumulative }: PresentedVoucher, proof: string, transaction: Hex | null) {
    return withPayment(proof, {
      success: true,
      transaction: transaction ?? '',
      payer: checksumAddress(key.payer),
      network: chainName,
      amount: terms.price.toString(),
      asset: terms.asset,
      channel: { id: channelId, cumulative: cumulative.toString() },
    })
  }

  return { buy }
}

/** A claim shows its voucher to everyone, so that it no longer proves who sends it. One over nothing is in no claim. */
function isPublic({ cumulative }: PresentedVoucher, channel: Channel | undefined): boolean {
  return channel !== undefined && cumulative > 0n && cumulative <= channel.claimed
}

/** Returns up to which sum the deposit covers vouchers: without what the payer has asked back. */
function spendable(channel: Channel | undefined): bigint {
  return channel === undefined ? 0n : channel.balance - channel.withdrawal
}

/** Returns what a stock client reads of a sale; it compares the sum with its own. */
function charge(channel: Channel, sum: bigint, price: bigint): object {
  return { chargedAmount: price.toString(), channelState: formatState(channel.id, channel, sum) }
}

function formatState(channelId: Hex, channel: Channel | undefined, charged: bigint): object {
  return {
    channelId,
    balance: (channel?.balance ?? 0n).toString(),
    totalClaimed: (channel?.claimed ?? 0n).toString(),
    chargedCumulativeAmount: charged.toString(),
  }
}
