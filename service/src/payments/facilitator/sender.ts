/**
 * Sends payments (spec §4.8): those that wait go together in one transaction, each with its own gas limit and outcome. A lonely payment is
 * sent at once by itself; while others are on their way, a batch waits shortly for company. Accounts take turns.
 */
import type { Hex } from '@touchstone/verdict'
import type { LocalAccount, TransactionSerializableEIP1559 } from 'viem'
import { keccak256 } from 'viem/utils'
import { requireQuantity } from '../../chain/rpc/answer.ts'
import { isKnownTransaction, isRefusal, type RpcClient } from '../../chain/rpc/client.ts'
import { feeLimit, type Fees, gasLimit } from '../../chain/transactions/transaction.ts'
import { chainId } from '../../domain/chain.ts'
import { sleep } from '../../lib/async/sleep.ts'
import type { Log } from '../../lib/log.ts'
import type { Heads } from '../heads.ts'
import { onPendingBlock } from '../on-chain.ts'
import type { Payment } from '../x402/payment.ts'
import { encodeBatch, gasOf, maxBytes, simulateBatch, sizeOf, type Call, type CallReport } from './call-batch.ts'
import { isTooDear, sendRefusalOf, replacementOf, type Stuck } from './replacement.ts'
import type { Signed, Slot, NonceSlots } from './slots.ts'
import { createTracker, type Tracked } from './tracker.ts'

/** `calls` settle the payment; the last one is the transfer. Calls without a payment have `validBefore` only: from then on, they are not sent. */
export type Member = {
  readonly payment: Payment | { readonly validBefore: bigint }
  readonly calls: readonly Call[]
}
/** rejected: it would fail now and was not sent. unfunded: no account can pay for gas. Its price may be above the limit. */
export type SendResult = Tracked | 'rejected' | 'unfunded'

type SenderOptions = {
  readonly rpc: RpcClient
  readonly heads: Pick<Heads, 'head' | 'fees'>
  readonly slots: NonceSlots
  readonly accounts: readonly LocalAccount[]
  readonly log: Log
  readonly missingSeconds?: number | undefined
}

const maxMembers = 80
/** Time for company, while another transaction is on its way. */
const companyMs = 150

type Waiting = PromiseWithResolvers<SendResult> & { readonly member: Member }

