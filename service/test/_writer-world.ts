/** For tests: a local chain with the registry, and writers over a given store. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Hex } from '@touchstone/verdict'
import { createLog } from '../src/log.ts'
import { assetRegistryAbi } from '../src/chain/abi.ts'
import { publishedAccounts } from '../src/chain/local-chain-accounts.ts'
import { startLocalChain } from '../src/chain/local-chain.ts'
import { deployLocal } from '../src/chain/local-deployment.ts'
import { decodeFunctionResult, encodeFunctionData } from 'viem'
import { createWriter } from '../src/chain/writer.ts'
import type { OperatorKeys, WriterOptions } from '../src/chain/writer.ts'
import type { OperationStore } from '../src/chain/writer-store.ts'
import type { Database } from '../src/store/database.ts'
import { migrate } from '../src/store/migrate.ts'
import { operationStore } from '../src/store/operations.ts'
import { createWriterRpc } from '../src/chain/writer-rpc.ts'

export const [operator, attester, alice, bob] = publishedAccounts(4) as [Account, Account, Account, Account]
type Account = ReturnType<typeof publishedAccounts>[number]

export const keys: OperatorKeys = {
  issuer: operator,
  binder: operator,
  qa: operator,
  guardian: operator,
  recycler: operator,
  relayer: operator,
  attester,
}

export type WriterWorld = Awaited<ReturnType<typeof startWriterWorld>>

export async function startWriterWorld() {
  const dataDir = await mkdtemp(join(tmpdir(), 'touchstone-writer-'))
  const log = createLog(() => {})
  const chain = await startLocalChain({ dataDir, log })
  const { contract } = await deployLocal({ rpcUrl: chain.url })
  const rpc = createWriterRpc(chain)
  const options = { rpcUrl: chain.url, contract, chainId: 84532, keys, log, local: true }
  return {
    rpc,
    contract,
    url: chain.url,
    writerOver: (operations: OperationStore, more: Partial<WriterOptions> = {}) =>
      createWriter({ ...options, operations, ...more }),
    nonceOf: async (address: Hex) => Number(await rpc('eth_getTransactionCount', [address, 'latest'])),
    /** Lets the chain mine by itself, or only when it is told to. */
    automine: (on: boolean) => rpc('evm_setAutomine', [on]),
    mine: (blocks = 1) => rpc('anvil_mine', [`0x${blocks.toString(16)}`]),
    /** State and flags of a record. */
    async recordOf(tokenId: bigint) {
      const data = encodeFunctionData({ abi: assetRegistryAbi, functionName: 'getAsset', args: [tokenId] })
      const result = (await rpc('eth_call', [{ to: contract, data }, 'latest'])) as Hex
      const [owner, , state, flags] = decodeFunctionResult({
        abi: assetRegistryAbi,
        functionName: 'getAsset',
        data: result,
      })
      return { owner: owner.toLowerCase(), state, flags }
    },
    async supply() {
      const data = encodeFunctionData({ abi: assetRegistryAbi, functionName: 'totalSupply' })
      return Number(await rpc('eth_call', [{ to: contract, data }, 'latest']))
    },
    async close() {
      await chain.close()
      await rm(dataDir, { recursive: true })
    },
  }
}

/** The operations of a database, with its tables made. */
export async function storeIn(database: Database): Promise<OperationStore> {
  await migrate(database)
  return operationStore(database)
}

export const hash = (n: number): Hex => `0x${n.toString(16).padStart(64, '0')}`
