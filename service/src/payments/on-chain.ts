/**
 * Reads the outcome of a payment from the chain, which alone decides. A facilitator's report does not count, and `authorizationState` alone
 * proves nothing, because a cancelled nonce and one spent elsewhere are «used» too.
 */
import type { Hex } from '@touchstone/verdict'
import { encodeEventTopics, encodeFunctionData, pad, parseAbi, toHex } from 'viem/utils'
import { requireQuantity } from '../chain/rpc/answer.ts'
import { isAboutRequest, isRevert, type RpcClient } from '../chain/rpc/client.ts'
import { type BlockAt, hasCode, readContract } from '../chain/rpc/contract.ts'
import { type BlockId, chainId } from '../domain/chain.ts'
import { isObject } from '../lib/json.ts'
import { channelContract, encodeDeposit } from './channels/channel.ts'
import { encodeAddress, encodeWord, padToWords } from '../lib/words.ts'
import { simulateBatch, type Call } from './facilitator/call-batch.ts'
import { createHeads } from './heads.ts'
import type { Payment } from './x402/payment.ts'

export const tokenAbi = parseAbi([
  'function name() view returns (string)',
  'function version() view returns (string)',
  'function decimals() view returns (uint8)',
  'function DOMAIN_SEPARATOR() view returns (bytes32)',
  'function balanceOf(address) view returns (uint256)',
  'function authorizationState(address, bytes32) view returns (bool)',
  'event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)',
  'event AuthorizationCanceled(address indexed authorizer, bytes32 indexed nonce)',
  'event Transfer(address indexed from, address indexed to, uint256 value)',
])

const walletAbi = parseAbi(['function isValidSignature(bytes32,bytes) view returns (bytes4)'])

/**
 * `paid`: the transfer is in `transaction`. `earlier`: it is there, but the number of its block is below that of the head when the payment
 * came. `spent`: the nonce is used or cancelled without it. `expired`: unused, and too late in chain time. `unused`: it may still be paid.
 * `unknown`: the logs do not match the state.
 */
export type AuthorizationStatus =
  | { readonly kind: 'paid' | 'earlier'; readonly transaction: Hex; readonly block: BlockId }
  | { readonly kind: 'spent' | 'expired' | 'unused' | 'unknown' }

/** Reasons that the buyer can remove. */
type RejectionReason = 'insufficient_funds' | 'nonce_already_used' | 'payment_rejected'

export type PaymentChain = ReturnType<typeof createPaymentChain>

/** A log as JSON-RPC returns it. */
export type LoggedEvent = {
  readonly topics: readonly Hex[]
  readonly data: Hex
  readonly address: Hex
  readonly logIndex: Hex
  readonly transactionHash: Hex
  readonly blockHash: Hex
}
type MinedReceipt = { readonly blockHash: Hex; readonly blockNumber: Hex; readonly logs: readonly LoggedEvent[] }

/** Providers serve a range of this many blocks. */
const logRange = 2_000n
const maxRanges = 25
/** Gas that a payment may take, with the wallet's check of its signature. */
const transferGas = 250_000
const depositGas = 400_000
/** Gas for a wallet to check a signature: enough for a WebAuthn key that is checked in Solidity. */
const walletGas = 1_000_000

const [usedTopic] = encodeEventTopics({ abi: tokenAbi, eventName: 'AuthorizationUsed' })
const [canceledTopic] = encodeEventTopics({ abi: tokenAbi, eventName: 'AuthorizationCanceled' })
const [transferTopic] = encodeEventTopics({ abi: tokenAbi, eventName: 'Transfer' })

