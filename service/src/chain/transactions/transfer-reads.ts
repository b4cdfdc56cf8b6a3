/**
 * Reads for the check of a step by signature before it is sent (spec §3, §4.9). They are the record of an asset, its offer and its nonce,
 * and whether an account signed, all at one block of the provider that gets the transaction. The contract checks again.
 */
import { type AssetRecord, type Hex, recordOfGetAsset } from '@touchstone/verdict'
import { decodeFunctionResult, encodeFunctionData, parseAbi } from 'viem/utils'
import { assetRegistryAbi as abi } from '../../domain/registry-abi.ts'
import { sleep } from '../../lib/async/sleep.ts'
import { throwChainUnavailable } from '../../lib/errors.ts'
import { isHexData, isWord, quantity, requireQuantity, RpcError } from '../rpc/answer.ts'
import { rejectsHashObject } from '../rpc/block-pin.ts'
import { isAboutRequest, type RpcClient } from '../rpc/client.ts'
import { assertFresh } from '../rpc/head.ts'
import { readRegistryVersion } from './registry-version.ts'
import { registryDigest, type RegistryDomain, type Signable } from './typed-data.ts'
import { recoverSigner } from '../../lib/secp256k1.ts'
import type { TimedBlock } from '../../domain/chain.ts'

/** `to` is null while nothing is offered. `expiry` is in unix seconds; `nonce` is the one that the next signature uses. */
type Offer = Readonly<{ to: Hex | null; expiry: bigint; nonce: number }>

/**
 * An asset at a block; addresses in lower case. An asset that does not exist has state 0. `time` is the least that the contract will see for
 * a deadline, in unix seconds.
 */
export type TransferPosition = Readonly<{
  tokenId: bigint
  block: TimedBlock
  time: bigint
  record: AssetRecord
  offer: Offer
}>

type Signed = Readonly<{ signer: Hex; signable: Signable; signature: Hex }>

export type TransferReads = ReturnType<typeof createTransferReads>

/** Reads of the newest block, 100 ms apart, while it lies below one that is known to exist. */
const mostHeads = 10
/** Seconds by which the clock may be ahead of the chain. A chain without transactions may have no new block, as anvil does. */
const clockToleranceSeconds = 60n

/**
 * `contract` and `chainId` are also the domain of what is signed. `rpc` is the writer's; `now` is in milliseconds. A newest block that is
 * `maxHeadAgeSeconds` off this clock says nothing (0: it may have any age).
 */
export function createTransferReads({
  rpc,
  contract,
  chainId,
  maxHeadAgeSeconds = 0,
  now = Date.now,
}: RegistryDomain & { readonly rpc: RpcClient; readonly maxHeadAgeSeconds?: number; readonly now?: () => number }) {
  let reached = 0n

  async function position(tokenId: bigint): Promise<TransferPosition> {
    const block = await newestBlock()
    assertFresh(block, now(), maxHeadAgeSeconds)
    const at = pinnedTo(rpc, block)
    const call = async (functionName: 'getAsset' | 'pendingTransfer') =>
      (await at('eth_call', [
        { to: contract, data: encodeFunctionData({ abi, functionName, args: [tokenId] }) },
      ])) as Hex
    const [asset, pending] = await Promise.all([call('getAsset'), call('pendingTransfer')])
    const record = recordOfGetAsset(asset)
    if (record === null) throw new Error('the answer to getAsset is not a record')
    const [to, expiry, nonce] = decodeFunctionResult({ abi, functionName: 'pendingTransfer', data: pending })
    const offered = BigInt(to) === 0n ? null : (to.toLowerCase() as Hex)
    const time = later(block.timestamp, BigInt(Math.floor(now() / 1_000)) - clockToleranceSeconds)
    return { tokenId, block, time, record, offer: { to: offered, expiry, nonce } }
  }

  /** A provider of several nodes may answer from one that lags: then it is asked again. */
  async function newestBlock(): Promise<TimedBlock> {
    for (let asked = 1; ; asked += 1) {
      const block = parseTimedBlock(await rpc('eth_getBlockByNumber', ['latest', false]))
      if (block.number >= reached || asked >= mostHeads) return block
      await sleep(100)
    }
  }

  const domain = { contract, chainId }
  return {
    domain,
    /** Returns the asset at the newest block. Throws CHAIN_UNAVAILABLE. */
    position: (tokenId: bigint): Promise<TransferPosition> =>
      position(tokenId)
        .catch((error: unknown) => (isUnknownBlock(error) ? position(tokenId) : Promise.reject(error)))
        .catch(throwChainUnavailable),
    /** Returns whether an account signed, as the contract would decide at the block of this position. Throws CHAIN_UNAVAILABLE. */
    isSignedBy: (signed: Signed, { block }: Pick<TransferPosition, 'block'>): Promise<boolean> =>
      isSignedBy(pinnedTo(rpc, block), domain, signed).catch(throwChainUnavailable),
    /** Reads the version of the contract. Throws CHAIN_UNAVAILABLE. */
    version: (): Promise<number> => readRegistryVersion(rpc, contract),
    /** Notes a block of a receipt: a lower one is not the newest. */
    reached(block: bigint): void {
      if (block > reached) reached = block
    },
  }
}

