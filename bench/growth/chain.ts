/**
 * The chain of one size of `bench:growth`: anvil with the registry. The first tokens are minted in large batches; the sampled ones, which
 * lie all over the catalogue, are minted, bound and activated one by one, so that they can be tapped.
 */
import type { Hex } from '@touchstone/verdict'
import { encodeFunctionData, parseAbi } from 'viem'
import { assetRegistryAbi as abi } from '../../service/src/domain/registry-abi.ts'
import { anvilBinary } from '../../service/src/chain/devchain/anvil.ts'
import { deployLocal } from '../../service/src/chain/devchain/deploy.ts'
import { createRpcClient, type RpcClient } from '../../service/src/chain/rpc/client.ts'
import { run } from '../lib/program.ts'

export type Sample = { readonly tokenId: number; readonly metadataHash: Hex; readonly tagHash: Hex }
export type GrowthChain = {
  readonly url: string
  readonly contract: Hex
  readonly head: { readonly number: number; readonly hash: Hex }
  readonly stop: () => Promise<void>
}

/** The first account of anvil, which holds the roles, and owns every token here. */
export const operator = '0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266'
const multicall = '0xca11bde05977b3631167028862be2a173976ca11'
const multicallAbi = parseAbi([
  'struct Call { address target; bool allowFailure; bytes callData; }',
  'struct Result { bool success; bytes returnData; }',
  'function aggregate3(Call[] calls) payable returns (Result[])',
])
const mintedAtOnce = 5_000
const sampledAtOnce = 1_000
/** The events of the catalogue are spread over all blocks. */
const emptyBlocks = 200

/** Tokens 1 to `minted`, and `samples`, which are ACTIVATED at the end. */
export async function startGrowthChain({
  minted,
  metadataHashOf,
  samples,
}: {
  readonly minted: number
  readonly metadataHashOf: (tokenId: number) => Hex
  readonly samples: readonly Sample[]
}): Promise<GrowthChain> {
  const flags = '--chain-id 84532 --host 127.0.0.1 --port 0 --prune-history --slots-in-an-epoch 1 --accounts 2'
  const anvil = run({ command: anvilBinary(), args: `${flags} --gas-limit 500000000`.split(' '), core: 1 })
  try {
    const [, port] = await anvil.line(/^Listening on 127\.0\.0\.1:(\d+)$/m, 30_000)
    const url = `http://127.0.0.1:${port}`
    const rpc = createRpcClient({ url, timeoutMs: 120_000, maxBytes: 2 ** 26 })
    await rpc('anvil_setLoggingEnabled', [false])
    const { contract } = await deployLocal({ rpcUrl: url })
    await rpc('anvil_setAutomine', [false])
    // First, because anvil hashes all of the state for every block.
    await rpc('anvil_mine', [`0x${emptyBlocks.toString(16)}`])
    for (const functionName of ['ISSUER_ROLE', 'BINDER_ROLE', 'QA_ROLE'] as const) {
      const role = (await rpc('eth_call', [{ to: contract, data: encodeFunctionData({ abi, functionName }) }])) as Hex
      await send(rpc, contract, encodeFunctionData({ abi, functionName: 'grantRole', args: [role, multicall] }))
    }
    for (let from = 1; from <= minted; from += mintedAtOnce) {
      const ids = Array.from({ length: Math.min(mintedAtOnce, minted + 1 - from) }, (_, index) => from + index)
      const args = [operator, ids.map(metadataHashOf)] as const
      await send(rpc, contract, encodeFunctionData({ abi, functionName: 'mintBatch', args }))
    }
    for (let at = 0; at < samples.length; at += sampledAtOnce) {
      const calls = samples.slice(at, at + sampledAtOnce).flatMap((sample) => stepsOf(sample, minted))
      const targeted = calls.map((callData) => ({ target: contract, allowFailure: false, callData }))
      const data = encodeFunctionData({ abi: multicallAbi, functionName: 'aggregate3', args: [targeted] })
      await send(rpc, multicall, data)
    }
    await rpc('evm_mine', []) // at the head of both sizes is an empty block
    const { number, hash } = (await rpc('eth_getBlockByNumber', ['latest', false])) as { number: Hex; hash: Hex }
    return { url, contract, head: { number: Number(number), hash }, stop: anvil.stop }
  } catch (error) {
    await anvil.stop()
    throw error
  }
}

function stepsOf({ tokenId, metadataHash, tagHash }: Sample, minted: number): Hex[] {
  const id = BigInt(tokenId)
  const mint = encodeFunctionData({ abi, functionName: 'mintWithId', args: [operator, id, metadataHash] })
  return [
    ...(tokenId > minted ? [mint] : []),
    encodeFunctionData({ abi, functionName: 'bindTag', args: [id, tagHash] }),
    encodeFunctionData({ abi, functionName: 'activate', args: [id] }),
  ]
}

/** In a block of its own; a reverted transaction is an Error. */
async function send(rpc: RpcClient, to: Hex, data: Hex): Promise<void> {
  const hash = await rpc('eth_sendTransaction', [{ from: operator, to, data, gas: '0x1d000000' }])
  await rpc('evm_mine', [])
  const receipt = (await rpc('eth_getTransactionReceipt', [hash])) as { status: Hex } | null
  if (receipt?.status !== '0x1') throw new Error('A transaction of the benchmark’s chain failed.')
}
