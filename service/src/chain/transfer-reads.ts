/**
 * What steps by signature are judged by before they are sent (spec §3, §4.9): the record of an asset, its offer and its
 * nonce, and whether an account signed, all at one block of the provider that gets the transaction. The contract judges again.
 */
import { recordOfGetAsset, type AssetRecord, type Hex } from '@touchstone/verdict'
import { setTimeout as delay } from 'node:timers/promises'
import { decodeFunctionResult, encodeFunctionData } from 'viem'
import { assetRegistryAbi as abi } from './abi.ts'
import { pinnedTo } from './transfer-pin.ts'
import type { PinnedRpc, TransferBlock } from './transfer-pin.ts'
import { isSignedBy } from './transfer-signatures.ts'
import type { SignedDigest } from './transfer-signatures.ts'
import type { RegistryDomain } from './write-calls-typed-data.ts'
import { createWriterRpc } from './writer-rpc.ts'
import { chainUnavailable } from './writer-transaction.ts'

/** `to` is null while nothing is offered; `expiry` is in unix seconds; `nonce` is the one that the next signature uses. */
type Offer = Readonly<{ to: Hex | null; expiry: bigint; nonce: number }>

/** An asset at a block; addresses in lower case. An asset that does not exist has state 0. */
export type TransferPosition = Readonly<{ tokenId: bigint; block: TransferBlock; record: AssetRecord; offer: Offer }>

export type TransferReads = ReturnType<typeof createTransferReads>

/** How often the newest block is asked for again while it lies below one that is known to exist, 100 ms apart. */
const mostHeads = 10

/** `contract` and `chainId` are also the domain of what is signed. `rpcUrl` is the writer's provider. */
export function createTransferReads({
  rpcUrl,
  contract,
  chainId,
  rpcTimeoutMs = 3_000,
}: RegistryDomain & { readonly rpcUrl: string; readonly rpcTimeoutMs?: number }) {
  const rpc = createWriterRpc({ url: rpcUrl, timeoutMs: rpcTimeoutMs })
  let reached = 0n

  /** The newest block. A provider of several nodes may answer from one that is behind: then it is asked again. */
  async function newest(): Promise<TransferBlock> {
    for (let asked = 1; ; asked += 1) {
      const block = blockOf(await rpc('eth_getBlockByNumber', ['latest', false]))
      if (block.number >= reached || asked >= mostHeads) return block
      await delay(100)
    }
  }

  async function call(at: PinnedRpc, data: Hex): Promise<Hex> {
    return (await at('eth_call', [{ to: contract, data }])) as Hex
  }

  async function read(tokenId: bigint): Promise<TransferPosition> {
    const block = await newest()
    const at = pinnedTo(rpc, block)
    const [asset, pending] = await Promise.all([
      call(at, encodeFunctionData({ abi, functionName: 'getAsset', args: [tokenId] })),
      call(at, encodeFunctionData({ abi, functionName: 'pendingTransfer', args: [tokenId] })),
    ])
    const record = recordOfGetAsset(asset)
    if (record === null) throw new Error('the answer to getAsset is not a record')
    const [to, expiry, nonce] = decodeFunctionResult({ abi, functionName: 'pendingTransfer', data: pending })
    const offered = BigInt(to) === 0n ? null : (to.toLowerCase() as Hex)
    return { tokenId, block, record, offer: { to: offered, expiry, nonce } }
  }

  return {
    domain: { contract, chainId },
    /** The asset at the newest block. Throws CHAIN_UNAVAILABLE. */
    position: (tokenId: bigint): Promise<TransferPosition> => read(tokenId).catch(refuse),
    /** Whether an account signed, as the contract would judge at this block. Throws CHAIN_UNAVAILABLE. */
    isSignedBy: (signed: SignedDigest, block: TransferBlock): Promise<boolean> =>
      isSignedBy(pinnedTo(rpc, block), contract, signed).catch(refuse),
    /** A block that the chain is known to have, from a receipt: what lies below it is not the newest. */
    reached(block: bigint): void {
      if (block > reached) reached = block
    },
  }
}

function blockOf(found: unknown): TransferBlock {
  const { number, hash, timestamp } = (found ?? {}) as { number?: unknown; hash?: unknown; timestamp?: unknown }
  if (typeof hash !== 'string' || !/^0x[0-9a-f]{64}$/.test(hash)) throw new Error('the newest block has no hash')
  return { number: numberOf(number), hash: hash as Hex, timestamp: numberOf(timestamp) }
}

function numberOf(value: unknown): bigint {
  if (typeof value !== 'string' || !/^0x[0-9a-f]{1,16}$/.test(value)) throw new Error('the newest block is not a block')
  return BigInt(value)
}

function refuse(error: unknown): never {
  throw chainUnavailable(error)
}