/** Returns whether the block was replaced, or is missing at this provider. A newer one may be read instead. */
const isUnknownBlock = (error: unknown) => error instanceof RpcError && error.kind === 'non-canonical'

const later = (one: bigint, other: bigint) => (one > other ? one : other)

function parseTimedBlock(found: unknown): TimedBlock {
  const { number, hash, timestamp } = (found ?? {}) as { number?: unknown; hash?: unknown; timestamp?: unknown }
  if (!isWord(hash)) throw new Error('the newest block has no hash')
  return { number: requireQuantity(number), hash, timestamp: requireQuantity(timestamp) }
}

/** Calls `method` with `params` and the block as its last parameter. */
type PinnedRpc = (method: string, params: readonly unknown[]) => Promise<unknown>

/**
 * Pins calls to a block by its hash, and by its number where a provider does not support that form (EIP-1898). Behind a hash that is unknown
 * by now, the number may name a block of another branch.
 */
function pinnedTo(rpc: RpcClient, { number, hash }: TimedBlock): PinnedRpc {
  return async (method, params) => {
    try {
      return await rpc(method, [...params, { blockHash: hash }])
    } catch (error) {
      if (!rejectsHashObject(error)) throw error
      return rpc(method, [...params, quantity(number)])
    }
  }
}

const wallet = parseAbi(['function isValidSignature(bytes32 hash, bytes signature) view returns (bytes4)'])
/** ERC-1271's magic value: the function's own selector, in a whole word. */
const magicValue = `0x1626ba7e${'0'.repeat(56)}`
/** A wallet that needs more gas could not be used in a transaction either. */
const mostGas = '0x4c4b40'

/**
 * Checks a signature as the contract's SignatureChecker does. That is, of an account without code by its key (65 bytes, s in the lower
 * half, EIP-2), of one with code, an EIP-7702 delegate too, by ERC-1271 only. The contract is the caller of a wallet in the transaction.
 */
async function isSignedBy(at: PinnedRpc, domain: RegistryDomain, signed: Signed): Promise<boolean> {
  const { signer, signable, signature } = signed
  const digest = registryDigest(domain, signable)
  const code = await at('eth_getCode', [signer])
  if (!isHexData(code)) throw new Error('the answer to eth_getCode is not code')
  if (code === '0x') return recoverSigner(digest, signature) === signer.toLowerCase()
  const data = encodeFunctionData({ abi: wallet, functionName: 'isValidSignature', args: [digest, signature] })
  try {
    const answer = await at('eth_call', [{ from: domain.contract, to: signer, data, gas: mostGas }])
    return typeof answer === 'string' && answer.slice(0, 66) === magicValue
  } catch (error) {
    if (isFailedCall(error)) return false
    throw error
  }
}

/** The call itself failed, by a revert or as the EVM ends an invalid one. Another form of the block parameter changes nothing. */
function isFailedCall(error: unknown): boolean {
  const texts = /revert|gas|opcode|stack|jump|write protection|evm error/i
  return isAboutRequest(error) && (error.data !== undefined || texts.test(error.message))
}
