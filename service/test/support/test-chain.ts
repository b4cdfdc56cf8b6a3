/** For tests: anvil as the demonstration starts it, with a patient client. Its state is not saved. */
import type { Hex } from '@touchstone/verdict'
import { toHex } from 'viem'
import { startAnvil } from '../../src/chain/devchain/anvil.ts'
import { deployLocal } from '../../src/chain/devchain/deploy.ts'
import { startPoolRepair } from '../../src/chain/devchain/pool.ts'
import { createRpcClient } from '../../src/chain/rpc/client.ts'
import { createLog } from '../../src/lib/log.ts'
import { testFolder } from './folder.ts'

export type TestChain = Awaited<ReturnType<typeof startTestChain>>
type Transaction = Readonly<{ from: Hex; to?: Hex; data: Hex; gas?: number }>
type Receipt = {
  status: Hex
  transactionHash: Hex
  blockNumber: Hex
  contractAddress: Hex
  logs: { topics: Hex[] }[]
}

export async function startTestChain() {
  const { url, stop } = await startAnvil({ folder: testFolder(), port: 0 })
  const rpc = createRpcClient({ url, timeoutMs: 120_000 })
  await rpc('anvil_setLoggingEnabled', [false])
  const stopPoolRepair = startPoolRepair(
    rpc,
    createLog(() => {}, 'silent'),
  )
  return {
    url,
    rpc,
    /** Sends a transaction of a published account and returns its receipt. The plain form answers before the block is made. */
    send: async ({ gas = 3_000_000, ...transaction }: Transaction) =>
      (await rpc('eth_sendTransactionSync', [{ ...transaction, gas: toHex(gas) }])) as Receipt,
    /** Lets the chain mine by itself, or only on `mine`. */
    automine: (on: boolean) => rpc('evm_setAutomine', [on]),
    mine: (blocks = 1) => rpc('anvil_mine', [toHex(blocks)]),
    close: async () => {
      await stopPoolRepair()
      await stop()
    },
  }
}

/** Starts a chain with the registry. `prepare` runs on the empty chain. */
export async function startRegistryChain(prepare: (chain: TestChain) => Promise<unknown> = async () => {}) {
  const chain = await startTestChain()
  await prepare(chain)
  return { ...chain, ...(await deployLocal({ rpcUrl: chain.url })) }
}