/** Every function throws when the provider returns no usable answer. `now` is in milliseconds. */
export function createPaymentChain({
  rpc,
  asset,
  now,
}: {
  readonly rpc: RpcClient
  readonly asset: Hex
  readonly now?: (() => number) | undefined
}) {
  const pending = onPendingBlock(rpc)
  const token = { to: asset, abi: tokenAbi }
  const heads = createHeads(rpc, now)

  /** Returns whether the authorization is used or cancelled. */
  const isUsed = ({ from, nonce }: Payment, at: BlockAt) =>
    readContract(rpc, { ...token, functionName: 'authorizationState', args: [from, nonce], at })

  /**
   * Reads everything at one block. `fromBlock` is the head from before the payment was claimed. An earlier transfer may have paid another
   * seller, where a provider lagged, or a reorganisation has moved the one that was sent for the payment.
   */
  async function transferStatus(payment: Payment, fromBlock: bigint): Promise<AuthorizationStatus> {
    const at = await heads.head(0)
    if (!(await isUsed(payment, { blockHash: at.hash })))
      return { kind: at.timestamp >= payment.validBefore ? 'expired' : 'unused' }
    const earliest = fromBlock > logRange ? fromBlock - logRange : 0n
    const found =
      (await authorizationLog(payment, fromBlock, at.number)) ??
      (await authorizationLog(payment, earliest, fromBlock - 1n))
    if (found === undefined) return { kind: 'unknown' }
    const mined = await receiptOf(found)
    const status = mined && findTransfer(payment, mined.logs)
    if (mined === undefined || status === undefined) return { kind: 'unknown' }
    const { transactionHash: transaction, blockHash: hash } = found
    const { number } = mined
    if (status === 'spent') return { kind: 'spent' }
    return { kind: number >= fromBlock ? 'paid' : 'earlier', transaction, block: { number, hash } }
  }

  async function authorizationLog({ from, nonce }: Payment, fromBlock: bigint, toBlock: bigint) {
    const topics = [[usedTopic, canceledTopic], pad(from), nonce]
    let first = fromBlock
    for (let ranges = 0; first <= toBlock && ranges < maxRanges; ranges += 1, first += logRange) {
      const last = first + logRange - 1n < toBlock ? first + logRange - 1n : toBlock
      const filter = { address: asset, topics, fromBlock: toHex(first), toBlock: toHex(last) }
      const logs = (await rpc('eth_getLogs', [filter])) as LoggedEvent[]
      if (logs[0] !== undefined) return logs[0]
    }
    return undefined
  }

  /** Undefined: the receipt is missing or of another block. A log is one provider's word, a receipt that of a quorum where one is set. */
  async function receiptOf({ transactionHash, blockHash }: LoggedEvent) {
    const receipt = (await rpc('eth_getTransactionReceipt', [transactionHash])) as MinedReceipt | null
    if (receipt === null || receipt.blockHash !== blockHash) return undefined
    return { number: requireQuantity(receipt.blockNumber), logs: receipt.logs }
  }

  /**
   * Returns what a transaction with these logs did with the payment. FiatToken logs the transfer right after the authorization. spent: the
   * nonce is used or cancelled without this transfer. Undefined: the logs do not name the nonce.
   */
  function findTransfer(
    { from, to, value, nonce }: Payment,
    logs: readonly LoggedEvent[],
  ): 'paid' | 'spent' | undefined {
    const [payer, payee] = [pad(from), pad(to)]
    const isOfToken = ({ address }: LoggedEvent) => address.toLowerCase() === asset.toLowerCase()
    const at = logs.findIndex(
      (log) =>
        isOfToken(log) &&
        (log.topics[0] === usedTopic || log.topics[0] === canceledTopic) &&
        log.topics[1] === payer &&
        log.topics[2] === nonce,
    )
    const [used, next] = [logs[at], logs[at + 1]]
    if (used === undefined) return undefined
    const isPaid =
      used.topics[0] === usedTopic &&
      next !== undefined &&
      isOfToken(next) &&
      requireQuantity(next.logIndex) === requireQuantity(used.logIndex) + 1n &&
      next.topics[0] === transferTopic &&
      next.topics[1] === payer &&
      next.topics[2] === payee &&
      requireQuantity(next.data) === value
    return isPaid ? 'paid' : 'spent'
  }

  /** Returns why the token would reject this authorization now; undefined if it would accept it. */
  async function rejectionReason(payment: Payment): Promise<RejectionReason | undefined> {
    const { from, value, nonce } = payment
    const [report] = await simulateBatch(pending, [executionOf(payment, asset)])
    if (report?.ok === true) return undefined
    // Read afterwards, because money that is spent meanwhile stays spent.
    const used = await readContract(pending, { ...token, functionName: 'authorizationState', args: [from, nonce] })
    if (used) return 'nonce_already_used'
    const held = await readContract(pending, { ...token, functionName: 'balanceOf', args: [from] })
    return held < value ? 'insufficient_funds' : 'payment_rejected'
  }

  return {
    heads,
    isUsed,
    transferStatus,
    findTransfer,
    rejectionReason,
    /** Returns an account's balance at the newest block, in the token's smallest units. */
    balance: (holder: Hex) => readContract(rpc, { ...token, functionName: 'balanceOf', args: [holder] }),
    /** Returns whether a block is in the chain. Throws for one that the provider does not have, because it may be behind. */
    async isCanonical({ number, hash }: BlockId): Promise<boolean> {
      const block = await rpc('eth_getBlockByNumber', [toHex(number), false])
      if (!isObject(block)) throw new Error(`The provider does not have block ${number}.`)
      return block['hash'] === hash
    },
    /** Returns the time of a block in unix seconds. Throws where the provider does not have it. */
    async timeOf({ hash }: BlockId): Promise<bigint> {
      const block = await rpc('eth_getBlockByHash', [hash, false])
      if (!isObject(block)) throw new Error(`The provider does not have block ${hash}.`)
      return requireQuantity(block['timestamp'])
    },
    /** Returns whether a contract takes a signature as its own (ERC-1271). One that fails does not, nor does an account without code. */
    async acceptsSignature(account: Hex, hash: Hex, signature: Hex): Promise<boolean> {
      const data = encodeFunctionData({ abi: walletAbi, args: [hash, signature] })
      // Nodes name an invalid instruction or too little gas in different ways. The report of a batch does not depend on that.
      const [report] = await simulateBatch(pending, [{ target: account, gasLimit: walletGas, data }])
      return report?.ok === true && report.word === '0x1626ba7e'.padEnd(66, '0')
    },
    hasCode: (account: Hex) => hasCode(rpc, account),
    async isRightChain(): Promise<boolean> {
      return requireQuantity(await rpc('eth_chainId')) === BigInt(chainId)
    },
  }
}

