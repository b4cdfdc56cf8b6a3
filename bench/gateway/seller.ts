/**
 * A gateway in a process of its own for `bench:gateway`; `argv[2]` is its settings as JSON. It prints its port, and at each SIGUSR2 its calls
 * to the chain and statements to the database since the start, as JSON.
 */
import { fileURLToPath } from 'node:url'
import type { Hex } from '@touchstone/verdict'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { hexToBytes } from 'viem'
import { readConfig } from '../../service/src/app/config/config.ts'
import { createVerdicts } from '../../service/src/assets/verdicts.ts'
import { createAssetReader } from '../../service/src/chain/assets/reader.ts'
import { createRpcClient, type RpcClient } from '../../service/src/chain/rpc/client.ts'
import { createChainSource } from '../../service/src/chain/rpc/source.ts'
import { openDatabase, type Database, type Sql } from '../../service/src/db/database.ts'
import { chainId } from '../../service/src/domain/chain.ts'
import { localEthereumKey } from '../../service/src/keys/ethereum.ts'
import { attestationKeyOf } from '../../service/src/payments/attestation/attest.ts'
import { openTables, openTestGateway } from '../../service/test/support/payments/components.ts'
import { silent } from '../lib/world.ts'

export type SellerSettings = {
  readonly rpcUrl: string
  readonly contract: Hex
  readonly databaseUrl: string
  readonly facilitatorKey: Hex
}
export type Counts = { chain: number; statements: number }

if (process.argv[1] === fileURLToPath(import.meta.url)) await sell(JSON.parse(process.argv[2] ?? '') as SellerSettings)

async function sell({ rpcUrl, contract, databaseUrl, facilitatorKey }: SellerSettings): Promise<void> {
  const counts: Counts = { chain: 0, statements: 0 }
  const database = counted(await openDatabase({ url: databaseUrl }), counts)
  const plain = createRpcClient({ url: rpcUrl, timeoutMs: 10_000 })
  const rpc: RpcClient = (...call) => {
    counts.chain += 1
    return plain(...call)
  }
  const local = localEthereumKey(hexToBytes(generatePrivateKey()))
  if (local === null) throw new Error('No private key of secp256k1.')
  const { ledger, slots } = await openTables(database)
  const verdicts = openVerdicts(rpcUrl, contract)
  const facilitator = privateKeyToAccount(facilitatorKey)
  const parts = { rpcUrl, contract, verdicts, ledger, slots, facilitator, signer: attestationKeyOf(local), log: silent }
  const gateway = await openTestGateway(parts, { rpc })
  process.on('SIGUSR2', () => console.log(`counts ${JSON.stringify(counts)}`))
  process.once('SIGTERM', () => void gateway[Symbol.asyncDispose]().then(() => process.exit(0)))
  console.log(`port ${gateway.port}`)
}

/** A transaction has its begin and commit besides. */
function counted(database: Database, counts: Counts): Database {
  const count = <S extends Sql>(sql: S): S => ({
    ...sql,
    query: (text, values) => {
      counts.statements += 1
      return sql.query(text, values)
    },
  })
  return {
    ...count(database),
    transaction: (run) => {
      counts.statements += 2
      return database.transaction((sql) => run(count(sql)))
    },
  }
}

/** As the service makes them for a registry of its own, with default settings. */
function openVerdicts(rpcUrl: string, contract: Hex) {
  const { chain } = readConfig({ CHAIN_RPC_URLS: rpcUrl, CHAIN_CONTRACT: contract, CHAIN_MAX_HEAD_AGE_SECONDS: '0' })
  const source = createChainSource({ ...chain, contract, chainId, log: silent })
  const assets = createAssetReader({ ...chain, source, contract, log: silent })
  const metadata = { get: async () => undefined }
  return createVerdicts({ assets, metadata, contract, maxEntries: chain.cacheEntries, log: silent })
}
