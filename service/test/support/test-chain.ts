/** A local chain in a folder of its own, with a patient client; closing removes the folder. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startLocalChain } from '../../src/chain/devchain/devchain.ts'
import { createRpcClient } from '../../src/chain/rpc/client.ts'
import { createLog } from '../../src/lib/log.ts'

export type TestChain = Awaited<ReturnType<typeof startTestChain>>

export async function startTestChain() {
  const dataDir = await mkdtemp(join(tmpdir(), 'touchstone-chain-'))
  const { url, close } = await startLocalChain({ dataDir, log: createLog(() => {}) })
  return {
    url,
    rpc: createRpcClient({ url, timeoutMs: 60_000 }),
    close: async () => {
      await close()
      await rm(dataDir, { recursive: true })
    },
  }
}
