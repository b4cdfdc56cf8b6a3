/** Reads, for tests, what the local chain answers at each of its blocks. They are pinned by hash, with proofs whose roots are checked. */
import assert from 'node:assert/strict'
import type { Hex } from '@touchstone/verdict'
import { encodeFunctionData, keccak256 } from 'viem'
import { assetRegistryAbi } from '../../src/domain/registry-abi.ts'
import { publishedAddresses } from '../../src/domain/published-accounts.ts'
import { localRegistry } from '../../src/chain/devchain/deploy.ts'
import { transact } from '../../src/chain/devchain/transact.ts'
import { createRpcClient } from '../../src/chain/rpc/client.ts'

const firstSlot: Hex = `0x${'0'.repeat(64)}`

export type PinnedRead = { hash: Hex; records: unknown; proof: unknown }

/** One answer for each block from 1 to the head. */
export async function pinnedReads(url: string): Promise<PinnedRead[]> {
  const rpc = createRpcClient({ url })
  const data = encodeFunctionData({ abi: assetRegistryAbi, functionName: 'getAssets', args: [[1n, 2n, 3n]] })
  const head = Number(await rpc('eth_blockNumber'))
  const reads: PinnedRead[] = []
  for (let number = 1; number <= head; number += 1) {
    const block = (await rpc('eth_getBlockByNumber', [`0x${number.toString(16)}`, false])) as {
      hash: Hex
      stateRoot: Hex
    }
    const pin = { blockHash: block.hash, requireCanonical: true }
    const proof = (await rpc('eth_getProof', [localRegistry, [firstSlot], pin])) as { accountProof: [Hex] }
    assert.equal(keccak256(proof.accountProof[0]), block.stateRoot)
    reads.push({ hash: block.hash, records: await rpc('eth_call', [{ to: localRegistry, data }, pin]), proof })
  }
  return reads
}

/** Mints one token in a block of its own. */
export async function mintLocally(url: string): Promise<void> {
  const rpc = createRpcClient({ url })
  const [from = '0x'] = publishedAddresses
  const data = encodeFunctionData({ abi: assetRegistryAbi, functionName: 'mint', args: [from, `0x${'ab'.repeat(32)}`] })
  await transact(rpc, 'a mint', { from, to: localRegistry, data })
}
