/**
 * Measures paid proofs a second (spec §4.8). The chain has a block every two seconds, one key settles, on PostgreSQL, beside the build
 * before payments were settled together. Everything shares the cores of this machine: chain, database, gateway and buyers.
 */
import { fileURLToPath } from 'node:url'
import type { Hex } from '@touchstone/verdict'
import { encodeEventTopics, parseAbi, toHex } from 'viem'
import { usdcAddress } from '../../service/src/chain/devchain/test-money.ts'
import { costOf } from '../lib/cost.ts'
import { createOwnDatabase } from '../lib/own-database.ts'
import { percentile } from '../lib/processes.ts'
import { run, type Running } from '../lib/program.ts'
import { commitBefore, extractVersion } from '../../service/test/support/processes/previous-version.ts'
import { buyAll, purchase, type Bought } from './buyers.ts'
import type { Counts, SellerSettings } from './seller.ts'
import { price, seller, type GatewayWorld, type Payer } from './world.ts'

export type PaidOptions = { readonly seconds: number; readonly clients: number; readonly blockSeconds: number }
export type Build = {
  readonly name: string
  readonly url: string
  readonly running: Running
  readonly counts?: () => Promise<Counts>
}

const sellerScript = fileURLToPath(new URL('seller.ts', import.meta.url))
const previousMigration = 'service/src/db/migrations/0012-settlements.sql'

/** Prints a line for each build, then the latency of a lonely payment. Throws when the chain does not have exactly what was sold. */
export async function benchPaid(
  made: AsyncDisposableStack,
  world: GatewayWorld,
  { seconds, clients, blockSeconds }: PaidOptions,
): Promise<void> {
  await world.setBlockSeconds(blockSeconds)
  const previous = await startPrevious(made, world)
  if (previous !== null) {
    report(previous, await load(previous, world, { seconds: Math.min(20, seconds), clients: 20 }))
    await previous.running.stop()
  }
  const ours = await startOurs(made, world)
  await buyAll(() => [ours.url], sign(world, 4 * clients), { clients, seconds: () => 5, resend: true })
  report(ours, await load(ours, world, { seconds, clients }))
  const lonely = await buyAll(() => [ours.url], sign(world, 10), { clients: 1, seconds: () => 60 })
  const waits = lonely.map(({ ms }) => ms).toSorted((a, b) => a - b)
  console.log(
    `a lonely payment   p50 ${waits.at(4)?.toFixed(0)} ms   longest ${waits.at(-1)?.toFixed(0)} ms   blocks every ${blockSeconds * 1000} ms`,
  )
  await ours.running.stop()
}

type Load = {
  readonly bought: readonly Bought[]
  readonly took: number
  readonly cpu: number
  readonly gas: number
  readonly transactions: number
  readonly counts: Counts | null
}

async function load(
  { url, running, counts }: Build,
  world: GatewayWorld,
  { seconds, clients }: { readonly seconds: number; readonly clients: number },
): Promise<Load> {
  const purchases = sign(world, counts === undefined ? 40 * seconds : 600 * seconds)
  const held = await world.earned()
  const fromBlock = (await world.rpc('eth_blockNumber')) as Hex
  const before = { cpu: costOf(running.pid).cpuSeconds, counts: await counts?.() }
  const bought = await buyAll(() => [url], purchases, { clients, seconds: () => seconds, resend: true })
  const after = { cpu: costOf(running.pid).cpuSeconds, counts: await counts?.() }
  const got = (await world.earned()) - held
  if (got !== BigInt(bought.length) * price) throw new Error(`${bought.length} sold, and the seller got ${got}.`)
  const { gas, transactions } = await settled(world, bought, fromBlock)
  const took = Math.max(...bought.map(({ at }) => at)) / 1_000
  return {
    bought,
    took,
    gas,
    transactions,
    cpu: after.cpu - before.cpu,
    counts:
      after.counts && before.counts
        ? {
            chain: after.counts.chain - before.counts.chain,
            statements: after.counts.statements - before.counts.statements,
          }
        : null,
  }
}

