/**
 * Payment channels of the x402 scheme `batch-settlement`. A buyer deposits once into a contract, then signs a voucher over the sum of all
 * purchases for each new one. Here are identity and digests (EIP-712) and the calls of the contract `x402BatchSettlement`.
 */
import { domainSeparator, type Hex } from '@touchstone/verdict'
import {
  encodeAbiParameters,
  encodeFunctionData,
  keccak256,
  parseAbi,
  parseAbiParameters,
  stringToHex,
} from 'viem/utils'
import { chainId } from '../../domain/chain.ts'
import { encodeAddress, encodeWord } from '../../lib/words.ts'

/** The contract has the same address on every chain, and so has its collector of ERC-3009 authorizations. */
export const channelContract: Hex = '0x4020074e9df2ce1dee5a9c1b5c3f541d02a10003'
export const depositCollector: Hex = '0x4020806089470a89826cb9fb1f4059150b550004'
export const channelScheme = 'batch-settlement'

/** Immutable parameters, whose hash is the channel's id; addresses in lower case, `withdrawDelay` in seconds. */
export type ChannelConfig = {
  readonly payer: Hex
  /** The account that signs vouchers. */
  readonly payerAuthorizer: Hex
  readonly receiver: Hex
  /** The account that authorizes claims. */
  readonly receiverAuthorizer: Hex
  readonly token: Hex
  readonly withdrawDelay: number
  readonly salt: Hex
}

/** A voucher over `cumulative` (the token's smallest units): the sum of all purchases of a channel. */
export type Voucher = { readonly config: ChannelConfig; readonly cumulative: bigint; readonly signature: Hex }

/** A voucher and how much of it is claimed: at most `cumulative`. */
export type ChannelClaim = Voucher & { readonly total: bigint }

/** A deposit into a channel; its ERC-3009 nonce is the hash of channel and `salt`. */
export type Deposit = { readonly config: ChannelConfig; readonly salt: Hex }

export const channelDomain = {
  name: 'x402 Batch Settlement',
  version: '1',
  chainId,
  verifyingContract: channelContract,
} as const

const configFields =
  'address payer,address payerAuthorizer,address receiver,address receiverAuthorizer,address token,uint40 withdrawDelay,bytes32 salt'
const entryType = 'ClaimEntry(bytes32 channelId,uint128 maxClaimableAmount,uint128 totalClaimed)'
const typeHash = (type: string) => keccak256(stringToHex(type))
const typeHashes = {
  config: typeHash(`ChannelConfig(${configFields})`),
  voucher: typeHash('Voucher(bytes32 channelId,uint128 maxClaimableAmount)'),
  entry: typeHash(entryType),
  batch: typeHash(`ClaimBatch(ClaimEntry[] claims)${entryType}`),
}
const separator = domainSeparator(channelDomain).slice(2)

export const channelAbi = parseAbi([
  'struct ChannelConfig { address payer; address payerAuthorizer; address receiver; address receiverAuthorizer; address token; uint40 withdrawDelay; bytes32 salt; }',
  'struct Voucher { ChannelConfig channel; uint128 maxClaimableAmount; }',
  'struct VoucherClaim { Voucher voucher; bytes signature; uint128 totalClaimed; }',
  'function channels(bytes32 channelId) view returns (uint128 balance, uint128 totalClaimed)',
  'function pendingWithdrawals(bytes32 channelId) view returns (uint128 amount, uint40 initiatedAt)',
  'function deposit(ChannelConfig config, uint128 amount, address collector, bytes collectorData)',
  'function claimWithSignature(VoucherClaim[] voucherClaims, bytes authorizerSignature)',
  'function settle(address receiver, address token)',
  'function initiateWithdraw(ChannelConfig config, uint128 amount)',
  'function finalizeWithdraw(ChannelConfig config)',
  'function multicall(bytes[] data) returns (bytes[] results)',
])

/** Hashes a struct of words in the contract's domain (EIP-712). */
function digestOfWords(words: string): Hex {
  return keccak256(`0x1901${separator}${keccak256(words as Hex).slice(2)}`)
}

export function channelIdOf(config: ChannelConfig): Hex {
  const { payer, payerAuthorizer, receiver, receiverAuthorizer, token, withdrawDelay, salt } = config
  const accounts = [payer, payerAuthorizer, receiver, receiverAuthorizer, token].map(encodeAddress).join('')
  return digestOfWords(`${typeHashes.config}${accounts}${encodeWord(withdrawDelay)}${salt.slice(2)}`)
}

/** Returns what the payer's account signs. It is different for every channel and sum, so that it names the voucher. */
export function voucherDigest(channelId: Hex, cumulative: bigint): Hex {
  return digestOfWords(`${typeHashes.voucher}${channelId.slice(2)}${encodeWord(cumulative)}`)
}

/** Returns what the receiver's account signs for a claim of several vouchers. */
export function claimDigest(claims: readonly ChannelClaim[]): Hex {
  const entries = claims.map(({ config, cumulative, total }) =>
    keccak256(`${typeHashes.entry}${channelIdOf(config).slice(2)}${encodeWord(cumulative)}${encodeWord(total)}`).slice(
      2,
    ),
  )
  return digestOfWords(`${typeHashes.batch}${keccak256(`0x${entries.join('')}`).slice(2)}`)
}

/** Returns the ERC-3009 nonce of a deposit, which binds the authorization to its channel. */
export function depositNonce(channelId: Hex, salt: Hex): Hex {
  return keccak256(`0x${channelId.slice(2)}${salt.slice(2)}`)
}

type DepositPayment = {
  readonly value: bigint
  readonly validAfter: bigint
  readonly validBefore: bigint
  readonly signature: Hex
}

/** Encodes the call that executes a deposit; anyone may send it. */
export function encodeDeposit(
  { config, salt }: Deposit,
  { value, validAfter, validBefore, signature }: DepositPayment,
): Hex {
  const authorization = parseAbiParameters('uint256, uint256, uint256, bytes')
  const data = encodeAbiParameters(authorization, [validAfter, validBefore, BigInt(salt), signature])
  const args = [config, value, depositCollector, data] as const
  return encodeFunctionData({ abi: channelAbi, functionName: 'deposit', args })
}

/** Encodes a claim of vouchers of one receiver, followed by the transfer of what was claimed to it. Anyone may send it. */
export function encodeClaim(claims: readonly [ChannelClaim, ...ChannelClaim[]], signature: Hex): Hex {
  const { receiver, token } = claims[0].config
  const rows = claims.map(({ config: channel, cumulative: maxClaimableAmount, signature: signed, total }) => ({
    voucher: { channel, maxClaimableAmount },
    signature: signed,
    totalClaimed: total,
  }))
  const calls = [
    encodeFunctionData({ abi: channelAbi, functionName: 'claimWithSignature', args: [rows, signature] }),
    encodeFunctionData({ abi: channelAbi, functionName: 'settle', args: [receiver, token] }),
  ]
  return encodeFunctionData({ abi: channelAbi, functionName: 'multicall', args: [calls] })
}
