/**
 * For tests: a real registry on a real anvil, whose blocks the test makes, where one account has all roles. Blocks and the reads of
 * `readerOver` take turns.
 */
import { after } from 'node:test'
import { encodeDeployData, encodeFunctionData, keccak256, toHex } from 'viem'
import type { Hex } from '@touchstone/verdict'
import registry from '../../../../contracts/artifacts/AssetRegistry.json' with { type: 'json' }
import { createLog } from '../../../src/lib/log.ts'
import { sourceOver, startTestAnvil } from '../rpc-anvil.ts'
import { assetRegistryAbi as abi } from '../../../src/domain/registry-abi.ts'
import { type AssetReader, createAssetReader, type AssetReaderOptions } from '../../../src/chain/assets/reader.ts'
import type { ChainSource, RpcChainSource } from '../../../src/chain/rpc/source.ts'
import { createTurns } from './unsteady.ts'

export type TestRegistry = Readonly<{
  url: string
  contract: Hex
  codeHash: Hex
  owner: Hex
  rpc: (method: string, ...params: unknown[]) => Promise<unknown>
  /** Sends a call without waiting for a block; the block must not revert it. */
  send: (name: WriteName, args: readonly unknown[]) => Promise<Hex>
  /** Replaces the last `depth` blocks by others with these calls, each in the block with that index. */
  reorg: (
    depth: number,
    writes: readonly (readonly [name: WriteName, args: readonly unknown[], block: number])[],
  ) => Promise<void>
  deploy: (bytecode: string) => Promise<Hex>
  mine: (blocks?: number) => Promise<void>
  /** A call and its block. */
  write: (name: WriteName, args: readonly unknown[]) => Promise<void>
  /** Mints `count` tokens with ids from 1, each with a metadata hash. */
  mintMany: (count: number) => Promise<void>
  blockHash: (number?: bigint) => Promise<Hex>
  blockNumber: () => Promise<bigint>
  /** Makes a source whose reads of state do not meet a block in the making. */
  apart: ReturnType<typeof createTurns>['apart']
  close: () => Promise<void>
}>

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

export async function startRegistry(): Promise<TestRegistry> {
  const anvil = await startTestAnvil()
  const { rpc } = anvil
  const turns = createTurns()
  const [owner] = (await rpc('eth_accounts')) as Hex[]
  if (owner === undefined) throw new Error('anvil has no accounts')
  await rpc('evm_setAutomine', false)

  const roles = ['admin', 'issuer', 'binder', 'qa', 'attester', 'guardian', 'recycler'] as const
  const holders = Object.fromEntries(roles.map((role) => [role, owner])) as Record<(typeof roles)[number], Hex>
  const bytecode = registry.bytecode as Hex
  const contract = await deploy(encodeDeployData({ abi, bytecode, args: [holders, '', ''] }))
  const codeHash = keccak256((await rpc('eth_getCode', contract, 'latest')) as Hex)

  function transaction(name: WriteName, args: readonly unknown[]) {
    const data = encodeFunctionData({ abi, functionName: name, args } as never)
    return { from: owner, to: contract, data, gas: name === 'mintBatch' ? gas.most : gas.write }
  }

  async function send(name: WriteName, args: readonly unknown[]): Promise<Hex> {
    return (await rpc('eth_sendTransaction', transaction(name, args))) as Hex
  }

  async function deploy(data: string): Promise<Hex> {
    const hash = await rpc('eth_sendTransaction', { from: owner, data, gas: gas.most })
    await mine()
    const receipt = (await rpc('eth_getTransactionReceipt', hash)) as { contractAddress: Hex; status: Hex }
    if (receipt.status !== '0x1') throw new Error('not deployed')
    return receipt.contractAddress
  }

  async function mine(blocks = 1): Promise<void> {
    await turns.alone(() => rpc('anvil_mine', toHex(blocks)))
  }

  async function reorg(...[depth, writes]: Parameters<TestRegistry['reorg']>): Promise<void> {
    const from = (await blockNumber()) - BigInt(depth)
    const nonce = Number(await rpc('eth_getTransactionCount', owner, toHex(from)))
    const inOrder = writes.toSorted((a, b) => a[2] - b[2])
    const pairs = inOrder.map(([name, args, block], index) => [
      { ...transaction(name, args), nonce: toHex(nonce + index) },
      block,
    ])
    await turns.alone(() => rpc('anvil_reorg', depth, pairs))
  }

  async function blockNumber(): Promise<bigint> {
    return BigInt((await rpc('eth_blockNumber')) as Hex)
  }

  async function write(name: WriteName, args: readonly unknown[]): Promise<void> {
    const hash = await send(name, args)
    await mine()
    const receipt = (await rpc('eth_getTransactionReceipt', hash)) as { status: Hex } | null
    if (receipt?.status !== '0x1') throw new Error(`${name} reverted`)
  }

  return {
    url: anvil.url,
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
    apart: turns.apart,
    async mintMany(count) {
      for (let from = 0; from < count; from += 250) {
        const size = Math.min(250, count - from)
        await write('mintBatch', [owner, Array.from({ length: size }, (_, index) => metadataOf(from + index + 1))])
      }
    },
    async blockHash(number) {
      const tag = number === undefined ? 'latest' : toHex(number)
      return ((await rpc('eth_getBlockByNumber', tag, false)) as { hash: Hex }).hash
    },
    close: anvil.close,
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
