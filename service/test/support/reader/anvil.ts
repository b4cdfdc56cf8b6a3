/**
 * For tests: a real registry on a real anvil, whose blocks the test makes, where one account has all roles. Blocks and the reads of
 * `readerOver` take turns.
 */
import { after } from 'node:test'
import { encodeDeployData, encodeFunctionData, keccak256, toHex } from 'viem'
import type { Hex } from '@touchstone/verdict'
import registry from '../../../../contracts/artifacts/AssetRegistry.json' with { type: 'json' }
import { createLog } from '../../../src/lib/log.ts'
import { publishedAddresses } from '../../../src/domain/published-accounts.ts'
import { sourceOver } from '../rpc-anvil.ts'
import { startTestChain } from '../test-chain.ts'
import { assetRegistryAbi as abi } from '../../../src/domain/registry-abi.ts'
import { type AssetReader, createAssetReader, type AssetReaderOptions } from '../../../src/chain/assets/reader.ts'
import type { ChainSource, RpcChainSource } from '../../../src/chain/rpc/source.ts'
import { createTurns } from './unsteady.ts'

export type TestRegistry = Awaited<ReturnType<typeof startRegistry>>

type WriteName =
  | 'mint'
  | 'mintBatch'
  | 'bindTag'
  | 'activate'
  | 'flag'
  | 'resolve'
  | 'recycle'
  | 'setMetadataHash'
  | 'grantRole'

/** A block takes 30 million. */
const gas = { most: '0x1c9c380', write: '0x7a120' } as const

export async function startRegistry() {
  const chain = await startTestChain()
  const { url, rpc, close } = chain
  const turns = createTurns()
  const [owner] = publishedAddresses as [Hex]
  await chain.automine(false)

  const roles = ['admin', 'issuer', 'binder', 'qa', 'attester', 'guardian', 'recycler'] as const
  const holders = Object.fromEntries(roles.map((role) => [role, owner])) as Record<(typeof roles)[number], Hex>
  const bytecode = registry.bytecode as Hex
  const contract = await deploy(encodeDeployData({ abi, bytecode, args: [holders, '', ''] }))
  const codeHash = keccak256((await rpc('eth_getCode', [contract, 'latest'])) as Hex)

  function transaction(name: WriteName, args: readonly unknown[]) {
    const data = encodeFunctionData({ abi, functionName: name, args } as never)
    return { from: owner, to: contract, data, gas: name === 'mintBatch' ? gas.most : gas.write }
  }

  /** Sends a call without waiting for a block; the block must not revert it. */
  async function send(name: WriteName, args: readonly unknown[]): Promise<Hex> {
    return (await rpc('eth_sendTransaction', [transaction(name, args)])) as Hex
  }

  async function deploy(data: string): Promise<Hex> {
    const hash = await rpc('eth_sendTransaction', [{ from: owner, data, gas: gas.most }])
    await mine()
    const receipt = (await rpc('eth_getTransactionReceipt', [hash])) as { contractAddress: Hex; status: Hex }
    if (receipt.status !== '0x1') throw new Error('not deployed')
    return receipt.contractAddress
  }

  async function mine(blocks = 1): Promise<void> {
    await turns.alone(() => chain.mine(blocks))
  }

  /** Replaces the last `depth` blocks by others with these calls, each in the block with that index. */
  async function reorg(
    depth: number,
    writes: readonly (readonly [name: WriteName, args: readonly unknown[], block: number])[],
  ): Promise<void> {
    const from = (await blockNumber()) - BigInt(depth)
    const nonce = Number(await rpc('eth_getTransactionCount', [owner, toHex(from)]))
    const inOrder = writes.toSorted((a, b) => a[2] - b[2])
    const pairs = inOrder.map(([name, args, block], index) => [
      { ...transaction(name, args), nonce: toHex(nonce + index) },
      block,
    ])
    await turns.alone(() => rpc('anvil_reorg', [depth, pairs]))
  }

  async function blockNumber(): Promise<bigint> {
    return BigInt((await rpc('eth_blockNumber')) as Hex)
  }

  /** A call and its block. */
  async function write(name: WriteName, args: readonly unknown[]): Promise<void> {
    const hash = await send(name, args)
    await mine()
    const receipt = (await rpc('eth_getTransactionReceipt', [hash])) as { status: Hex } | null
    if (receipt?.status !== '0x1') throw new Error(`${name} reverted`)
  }

  return {
    url,
    contract,
    codeHash,
    owner,
    rpc,
    send,
    reorg,
    deploy,
    mine,
    write,
    blockNumber,
    /** Makes a source whose reads of state do not meet a block in the making. */
    apart: turns.apart,
    /** Mints `count` tokens with ids from 1, each with a metadata hash. */
    async mintMany(count: number): Promise<void> {
      for (let from = 0; from < count; from += 250) {
        const size = Math.min(250, count - from)
        await write('mintBatch', [owner, Array.from({ length: size }, (_, index) => metadataOf(from + index + 1))])
      }
    },
    async blockHash(number?: bigint): Promise<Hex> {
      const tag = number === undefined ? 'latest' : toHex(number)
      return ((await rpc('eth_getBlockByNumber', [tag, false])) as { hash: Hex }).hash
    },
    close,
  }
}

/** The metadata hash that `mintMany` gives a token. */
export function metadataOf(tokenId: number): Hex {
  return keccak256(toHex(tokenId))
}

export const silentLog = createLog(() => {}, 'silent')

/**
 * A source and a reader over `urls`, by default over the registry's own anvil. Their deadlines suit a busy machine. Both end with the test.
 * `disturb` comes between the two.
 */
export function readerOver(
  chain: TestRegistry,
  options: Partial<AssetReaderOptions> &
    Readonly<{ urls?: readonly string[]; disturb?: (source: RpcChainSource) => ChainSource }> = {},
): Omit<AssetReader, 'close'> & Readonly<{ source: RpcChainSource }> {
  const { urls = [chain.url], disturb = (undisturbed) => undisturbed, ...readerOptions } = options
  const contract = options.contract ?? chain.contract
  const { source: direct } = sourceOver(urls, {
    contract,
    trust: options.trust ?? 'rpc',
    log: options.log ?? silentLog,
  })
  const source = chain.apart(direct)
  const reader = createAssetReader({
    source: disturb(source),
    contract,
    interface: 'registry',
    trust: 'rpc',
    codeHash: chain.codeHash,
    cache: 'events',
    cacheEntries: 10_000,
    readTimeoutMs: 60_000,
    log: silentLog,
    ...readerOptions,
  })
  after(() => {
    reader.close()
    return source.close()
  })
  return { ...reader, source }
}
