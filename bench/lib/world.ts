/** A chain for benchmarks: anvil in a temporary folder, the registry, and `tokens` minted assets with ids 1, 2, 3 … */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Hex } from '@touchstone/verdict'
import { encodeFunctionData } from 'viem'
import { canonicalMetadata } from '../../service/src/assets/metadata.ts'
import { assetRegistryAbi } from '../../service/src/domain/registry-abi.ts'
import { startLocalChain } from '../../service/src/chain/devchain/devchain.ts'
import { createRpcClient } from '../../service/src/chain/rpc/client.ts'
import { deployLocal } from '../../service/src/chain/devchain/deploy.ts'
import { createLog } from '../../service/src/lib/log.ts'

export const silent = createLog(() => {}, 'silent')
const admin = '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266'
const batch = 200

/** Returns the metadata of a token as its canonical text, with the hash that the chain holds. */
export function metadataOf(tokenId: number): { readonly body: string; readonly hash: Hex } {
  const made = canonicalMetadata({ brand: 'Maison Orvelle', name: `Satchel No. ${tokenId}` })
  if (!made.ok) throw new Error(made.message)
  return made
}

export async function startWorld(
  tokens: number,
): Promise<{ url: string; contract: Hex; codeHash: Hex; close: () => Promise<void> }> {
  const dataDir = await mkdtemp(join(tmpdir(), 'touchstone-bench-'))
  const chain = await startLocalChain({ dataDir, port: 0, log: silent })
  const { contract, codeHash } = await deployLocal({ rpcUrl: chain.url })
  const rpc = createRpcClient({ url: chain.url, timeoutMs: 60_000 })
  for (let minted = 0; minted < tokens; minted += batch) {
    const metadata = Array.from(
      { length: Math.min(batch, tokens - minted) },
      (_, index) => metadataOf(minted + index + 1).hash,
    )
    const data = encodeFunctionData({ abi: assetRegistryAbi, functionName: 'mintBatch', args: [admin, metadata] })
    const transaction = { from: admin, to: contract, data, gas: '0xf00000' }
    const receipt = (await rpc('eth_sendTransactionSync', [transaction])) as { readonly status: Hex }
    if (receipt.status !== '0x1') throw new Error('The local chain did not mint the assets.')
  }
  return {
    url: chain.url,
    contract,
    codeHash,
    close: async () => {
      await chain.close()
      await rm(dataDir, { recursive: true, force: true })
    },
  }
}
