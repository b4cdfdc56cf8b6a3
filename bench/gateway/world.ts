/**
 * The world of `bench:gateway`. It has anvil with the registry and test money, funded payers, and a database of its own: PostgreSQL where
 * it answers, else PGlite in memory.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Hex } from '@touchstone/verdict'
import { encodeFunctionData, erc20Abi, hexToBytes, keccak256, toHex } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { assetRegistryAbi } from '../../service/src/domain/registry-abi.ts'
import { publishedAddresses } from '../../service/src/domain/published-accounts.ts'
import { startAnvil } from '../../service/src/chain/devchain/anvil.ts'
import { deployLocal } from '../../service/src/chain/devchain/deploy.ts'
import { installTestMoney, usdcAddress } from '../../service/src/chain/devchain/test-money.ts'
import { createRpcClient, type RpcClient } from '../../service/src/chain/rpc/client.ts'
import { openDatabase, type Database } from '../../service/src/db/database.ts'
import { migrate } from '../../service/src/db/migrate.ts'
import { payTo as seller, price } from '../../service/test/support/payments/buyer.ts'
import { createOwnDatabase } from '../lib/own-database.ts'

/** Price of the benchmark's gateways, in the token's smallest units, and its recipient. */
export { price, seller }
/** A block of Base holds more gas than one of anvil's by default. */
const baseBlockGas = 150_000_000

export type Payer = { readonly address: Hex; readonly key: Uint8Array }

export type GatewayWorld = {
  readonly rpcUrl: string
  readonly rpc: RpcClient
  readonly contract: Hex
  /** The ids 1, 2, 3 … are minted. */
  readonly tokens: number
  /** Each of them can pay for every payment of the benchmark. */
  readonly payers: readonly Payer[]
  readonly database: Database
  /** For a gateway in a process of its own: its database, null where PostgreSQL does not answer, and a folder. */
  readonly databaseUrl: string | null
  readonly dataDir: string
  /** The seller's balance, in the token's smallest units. */
  readonly earned: () => Promise<bigint>
  /** Makes a key that can pay for gas. */
  readonly newFacilitator: () => Promise<Hex>
  /** 0: each transaction is mined at once. */
  readonly setBlockSeconds: (seconds: number) => Promise<void>
}

/** Everything that it opens is on `made`. */
export async function openGatewayWorld(
  made: AsyncDisposableStack,
  { tokens, payers: payerCount }: { readonly tokens: number; readonly payers: number },
): Promise<GatewayWorld> {
  const dataDir = await mkdtemp(join(tmpdir(), 'touchstone-bench-'))
  made.defer(() => rm(dataDir, { recursive: true, force: true }))
  // Not `startLocalChain`: it saves the chain's state in this process, whose time is measured.
  const chain = await startAnvil({ folder: dataDir, port: 0 })
  made.defer(chain.stop)
  const rpc = createRpcClient({ url: chain.url, timeoutMs: 10_000 })
  await rpc('anvil_setLoggingEnabled', [false])
  await rpc('evm_setBlockGasLimit', [toHex(baseBlockGas)])
  const { contract } = await deployLocal({ rpcUrl: chain.url })
  await mint(rpc, contract, tokens)
  const payers = Array.from({ length: payerCount }, () => newPayer())
  const fund = payers.map(({ address }) => ({ address, amount: 1_000_000n * price }))
  await installTestMoney({ rpcUrl: chain.url, fund })
  const { database, databaseUrl } = await openOwnDatabase(made)
  return {
    rpcUrl: chain.url,
    rpc,
    contract,
    tokens,
    payers,
    database,
    databaseUrl,
    dataDir,
    earned: () => earned(rpc),
    async newFacilitator() {
      const key = generatePrivateKey()
      await rpc('anvil_setBalance', [privateKeyToAccount(key).address, toHex(10n ** 21n)])
      return key
    },
    async setBlockSeconds(seconds) {
      // An interval of 0 would stop mining altogether.
      if (seconds === 0) await rpc('evm_setAutomine', [true])
      else await rpc('evm_setIntervalMining', [seconds])
    },
  }
}

async function openOwnDatabase(
  made: AsyncDisposableStack,
): Promise<{ database: Database; databaseUrl: string | null }> {
  const own = await createOwnDatabase().catch(() => null)
  if (own !== null) made.defer(own.drop)
  // The pool of the service, not that of the benchmark's own statements.
  const database = await openDatabase(own === null ? { dataDir: 'memory://' } : { url: own.url })
  made.defer(database.close)
  await migrate(database)
  return { database, databaseUrl: own?.url ?? null }
}

async function mint(rpc: RpcClient, contract: Hex, tokens: number): Promise<void> {
  const [admin] = publishedAddresses as [Hex]
  const metadata = Array.from({ length: tokens }, (_, index) => keccak256(toHex(`product ${index + 1}`)))
  const data = encodeFunctionData({ abi: assetRegistryAbi, functionName: 'mintBatch', args: [admin, metadata] })
  const hash = await rpc('eth_sendTransaction', [{ from: admin, to: contract, data, gas: toHex(15_728_640) }])
  for (const until = performance.now() + 10_000; performance.now() < until; await delay(10)) {
    const receipt = (await rpc('eth_getTransactionReceipt', [hash])) as { status: Hex } | null
    if (receipt?.status === '0x1') return
    if (receipt !== null) break
  }
  throw new Error('The registry did not mint the tokens.')
}

async function earned(rpc: RpcClient): Promise<bigint> {
  const data = encodeFunctionData({ abi: erc20Abi, functionName: 'balanceOf', args: [seller] })
  return BigInt((await rpc('eth_call', [{ to: usdcAddress, data }, 'latest'])) as Hex)
}

function newPayer(): Payer {
  const secret = generatePrivateKey()
  return { address: privateKeyToAccount(secret).address, key: hexToBytes(secret) }
}
