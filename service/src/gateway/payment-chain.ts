/**
 * What the chain says about a payment. Nothing else decides: no facilitator's report is believed, and `authorizationState` alone proves
 * nothing, because a cancelled nonce and one spent elsewhere are «used» too.
 */
import type { Hex } from '@touchstone/verdict'
import { encodeEventTopics, pad, toHex, type Abi } from 'viem'
import type { Payment } from './payment.ts'
import { asOfNow, isRevert, quantityOf, readContract, tokenAbi, type BlockAt, type PaymentRpc } from './rpc.ts'
import { chainId } from './terms.ts'

/** `timestamp` is in unix seconds. */
export type Block = { readonly number: bigint; readonly hash: Hex; readonly timestamp: bigint }
/**
 * paid: the transfer is there, in `transaction`. spent: the nonce is used or cancelled without it. expired: unused, and too late in
 * chain time. unused: it may still be paid. unknown: the logs do not show what the state says.
 */
export type Truth =
  | { readonly kind: 'paid'; readonly transaction: Hex; readonly at: Block }
  | { readonly kind: 'spent' | 'expired' | 'unused' | 'unknown'; readonly at: Block }

type Mendable = 'insufficient_funds' | 'nonce_already_used' | 'payment_rejected'

export type PaymentChain = ReturnType<typeof createPaymentChain>

type Log = { readonly topics: readonly Hex[]; readonly data: Hex; readonly address: Hex; readonly logIndex: Hex }

/** Providers serve a range of this many blocks. */
const logRange = 2_000n
const mostRanges = 25

const [usedTopic] = encodeEventTopics({ abi: tokenAbi, eventName: 'AuthorizationUsed' })
const [canceledTopic] = encodeEventTopics({ abi: tokenAbi, eventName: 'AuthorizationCanceled' })
const [transferTopic] = encodeEventTopics({ abi: tokenAbi, eventName: 'Transfer' })

/** Every function throws where the provider gives no usable answer. */
export function createPaymentChain({ rpc, asset }: { readonly rpc: PaymentRpc; readonly asset: Hex }) {
  const now = asOfNow(rpc)

  async function head(): Promise<Block> {
    return blockOf(await rpc('eth_getBlockByNumber', ['latest', false]))
  }

  const isUsed = async ({ from, nonce }: Payment, at: BlockAt) =>
    (await readContract(rpc, {
      to: asset,
      abi: tokenAbi as Abi,
      functionName: 'authorizationState',
      args: [from, nonce],
      at,
    })) === true

  /** All reads are of one block. `fromBlock` is the head from before the payment was taken in. */
  async function truthOf(payment: Payment, fromBlock: bigint): Promise<Truth> {
    const at = await head()
    if (!(await isUsed(payment, { blockHash: at.hash })))
      return { kind: at.timestamp >= payment.validBefore ? 'expired' : 'unused', at }
    const found = await authorizationLog(payment, fromBlock, at.number)
    // A provider may hide logs: only a nonce that was used before the payment came in is spent without a log.
    if (found === undefined) return { kind: (await isUsed(payment, toHex(fromBlock))) ? 'spent' : 'unknown', at }
    if (found.topics[0] !== usedTopic) return { kind: 'spent', at }
    const next = await logAfter(found)
    if (next === undefined) return { kind: 'unknown', at }
    return isTransferOf(payment, next)
      ? { kind: 'paid', transaction: found.transactionHash, at }
      : { kind: 'spent', at }
  }

  async function authorizationLog({ from, nonce }: Payment, fromBlock: bigint, toBlock: bigint) {
    const topics = [[usedTopic, canceledTopic], pad(from), nonce]
    let first = fromBlock
    for (let ranges = 0; first <= toBlock && ranges < mostRanges; ranges += 1, first += logRange) {
      const last = first + logRange - 1n < toBlock ? first + logRange - 1n : toBlock
      const filter = { address: asset, topics, fromBlock: toHex(first), toBlock: toHex(last) }
      const logs = (await rpc('eth_getLogs', [filter])) as (Log & { transactionHash: Hex; blockHash: Hex })[]
      if (logs[0] !== undefined) return logs[0]
    }
    return undefined
  }

  /** FiatToken logs the transfer right after the authorization; undefined when the receipt is missing or of another block. */
  async function logAfter(log: Log & { transactionHash: Hex; blockHash: Hex }): Promise<Log | null | undefined> {
    const receipt = (await rpc('eth_getTransactionReceipt', [log.transactionHash])) as {
      blockHash: Hex
      logs: readonly Log[]
    } | null
    if (receipt === null || receipt.blockHash !== log.blockHash) return undefined
    const index = quantityOf(log.logIndex) + 1n
    return receipt.logs.find(({ logIndex }) => quantityOf(logIndex) === index) ?? null
  }

  const isTransferOf = ({ from, to, value }: Payment, log: Log | null) =>
    log !== null &&
    log.address.toLowerCase() === asset.toLowerCase() &&
    log.topics[0] === transferTopic &&
    log.topics[1] === pad(from) &&
    log.topics[2] === pad(to) &&
    quantityOf(log.data) === value

  /** Why the token would not take this authorization now, if the buyer can mend that; undefined if it takes it. */
  async function whyRefused(payment: Payment): Promise<Mendable | undefined> {
    const { from, to, value, validAfter, validBefore, nonce, signature } = payment
    const call = { to: asset, abi: tokenAbi as Abi }
    const balance = (await readContract(now, { ...call, functionName: 'balanceOf', args: [from] })) as bigint
    if (await isUsed(payment, 'latest')) return 'nonce_already_used'
    if (balance < value) return 'insufficient_funds'
    const args = [from, to, value, validAfter, validBefore, nonce, signature]
    try {
      await readContract(now, { ...call, functionName: 'transferWithAuthorization', args })
      return undefined
    } catch (error) {
      if (isRevert(error)) return 'payment_rejected'
      throw error
    }
  }

  return {
    head,
    truthOf,
    whyRefused,
    async hasCode(account: Hex): Promise<boolean> {
      const code = await rpc('eth_getCode', [account, 'latest'])
      if (typeof code !== 'string') throw new Error('the node’s answer is no code')
      return code !== '0x'
    },
    /** Chain time now, in unix seconds: that of the block being made, where the node knows one. */
    async time(): Promise<bigint> {
      const blocks = await Promise.all(
        ['latest', 'pending'].map((tag) => rpc('eth_getBlockByNumber', [tag, false]).catch(() => undefined)),
      )
      const times = blocks.flatMap((block) => (block === undefined || block === null ? [] : [timeOf(block)]))
      if (times.length === 0) throw new Error('the node knows no block')
      return times.reduce((latest, one) => (one > latest ? one : latest))
    },
    async isRightChain(): Promise<boolean> {
      return quantityOf(await rpc('eth_chainId')) === BigInt(chainId)
    },
  }
}

function blockOf(value: unknown): Block {
  const { number, hash } = value as { number: unknown; hash: Hex }
  return { number: quantityOf(number), hash, timestamp: timeOf(value) }
}

function timeOf(value: unknown): bigint {
  return quantityOf((value as { timestamp: unknown }).timestamp)
}