export function createSender({ rpc: provider, heads, slots, accounts, log, missingSeconds }: SenderOptions) {
  const rpc = onPendingBlock(provider)
  const waiting: Waiting[] = []
  /** Batches that are not followed yet. */
  let sending = 0
  let isClosing = false
  let turn = 0
  let timer: NodeJS.Timeout | undefined
  const addresses = accounts.map(({ address }) => address.toLowerCase() as Hex)
  const tracker = createTracker({ rpc: provider, heads, slots, resign, fillGap, send, log, missingSeconds })

  /** Resolves when the payment's transaction is in a block, or will never be. Rejects when it could not be sent. */
  async function submit(member: Member): Promise<SendResult> {
    if (isClosing) throw closing()
    const one: Waiting = { ...Promise.withResolvers<SendResult>(), member }
    waiting.push(one)
    const isLonely = sending === 0 && tracker.size() === 0
    if (isLonely || waiting.length >= maxMembers) setImmediate(flush)
    else timer ??= setTimeout(flush, companyMs)
    return one.promise
  }

  function flush(): void {
    clearTimeout(timer)
    timer = undefined
    const batch = takeBatch()
    if (batch.length === 0) return
    sending += 1
    sendBatch(batch)
      .catch((error: unknown) => batch.forEach(({ reject }) => reject(error)))
      .finally(() => (sending -= 1))
    if (waiting.length > 0) flush()
  }

  function takeBatch(): Waiting[] {
    const calls: Call[] = []
    const end = waiting.findIndex(({ member }, index) => {
      calls.push(...member.calls)
      return index === maxMembers || sizeOf(calls) > maxBytes || gasOf(calls) > gasLimit
    })
    return waiting.splice(0, end === -1 ? waiting.length : Math.max(1, end))
  }

  async function sendBatch(batch: readonly Waiting[]): Promise<void> {
    const fees = await heads.fees()
    const found = fees.maxFeePerGas > feeLimit ? 'unfunded' : await simulate(batch, fees)
    if (found === 'unfunded') return batch.forEach(({ resolve }) => resolve('unfunded'))
    const { account, passed } = found
    if (passed.length === 0) return
    const sender = account.address.toLowerCase() as Hex
    const transaction = toTransaction(
      passed.map(({ member }) => member),
      fees,
    )
    const count = Number(requireQuantity(await rpc('eth_getTransactionCount', [sender, 'latest'])))
    const members = passed.flatMap(({ member: { payment } }) =>
      'from' in payment ? [{ payer: payment.from, nonce: payment.nonce }] : [],
    )
    const slot = await slots.assign({ sender, count, members }, (nonce) => sign(account, { ...transaction, nonce }))
    const validBefore = passed
      .map(({ member }) => member.payment.validBefore)
      .reduce((latest, one) => (one > latest ? one : latest))
    void tracker.track({ slot, validBefore }).then(
      (outcome) => passed.forEach(({ resolve }) => resolve(outcome)),
      (error: unknown) => passed.forEach(({ reject }) => reject(error)),
    )
    // Not sent is not lost: the tracker sends it again.
    void send(slot.raw).catch((error: unknown) =>
      log.warn('a settlement was not taken', { reason: isRefusal(error) ? 'the node refused it' : 'no answer' }),
    )
  }

  /** Runs the batch as it will be sent, with fees and the next account that can pay. Returns what passes. */
  async function simulate(batch: readonly Waiting[], fees: Fees) {
    const calls = batch.flatMap(({ member }) => member.calls)
    for (const _ of accounts) {
      const account = accounts[turn++ % accounts.length] as LocalAccount
      const simulated = simulateBatch(rpc, calls, { from: account.address, fees })
      const reports = await simulated.catch((error: unknown) => {
        if (sendRefusalOf(error) === 'unfunded') return undefined
        throw error
      })
      if (reports !== undefined) return { account, passed: passing(batch, reports) }
    }
    return 'unfunded'
  }

  /** The last call of a member is its transfer. */
  function passing(batch: readonly Waiting[], reports: readonly CallReport[]): Waiting[] {
    let at = 0
    return batch.filter(({ member, resolve }) => {
      at += member.calls.length
      const passes = reports[at - 1]?.ok === true
      if (!passes) resolve('rejected')
      return passes
    })
  }

  /** A single transfer needs no batch around it. */
  function toTransaction(members: readonly Member[], fees: Fees): Omit<TransactionSerializableEIP1559, 'nonce'> {
    const calls = members.flatMap((member) => member.calls)
    const [only] = calls
    const base = { type: 'eip1559', chainId, value: 0n, ...fees } as const
    return calls.length === 1 && only !== undefined
      ? { ...base, to: only.target, data: only.data, gas: BigInt(only.gasLimit + 21_000 + 8 * only.data.length) }
      : { ...base, data: encodeBatch(calls, false), gas: BigInt(gasOf(calls)) }
  }

  async function sign(account: LocalAccount, transaction: TransactionSerializableEIP1559): Promise<Signed> {
    const raw = await account.signTransaction(transaction)
    return { raw, hash: keccak256(raw) }
  }

  async function resign(slot: Slot, fees: Fees, stuck: Stuck): Promise<Signed | undefined> {
    const account = accounts[addresses.indexOf(slot.sender)] as LocalAccount
    const replacement = replacementOf(slot, fees, stuck)
    return replacement && sign(account, replacement)
  }

  async function fillGap(sender: Hex, nonce: number): Promise<void> {
    const account = accounts[addresses.indexOf(sender)] as LocalAccount
    const fees = await heads.fees()
    if (fees.maxFeePerGas > feeLimit) return
    const slot = await slots.fill({ sender, nonce }, () =>
      sign(account, { type: 'eip1559', chainId, value: 0n, to: sender, gas: 21_000n, ...fees, nonce }),
    )
    if (slot === undefined) return
    void tracker.track({ slot, validBefore: 0n }).catch(() => {})
    await send(slot.raw)
  }

  async function send(raw: Hex): Promise<void> {
    if (isTooDear(raw)) return
    try {
      await provider('eth_sendRawTransaction', [raw])
    } catch (error) {
      if (!isKnownTransaction(error)) throw error
    }
  }

  return {
    submit,
    /** Returns the outcome of a transaction that is followed. */
    find: tracker.find,
    /** Follows the transactions that no living process watches. */
    async adopt(): Promise<void> {
      for (const { validBefore, ...slot } of await slots.adopt(addresses, tracker.followed())) {
        void tracker.track({ slot, validBefore }).catch(() => {})
        await send(slot.raw).catch(() => {})
      }
    },
    async [Symbol.asyncDispose]() {
      isClosing = true
      clearTimeout(timer)
      for (const { reject } of waiting.splice(0)) reject(closing())
      while (sending > 0) await sleep(10)
      await tracker[Symbol.asyncDispose]()
    },
  }
}

const closing = () => new Error('the gateway is closing')
