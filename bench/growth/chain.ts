/**
 * The chain of one size of `bench:growth`: anvil with the registry. The first tokens are minted in large batches; the sampled ones, which
 * lie all over the catalogue, are minted, bound and activated one by one, so that they can be tapped.
 */
import type { Hex } from '@touchstone/verdict'
import { encodeFunctionData } from 'viem'
import type { RpcClient } from '../../service/src/chain/rpc/client.ts'
import { multicallAddress } from '../../service/src/domain/chain.ts'
import { assetRegistryAbi as abi } from '../../service/src/domain/registry-abi.ts'
import { grantToMulticall, multicallOf, operator, send, startRegistryChain } from '../lib/registry-chain.ts'

export type Sample = { readonly tokenId: number; readonly metadataHash: Hex; readonly tagHash: Hex }
export type GrowthChain = {
  readonly url: string
  readonly contract: Hex
  readonly head: { readonly number: number; readonly hash: Hex }
  readonly stop: () => Promise<void>
}

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
  const options = { flags: '--gas-limit 500000000', maxBytes: 2 ** 26 }
  return startRegistryChain(options, async ({ rpc, contract }) => {
    // First, because anvil hashes all of the state for every block.
    await rpc('anvil_mine', [`0x${emptyBlocks.toString(16)}`])
    await grantToMulticall(rpc, contract, ['ISSUER_ROLE', 'BINDER_ROLE', 'QA_ROLE'])
    for (let from = 1; from <= minted; from += mintedAtOnce) {
      const ids = Array.from({ length: Math.min(mintedAtOnce, minted + 1 - from) }, (_, index) => from + index)
      const args = [operator, ids.map(metadataHashOf)] as const
      await mine(rpc, contract, encodeFunctionData({ abi, functionName: 'mintBatch', args }))
    }
    for (let at = 0; at < samples.length; at += sampledAtOnce) {
      const calls = samples.slice(at, at + sampledAtOnce).flatMap((sample) => stepsOf(sample, minted))
      await mine(rpc, multicallAddress, multicallOf(contract, calls))
    }
    await rpc('evm_mine', []) // at the head of both sizes is an empty block
    const { number, hash } = (await rpc('eth_getBlockByNumber', ['latest', false])) as { number: Hex; hash: Hex }
    return { head: { number: Number(number), hash } }
  })
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
async function mine(rpc: RpcClient, to: Hex, data: Hex): Promise<void> {
  const hash = await send(rpc, to, data, '0x1d000000')
  await rpc('evm_mine', [])
  const receipt = (await rpc('eth_getTransactionReceipt', [hash])) as { status: Hex } | null
  if (receipt?.status !== '0x1') throw new Error('A transaction of the benchmark’s chain failed.')
}