/** The selector of `transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,bytes)`. */
const transferSelector = '0xcf092995'

/** Returns the call that executes a payment in the token `asset`. It is encoded by hand, because each payment needs it. */
export function executionOf(payment: Payment, asset: Hex): Call {
  const { from, to, value, validAfter, validBefore, nonce, signature, deposit } = payment
  if (deposit !== undefined)
    return { target: channelContract, gasLimit: depositGas, data: encodeDeposit(deposit, payment) }
  const bytes = signature.slice(2)
  const data =
    `${transferSelector}${encodeAddress(from)}${encodeAddress(to)}${encodeWord(value)}${encodeWord(validAfter)}` +
    `${encodeWord(validBefore)}${nonce.slice(2)}${encodeWord(224)}${encodeWord(bytes.length / 2)}${padToWords(bytes)}`
  return { target: asset, gasLimit: transferGas, data: data as Hex }
}

/**
 * Returns a client whose simulations run on the pending block. An authorization may begin after the last block of an idle chain. A node
 * without a pending block simulates on the latest one.
 */
export function onPendingBlock(rpc: RpcClient): RpcClient {
  return async (method, params = []) => {
    if (method !== 'eth_call' && method !== 'eth_estimateGas') return rpc(method, params)
    try {
      return await rpc(method, [params[0], 'pending'])
    } catch (error) {
      if (!isAboutRequest(error) || isRevert(error)) throw error
      return rpc(method, [params[0], 'latest'])
    }
  }
}