/** Compares every proof with the logs of its transaction; returns the gas of all. */
export async function settled(world: GatewayWorld, bought: readonly Bought[], fromBlock: Hex) {
  const [topic] = encodeEventTopics({
    abi: parseAbi(['event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)']),
    eventName: 'AuthorizationUsed',
  })
  const logs: { topics: Hex[]; transactionHash: Hex }[] = []
  const last = BigInt((await world.rpc('eth_blockNumber')) as Hex)
  for (let block = BigInt(fromBlock); block <= last; block += 1n) {
    const range = { fromBlock: toHex(block), toBlock: toHex(block) }
    logs.push(
      ...((await world.rpc('eth_getLogs', [{ address: usdcAddress, topics: [topic], ...range }])) as typeof logs),
    )
  }
  const paidIn = new Map(logs.map(({ topics, transactionHash }) => [topics[2], transactionHash]))
  const wrong = bought.filter(({ nonce, transaction }) => paidIn.get(nonce) !== transaction)
  if (wrong.length > 0) throw new Error(`${wrong.length} proofs name a transaction that did not pay them.`)
  const transactions = new Set(bought.map(({ transaction }) => transaction))
  let gas = 0
  for (const hash of transactions)
    gas += Number(((await world.rpc('eth_getTransactionReceipt', [hash])) as { gasUsed: Hex }).gasUsed)
  return { gas, transactions: transactions.size }
}

/** Signs payments that differ from the last ones of their payers. A proof that is still to be delivered would answer both. */
export function sign({ payers, tokens }: GatewayWorld, count: number) {
  return Array.from({ length: count }, (_, n) =>
    purchase(payers[n % payers.length] as Payer, String(1 + (Math.floor(n / payers.length) % tokens))),
  )
}

function report({ name }: Build, { bought, took, cpu, gas, transactions, counts }: Load): void {
  const sold = bought.length
  const times = bought.map(({ ms }) => ms)
  const again = bought.filter(({ attempts }) => attempts > 1).length
  const at = (share: number) => Math.round(percentile(times, share))
  const each =
    counts && `   chain calls ${(counts.chain / sold).toFixed(2)}   statements ${(counts.statements / sold).toFixed(2)}`
  console.log(
    `${name.padEnd(18)} ${(sold / took).toFixed(1).padStart(7)}/s   ${sold} in ${took.toFixed(0)} s   CPU ${((1_000 * cpu) / sold).toFixed(2)} ms` +
      `   gas ${(gas / sold / 1_000).toFixed(1)}k, ${(sold / transactions).toFixed(1)} a transaction${each ?? ''}   p50 ${at(0.5)} ms   p99 ${at(0.99)} ms   sent again ${again}`,
  )
}

/** `facilitatorKey`: left out, one of its own. */
export async function startOurs(made: AsyncDisposableStack, world: GatewayWorld, facilitatorKey?: Hex): Promise<Build> {
  const { rpcUrl, contract, databaseUrl } = world
  if (databaseUrl === null) throw new Error('The paid benchmark needs PostgreSQL.')
  const key = facilitatorKey ?? (await world.newFacilitator())
  const settings: SellerSettings = { rpcUrl, contract, databaseUrl, facilitatorKey: key }
  const running = run({ command: process.execPath, args: [sellerScript, JSON.stringify(settings)] })
  made.defer(running.stop)
  const [, port] = await running.line(/^port (\d+)$/m, 30_000)
  let asked = 0
  return {
    name: 'this build',
    url: `http://127.0.0.1:${port}`,
    running,
    async counts() {
      asked += 1
      running.signal('SIGUSR2')
      const [, json = ''] = await running.line(new RegExp(`(?:counts .*\\n[^]*){${asked - 1}}counts (.*)\\n`), 10_000)
      return JSON.parse(json) as Counts
    },
  }
}

/** The program of the commit before settlements in batches, as its users start it. Null where the history is not here. */
async function startPrevious(
  made: AsyncDisposableStack,
  { rpcUrl, contract, dataDir, newFacilitator }: GatewayWorld,
): Promise<Build | null> {
  const found = await commitBefore(previousMigration)
  if (!('commit' in found)) {
    console.log(`the build before is not compared: ${found.reason}`)
    return null
  }
  const version = await extractVersion(found.commit)
  const own = await createOwnDatabase()
  made.defer(own.drop)
  const running = run({
    command: process.execPath,
    args: [version.cli, 'serve', '--only', 'gateway'],
    env: {
      GATEWAY_PORT: '0',
      RATE_LIMIT_GATEWAY: '1000000000',
      CHAIN_RPC_URLS: rpcUrl,
      CHAIN_CONTRACT: contract,
      CHAIN_MAX_HEAD_AGE_SECONDS: '0',
      DATABASE_URL: own.url,
      DATA_DIR: `${dataDir}/previous`,
      PAYMENT_PAY_TO: seller,
      FACILITATOR_KEY: await newFacilitator(),
    },
  })
  made.defer(running.stop)
  const [, port] = await running.line(/"gateway host listens","port":(\d+)/, 60_000)
  return { name: 'the build before', url: `http://127.0.0.1:${port}`, running }
}
