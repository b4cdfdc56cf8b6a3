/** One size of `bench:growth`. A database full of products, a chain that has some of them, and two services on both. */
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { apiKeyStore, newApiKey } from '../../service/src/access/api-keys.ts'
import { locks } from '../../service/src/db/locks.ts'
import { migrate } from '../../service/src/db/migrate.ts'
import { tagStore } from '../../service/src/tap/tag-registry.ts'
import type { BatchKeyRecord } from '../../service/src/tap/keys/batch.ts'
import { openTagKeyStore } from '../../service/src/tap/keys/store.ts'
import { createTagHash } from '../../service/src/tap/tag-hash.ts'
import { startGrowthChain, type GrowthChain } from './chain.ts'
import { batchId, bindSamples, loadGrowthData } from './data.ts'
import { hexOf, modelOfProduct, modelsOf, uidOf, type Model } from './models.ts'
import { distribute } from '../../service/src/db/cluster/distribute.ts'
import type { CitusCluster } from '../../service/test/support/database/citus-cluster.ts'
import { createClusterDatabase, createOwnDatabase, type OwnDatabase } from '../lib/own-database.ts'
import { run } from '../lib/program.ts'

export type GrowthWorld = {
  readonly products: number
  /** Its database is a Citus cluster. */
  readonly onCluster: boolean
  readonly minted: number
  readonly models: readonly Model[]
  readonly database: OwnDatabase
  readonly batch: BatchKeyRecord
  /** Products that are on chain and can be tapped, all over the catalogue. */
  readonly sampled: readonly number[]
  /** `verification` and `graphql` are ports of the service as it comes; `cold` keeps no verdict (CHAIN_CACHE=off). */
  readonly ports: { readonly verification: number; readonly graphql: number; readonly cold: number }
  readonly apiKey: string
  readonly loadSeconds: { readonly rows: number; readonly indexes: number }
}

const mostSampled = 5_000
const mostMinted = 200_000
const cli = fileURLToPath(new URL('../../service/src/cli.ts', import.meta.url))

export async function openGrowthWorld(
  products: number,
  {
    made,
    loadMs,
    every,
    say,
    on,
  }: {
    made: AsyncDisposableStack
    loadMs: number
    every: number
    say: (what: string) => void
    /** A Citus cluster, or the address of one PostgreSQL. */
    on: CitusCluster | string
  },
): Promise<GrowthWorld> {
  const dataDir = await mkdtemp(join(tmpdir(), 'touchstone-growth-'))
  made.defer(() => rm(dataDir, { recursive: true, force: true }))
  const secrets = { TAG_KEK: randomBytes(32).toString('hex'), TAG_PEPPER: randomBytes(32).toString('hex') }
  const models = modelsOf(products)
  const sampled = sampledOf(products)
  const tagHash = createTagHash({ scheme: 'hmac', pepper: Buffer.from(secrets.TAG_PEPPER, 'hex') })
  const metadataHashOf = (tokenId: number) => hexOf(modelOfProduct(models, tokenId).hash)
  const samples = sampled.map((tokenId) => ({
    tokenId,
    metadataHash: metadataHashOf(tokenId),
    tagHash: tagHash(uidOf(tokenId)),
  }))
  const minted = Math.min(products, mostMinted)
  const chain = await startGrowthChain({ minted, metadataHashOf, samples })
  made.defer(chain.stop)
  say(`${minted.toLocaleString('en')} tokens and ${samples.length.toLocaleString('en')} bound tags on chain`)

  const limits = { statementTimeoutMs: loadMs }
  const cluster = typeof on === 'string' ? undefined : on
  const database = await (typeof on === 'string'
    ? createOwnDatabase({ ...limits, serverUrl: on })
    : createClusterDatabase(on, limits))
  made.defer(database.drop)
  await migrate(database.sql)
  await keepRows(database, made)
  const loadSeconds = await loadGrowthData(database.sql, { products, models, every, chain, say })
  await bindSamples(
    database.sql,
    sampled,
    samples.map((sample) => sample.tagHash),
  )
  if (cluster !== undefined) {
    const began = performance.now()
    const tables = await distribute(database.sql)
    for (const table of tables) await database.sql.exec(`vacuum analyze ${table}`)
    say(`${tables.length} tables are distributed after ${((performance.now() - began) / 1000).toFixed(1)} s`)
  }
  const folder = join(dataDir, 'keys')
  const keyFile = { kek: Uint8Array.from(Buffer.from(secrets.TAG_KEK, 'hex')), demo: true }
  const tagKeys = await openTagKeyStore({ folder, keyFile, shared: tagStore(database.sql) })
  const batch = await tagKeys.create({ id: batchId, demo: true })
  if (!batch.ok) throw new Error(batch.error)
  const key = newApiKey()
  await apiKeyStore(database.sql).create({ hash: key.hash, name: 'benchmark', scopes: ['read', 'taps'] })

  const shared = { chain, databaseUrl: database.url, secrets }
  const usual = await startService(made, { ...shared, dataDir, hosts: ['verification', 'graphql'], env: {} })
  const cold = await startService(made, {
    ...shared,
    dataDir: join(dataDir, 'cold'),
    hosts: ['verification'],
    env: { ONLY: 'verification', CHAIN_CACHE: 'off' },
  })
  for (const port of [usual[0], cold[0]]) await untilItReads(`http://127.0.0.1:${port}/api/asset/${sampled[0]}`, say)
  const ports = { verification: usual[0] ?? 0, graphql: usual[1] ?? 0, cold: cold[0] ?? 0 }
  const onCluster = cluster !== undefined
  const batchKeys = batch.value
  return {
    products,
    onCluster,
    minted,
    models,
    database,
    batch: batchKeys,
    sampled,
    ports,
    apiKey: key.text,
    loadSeconds,
  }
}

