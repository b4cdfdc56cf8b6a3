/**
 * A fleet on this machine. Two instances with every role share one PostgreSQL, or one Citus cluster, and one Redis, over a chain whose
 * providers can misbehave. Products with software tags, payers and an API key are there.
 */
import { randomBytes } from 'node:crypto'
import { cp, mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { publishedKey } from '../../service/src/domain/published-accounts.ts'
import { readConfig } from '../../service/src/app/config/config.ts'
import { openStoreComponents } from '../../service/src/app/store.ts'
import { newApiKey } from '../../service/src/access/api-keys.ts'
import { distribute } from '../../service/src/db/cluster/distribute.ts'
import { openDatabase } from '../../service/src/db/database.ts'
import type { BatchKeyRecord } from '../../service/src/tap/keys/batch.ts'
import { createDemoTag } from '../../service/src/tap/provisioning/software-tag.ts'
import { createTagHash } from '../../service/src/tap/tag-hash.ts'
import { createTemplate } from '../../service/src/tap/provisioning/template.ts'
import { payTo } from '../../service/test/support/payments/buyer.ts'
import { silent } from '../lib/world.ts'
import { type OwnCitus, startOwnCitus } from './services/citus.ts'
import { startFleetChain, type FleetChain } from './services/chain.ts'
import { createInstance, type Instance } from './services/instance.ts'
import { startOwnPostgres, type OwnPostgres } from './services/postgres.ts'
import { startOwnRedis, type OwnRedis } from './services/redis.ts'

export type Fleet = Awaited<ReturnType<typeof openFleet>>
export type FleetTag = { readonly uid: string; readonly tokenId: bigint; readonly next: () => string }
/** Options of an instance for a fault or a benchmark: other settings, flags of Node, arguments of `serve`. */
export type InstanceWishes = {
  readonly env?: Readonly<Record<string, string>>
  readonly nodeFlags?: readonly string[]
  readonly args?: readonly string[]
}

/** Everything that it opens is on `made`; the instances are not started yet. */
export async function openFleet(
  made: AsyncDisposableStack,
  {
    tokens = 40,
    tags: tagCount = 12,
    payers: payerCount = 40,
    instances: names = ['a', 'b'],
    env: more = {},
    core,
    onCluster = false,
  }: {
    readonly tokens?: number
    readonly tags?: number
    readonly payers?: number
    readonly instances?: readonly string[]
    readonly env?: Readonly<Record<string, string>>
    /** The core of all instances; left out: any. */
    readonly core?: number | undefined
    /** The database is a Citus cluster of a coordinator and two workers. */
    readonly onCluster?: boolean
  } = {},
) {
  const folder = await mkdtemp(join(tmpdir(), 'touchstone-fleet-'))
  made.defer(() => rm(folder, { recursive: true, force: true }))
  const cluster: OwnCitus | null = onCluster ? made.adopt(await startOwnCitus(), (it) => it.close()) : null
  const postgres: OwnPostgres = cluster?.coordinator ?? made.adopt(await startOwnPostgres(), (it) => it.close())
  const redis: OwnRedis = made.adopt(await startOwnRedis(), (it) => it.kill())
  const pepper = randomBytes(32)
  const tagHash = createTagHash({ scheme: 'hmac', pepper })
  const uids = Array.from({ length: tagCount }, (_, index) =>
    Uint8Array.of(0x04, 0xc4, 0xa0, 0x50, 0, index >> 8, index & 255),
  )
  const payers = Array.from({ length: payerCount }, () => privateKeyToAccount(generatePrivateKey()))
  const facilitatorKey = generatePrivateKey()
  const chain: FleetChain = made.adopt(
    await startFleetChain({
      tokens,
      tagHashes: uids.map(tagHash),
      payers: payers.map(({ address }) => ({ address, amount: 10n ** 12n })),
      gas: [privateKeyToAccount(facilitatorKey).address],
    }),
    (it) => it.close(),
  )
  const dataDirOf = (name: string) => join(folder, name)
  const common: Record<string, string> = {
    VERIFICATION_PORT: '0',
    GATEWAY_PORT: '0',
    GRAPHQL_PORT: '0',
    METRICS_PORT: '0',
    DATABASE_URL: postgres.url,
    REDIS_URL: redis.url,
    CHAIN_RPC_URLS: chain.providers.map(({ url }) => url).join(','),
    CHAIN_CONTRACT: chain.contract,
    CHAIN_CODE_HASH: chain.codeHash,
    CHAIN_INTERFACE: 'registry',
    TAG_KEK: randomBytes(32).toString('hex'),
    TAG_PEPPER: pepper.toString('hex'),
    OPERATOR_KEY: publishedKey(0),
    ATTESTER_KEY: publishedKey(1),
    ATTESTATION_KEY: generatePrivateKey(),
    FACILITATOR_KEY: facilitatorKey,
    PAYMENT_PAY_TO: payTo,
    DEMO: 'on',
    // Limits are counted, and too high to be reached: the counting must not break what it guards.
    ...Object.fromEntries(
      ['ASSET', 'TAP', 'GATEWAY', 'GRAPHQL', 'MCP'].map((name) => [`RATE_LIMIT_${name}`, '1000000']),
    ),
    ...more,
  }

  const [first = 'a', ...others] = names
  const { key, record } = await prepareStore({ ...common, DATA_DIR: dataDirOf(first) }, uids)
  for (const name of [...others, 'cli']) {
    await mkdir(dataDirOf(name))
    await cp(join(dataDirOf(first), 'keys'), join(dataDirOf(name), 'keys'), { recursive: true })
  }
  if (cluster !== null) {
    await using whole = await openDatabase({ url: postgres.url, statementTimeoutMs: 60_000 })
    await distribute(whole)
  }
  const database = made.use(await openDatabase({ url: postgres.url, poolSize: 2, statementTimeoutMs: 20_000 }))

  const wishes = new Map<string, InstanceWishes>()
  const instances: readonly Instance[] = names.map((name) =>
    createInstance({
      name,
      core,
      env: () => ({ ...common, DATA_DIR: dataDirOf(name), ...wishes.get(name)?.env }),
      nodeFlags: () => wishes.get(name)?.nodeFlags ?? [],
      args: () => wishes.get(name)?.args ?? [],
    }),
  )
  made.defer(() => Promise.all(instances.map((instance) => instance.stop())).then(() => {}))
  let sales = 0
  return {
    chain,
    /** Numbers the sales of all loads on this fleet, from 0. */
    nextSale: () => sales++,
    /** The coordinator, where it is a cluster. */
    postgres,
    cluster,
    redis,
    database,
    instances,
    key,
    payers,
    folder,
    dataDirOf,
    wishes,
    tags: await Promise.all(uids.map((uid, index) => softwareTag(record, uid, BigInt(index + 1)))),
    /** For a command of the CLI beside the instances. */
    cliEnv: { ...common, DATA_DIR: dataDirOf('cli') },
  }
}

/** Tables, a batch of software tags whose keys lie in this data folder, an API key. */
async function prepareStore(env: Record<string, string>, uids: readonly Uint8Array[]) {
  await using store = await openStoreComponents(readConfig(env), silent)
  const created = await store.tagKeys.create({ id: 'chaos', demo: true })
  if (!created.ok) throw new Error(created.error)
  for (const [index, uid] of uids.entries())
    await store.tags.importTag({ uid, epoch: 0, batchId: 'chaos', tokenId: BigInt(index + 1) })
  const { text: key, hash } = newApiKey()
  await store.apiKeys.create({ hash, name: 'chaos', scopes: ['read', 'write'] })
  return { key, record: created.value }
}

/** `next` taps it: path and query of the address, which counts one further each time. */
async function softwareTag(batch: BatchKeyRecord, uid: Uint8Array, tokenId: bigint): Promise<FleetTag> {
  const laid = createTemplate('https://fleet.example/api/verify?picc={picc}&cmac={cmac}', batch.macInput)
  if (!laid.ok) throw new Error(laid.error)
  const tag = await createDemoTag({ batch, uid, template: laid.template })
  const next = () => {
    const { pathname, search } = new URL(tag.tap() ?? '')
    return pathname + search
  }
  return { uid: Buffer.from(uid).toString('hex').toUpperCase(), tokenId, next }
}
