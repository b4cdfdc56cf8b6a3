/**
 * Reads the outcome of a payment from the chain, which alone decides. A facilitator's report does not count, and `authorizationState` alone
 * proves nothing, because a cancelled nonce and one spent elsewhere are «used» too.
 */
import type { Hex } from '@touchstone/verdict'
import { decodeFunctionResult, encodeEventTopics, encodeFunctionData, pad, parseAbi, toHex, type Abi } from 'viem'
import { isRefusal, isRevert, type RpcClient } from '../chain/rpc/client.ts'
import { chainId } from '../domain/chain.ts'
import { isObject } from '../lib/json.ts'
import type { Payment } from './x402/payment.ts'

export const tokenAbi = parseAbi([
  'function name() view returns (string)',
  'function version() view returns (string)',
  'function decimals() view returns (uint8)',
  'function DOMAIN_SEPARATOR() view returns (bytes32)',
  'function balanceOf(address) view returns (uint256)',
  'function authorizationState(address, bytes32) view returns (bool)',
  'function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature)',
  'event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)',
  'event AuthorizationCanceled(address indexed authorizer, bytes32 indexed nonce)',
  'event Transfer(address indexed from, address indexed to, uint256 value)',
])

/** `timestamp` is in unix seconds. */
type Block = { readonly number: bigint; readonly hash: Hex; readonly timestamp: bigint }
/**
 * paid: the transfer is in `transaction`. spent: the nonce is used or cancelled without it. expired: unused, and too late in chain time.
 * unused: it may still be paid. unknown: the logs do not match the state.
 */
export type TransferStatus =
  | { readonly kind: 'paid'; readonly transaction: Hex }
  | { readonly kind: 'spent' | 'expired' | 'unused' | 'unknown' }

/** Reasons that the buyer can remove. */
type RejectionReason = 'insufficient_funds' | 'nonce_already_used' | 'payment_rejected'

export type PaymentChain = ReturnType<typeof createPaymentChain>

type Log = {
  readonly topics: readonly Hex[]
  readonly data: Hex
  readonly address: Hex
  readonly logIndex: Hex
  readonly transactionHash: Hex
  readonly blockHash: Hex
}

/** Providers serve a range of this many blocks. */
const logRange = 2_000n
const maxRanges = 25

const [usedTopic] = encodeEventTopics({ abi: tokenAbi, eventName: 'AuthorizationUsed' })
const [canceledTopic] = encodeEventTopics({ abi: tokenAbi, eventName: 'AuthorizationCanceled' })
const [transferTopic] = encodeEventTopics({ abi: tokenAbi, eventName: 'Transfer' })

