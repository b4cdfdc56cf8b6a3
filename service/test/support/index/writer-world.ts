/** For tests: a local chain with the registry, and writers over a given store. */
import assert from 'node:assert/strict'
import type { Hex } from '@touchstone/verdict'
import { createLog } from '../../../src/lib/log.ts'
import { assetRegistryAbi } from '../../../src/domain/registry-abi.ts'
import { publishedAccounts } from '../../../src/domain/published-accounts.ts'
import { openEmptyPglite } from '../database/pglite.ts'
import { startRegistryChain } from '../test-chain.ts'
import {
  createWriter,
  type OperatorKeys,
  type Writer,
  type WriteResult,
  type WriterOptions,
} from '../../../src/chain/transactions/writer.ts'
import { operationStore, type OperationStore } from '../../../src/chain/transactions/operations.ts'
import type { Database } from '../../../src/db/database.ts'
import { migrate } from '../../../src/db/migrate.ts'
import { readContract } from '../../../src/chain/rpc/contract.ts'

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
  const chain = await startRegistryChain()
  const { rpc, contract } = chain
  // Long enough for a busy machine.
  const timeouts = { receiptWaitMs: 60_000 }
  const registry = { to: contract, abi: assetRegistryAbi } as const
  const options = { rpc, contract, chainId: 84532, keys, log: createLog(() => {}), local: true, ...timeouts }
  const writers: Writer[] = []
  return {
    ...chain,
    /** Ends the writers, then the chain. */
    async close() {
      await Promise.all(writers.map((writer) => writer.close()))
      await chain.close()
    },
    writerOver(operations: OperationStore, more: Partial<WriterOptions> = {}) {
      const writer = createWriter({ ...options, operations, ...more })
      writers.push(writer)
      return writer
    },
    nonceOf: async (address: Hex) => Number(await rpc('eth_getTransactionCount', [address, 'latest'])),
    /** Reads owner, state and flags of a record. */
    async recordOf(tokenId: bigint) {
      const [owner, , state, flags] = await readContract(rpc, {
        ...registry,
        functionName: 'getAsset',
        args: [tokenId],
      })
      return { owner: owner.toLowerCase(), state, flags }
    },
    supply: async () => Number(await readContract(rpc, { ...registry, functionName: 'totalSupply', args: [] })),
  }
}

/** A chain, a database and a writer over both; `close` closes all of them. */
export async function startWriterOver(
  open: () => Promise<Database> = openEmptyPglite,
  more: Partial<WriterOptions> = {},
) {
  const [world, database] = await Promise.all([startWriterWorld(), open()])
  const operations = await storeIn(database)
  const writer = world.writerOver(operations, more)
  const close = async () => {
    await world.close()
    await database.close()
  }
  return { ...world, database, operations, writer, close }
}

/** The operations of a database, with its tables made. */
export async function storeIn(database: Database): Promise<OperationStore> {
  await migrate(database)
  return operationStore(database)
}

/** Returns the status of a successful write, or the code of a failure. */
export const codeOf = (result: WriteResult | Awaited<ReturnType<Writer['simulate']>>): string =>
  !result.ok ? result.code : 'status' in result ? result.status : 'SIMULATED'

/** Asserts that a write was mined, and returns the tokens that it minted. */
export function minted(result: WriteResult): readonly bigint[] {
  assert.ok(result.ok && result.status === 'CONFIRMED', result.ok ? result.status : result.message)
  return result.tokenIds
}

export const hash = (n: number): Hex => `0x${n.toString(16).padStart(64, '0')}`