/**
 * Holds the lock of the indexer, so that no service compares its rows with the chain. Most rows are on no chain, and a comparison would
 * replace them while requests are measured.
 */
async function keepRows({ sql }: OwnDatabase, made: AsyncDisposableStack): Promise<void> {
  const held = await sql.hold(locks.indexLeader)
  if (held === null) throw new Error('Another process holds the lock of the indexer of a new database.')
  made.defer(held.release)
}

/** The first question to anvil about the root of so large a state takes seconds. The service does not wait that long. */
async function untilItReads(url: string, say: (what: string) => void): Promise<void> {
  for (const until = performance.now() + 60_000; performance.now() < until; await delay(500)) {
    const { status } = await fetch(url)
    if (status === 200) return
    say(`the service is not ready: status ${status}`)
  }
  throw new Error('The service could not read its chain within a minute.')
}

/** Every fourth product is ACTIVATED and was tapped before; so many of them, at equal distances. */
function sampledOf(products: number): number[] {
  const fourths = Math.floor(products / 4)
  const count = Math.min(mostSampled, fourths)
  return Array.from({ length: count }, (_, index) => 2 + 4 * Math.floor((index * fourths) / count))
}

type Starting = {
  readonly chain: GrowthChain
  readonly databaseUrl: string
  readonly dataDir: string
  readonly secrets: Record<string, string>
  readonly hosts: readonly string[]
  readonly env: Record<string, string>
}

/** `touchstone serve` as an operator starts it; gives the ports of the hosts. */
async function startService(
  made: AsyncDisposableStack,
  { chain, databaseUrl, dataDir, secrets, hosts, env }: Starting,
): Promise<number[]> {
  const service = run({
    command: process.execPath,
    args: [cli, 'serve'],
    core: 0,
    env: {
      DATA_DIR: dataDir,
      DATABASE_URL: databaseUrl,
      CHAIN_RPC_URLS: chain.url,
      CHAIN_CONTRACT: chain.contract,
      CHAIN_INTERFACE: 'registry',
      CHAIN_MAX_HEAD_AGE_SECONDS: '0',
      DEMO: 'on',
      ...Object.fromEntries(['VERIFICATION', 'GATEWAY', 'GRAPHQL'].map((host) => [`${host}_PORT`, '0'])),
      ...Object.fromEntries(['ASSET', 'TAP', 'GRAPHQL'].map((what) => [`RATE_LIMIT_${what}`, '0'])),
      ...secrets,
      ...env,
    },
  })
  made.defer(service.stop)
  const ports: number[] = []
  for (const host of hosts) {
    const [, port] = await service.line(new RegExp(`"${host} host listens","port":"?(\\d+)`), 60_000)
    ports.push(Number(port))
  }
  return ports
}