/** Every function throws when the provider gives no usable answer. */
export function createPaymentChain({ rpc, asset }: { readonly rpc: RpcClient; readonly asset: Hex }) {
  const pending = onPendingBlock(rpc)
  const token = { to: asset, abi: tokenAbi as Abi }

  async function head(): Promise<Block> {
    const block = await rpc('eth_getBlockByNumber', ['latest', false])
    const { number, hash } = block as { number: unknown; hash: Hex }
    return { number: parseQuantity(number), hash, timestamp: parseTimestamp(block) }
  }

  const isUsed = async ({ from, nonce }: Payment, at: BlockAt) =>
    (await readContract(rpc, { ...token, functionName: 'authorizationState', args: [from, nonce], at })) === true

  /** Reads everything at one block. `fromBlock` is the head from before the payment was claimed. */
  async function transferStatus(payment: Payment, fromBlock: bigint): Promise<TransferStatus> {
    const at = await head()
    if (!(await isUsed(payment, { blockHash: at.hash })))
      return { kind: at.timestamp >= payment.validBefore ? 'expired' : 'unused' }
    const found = await authorizationLog(payment, fromBlock, at.number)
    if (found === undefined) return { kind: 'unknown' }
    if (found.topics[0] !== usedTopic) return { kind: 'spent' }
    const next = await logAfter(found)
    if (next === undefined) return { kind: 'unknown' }
    return isTransferOf(payment, next) ? { kind: 'paid', transaction: found.transactionHash } : { kind: 'spent' }
  }

  async function authorizationLog({ from, nonce }: Payment, fromBlock: bigint, toBlock: bigint) {
    const topics = [[usedTopic, canceledTopic], pad(from), nonce]
    let first = fromBlock
    for (let ranges = 0; first <= toBlock && ranges < maxRanges; ranges += 1, first += logRange) {
      const last = first + logRange - 1n < toBlock ? first + logRange - 1n : toBlock
      const filter = { address: asset, topics, fromBlock: toHex(first), toBlock: toHex(last) }
      const logs = (await rpc('eth_getLogs', [filter])) as Log[]
      if (logs[0] !== undefined) return logs[0]
    }
    return undefined
  }

  /** FiatToken logs the transfer right after the authorization. Undefined: the receipt is missing or of another block. */
  async function logAfter({ transactionHash, blockHash, logIndex }: Log): Promise<Log | null | undefined> {
    const receipt = await rpc('eth_getTransactionReceipt', [transactionHash])
    if (receipt === null) return undefined
    const { blockHash: minedIn, logs } = receipt as { blockHash: Hex; logs: readonly Log[] }
    if (minedIn !== blockHash) return undefined
    const index = parseQuantity(logIndex) + 1n
    return logs.find((log) => parseQuantity(log.logIndex) === index) ?? null
  }

  const isTransferOf = ({ from, to, value }: Payment, log: Log | null) =>
    log !== null &&
    log.address.toLowerCase() === asset.toLowerCase() &&
    log.topics[0] === transferTopic &&
    log.topics[1] === pad(from) &&
    log.topics[2] === pad(to) &&
    parseQuantity(log.data) === value

  /** Returns why the token would reject this authorization now; undefined if it would accept it. */
  async function rejectionReason(payment: Payment): Promise<RejectionReason | undefined> {
    const { from, to, value, validAfter, validBefore, nonce, signature } = payment
    const balance = (await readContract(pending, { ...token, functionName: 'balanceOf', args: [from] })) as bigint
    if (await isUsed(payment, 'latest')) return 'nonce_already_used'
    if (balance < value) return 'insufficient_funds'
    const args = [from, to, value, validAfter, validBefore, nonce, signature]
    try {
      await readContract(pending, { ...token, functionName: 'transferWithAuthorization', args })
      return undefined
    } catch (error) {
      if (isRevert(error)) return 'payment_rejected'
      throw error
    }
  }

  return {
    head,
    transferStatus,
    rejectionReason,
    async hasCode(account: Hex): Promise<boolean> {
      const code = await rpc('eth_getCode', [account, 'latest'])
      if (typeof code !== 'string') throw new Error('The node returned no code.')
      return code !== '0x'
    },
    /** Returns chain time in unix seconds: that of the pending block, where the node has one. */
    async time(): Promise<bigint> {
      const blocks = await Promise.all(
        ['latest', 'pending'].map((tag) => rpc('eth_getBlockByNumber', [tag, false]).catch(() => null)),
      )
      const times = blocks.flatMap((block) => (isObject(block) ? [parseTimestamp(block)] : []))
      if (times.length === 0) throw new Error('The node returned no block.')
      return times.reduce((latest, one) => (one > latest ? one : latest))
    },
    async isRightChain(): Promise<boolean> {
      return parseQuantity(await rpc('eth_chainId')) === BigInt(chainId)
    },
  }
}

function parseTimestamp(block: unknown): bigint {
  return parseQuantity((block as { timestamp: unknown }).timestamp)
}

/** A block number, `latest`, or a block by its hash (EIP-1898). */
type BlockAt = Hex | 'latest' | { readonly blockHash: Hex }

/** Calls a view function. Throws what `rpc` throws, and for bytes that do not decode. */
export async function readContract(
  rpc: RpcClient,
  call: { to: Hex; abi: Abi; functionName: string; args?: readonly unknown[]; at?: BlockAt },
): Promise<unknown> {
  const { to, abi, functionName, args = [], at = 'latest' } = call
  const data = encodeFunctionData({ abi, functionName, args: [...args] })
  const result = (await rpc('eth_call', [{ to, data }, at])) as Hex
  return decodeFunctionResult({ abi, functionName, args: [...args], data: result })
}

/**
 * Returns a client whose simulations run on the pending block, because an authorization may begin after the last block of an idle chain.
 * A node without a pending block simulates on the latest one.
 */
export function onPendingBlock(rpc: RpcClient): RpcClient {
  return async (method, params = []) => {
    if (method !== 'eth_call' && method !== 'eth_estimateGas') return rpc(method, params)
    try {
      return await rpc(method, [params[0], 'pending'])
    } catch (error) {
      if (!isRefusal(error) || isRevert(error)) throw error
      return rpc(method, [params[0], 'latest'])
    }
  }
}

/** Parses a JSON-RPC quantity. Throws for any other answer. */
export function parseQuantity(value: unknown): bigint {
  if (typeof value !== 'string' || !/^0x[0-9a-f]{1,64}$/i.test(value)) throw new Error('The node returned no quantity.')
  return BigInt(value)
}
