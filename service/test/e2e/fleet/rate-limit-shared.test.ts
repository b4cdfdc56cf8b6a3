/** Limits of several instances, counted together on Redis, then on PostgreSQL alone, and what happens while Redis is away (spec §8). */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { createClient } from '@redis/client'
import { readConfig } from '../../../src/app/config/config.ts'
import { createLog } from '../../../src/lib/log.ts'
import { startService, type Service } from '../../../src/app/service.ts'
import { newApiKey } from '../../../src/access/api-keys.ts'
import { openOwnDatabase, noPostgres } from '../../support/database/databases.ts'
import { keepLog, keepSecret } from '../../support/evidence.ts'
import { eventually } from '../../support/wait.ts'
import { skipRedis, startRedis, type TestRedis } from '../../support/database/redis.ts'
import { startWorld, type World } from '../../support/world.ts'

const skip = noPostgres || skipRedis

type Sent = { method?: string; headers?: Record<string, string>; body?: string }

/** Windows and deadlines so long that a slow machine does not end them. */
const limits = {
  RATE_LIMIT_WINDOW_SECONDS: '900',
  RATE_LIMIT_STORE_TIMEOUT_MS: '10000',
  RATE_LIMIT_ASSET: '60',
  RATE_LIMIT_TAP: '7',
  RATE_LIMIT_GATEWAY: '6',
  RATE_LIMIT_GRAPHQL: '5',
  RATE_LIMIT_MCP: '4',
  TRUSTED_PROXIES: '127.0.0.1',
  METRICS_PORT: '0',
  PAYMENT_PAY_TO: `0x${'c0'.repeat(20)}`,
  FACILITATOR_KEY: '0b'.repeat(32),
}

describe('limits that instances share', { skip }, () => {
  let database: Awaited<ReturnType<typeof openOwnDatabase>>
  let redis: TestRedis
  let world: World
  let key: string
  let clients = 0
  const opened = new AsyncDisposableStack()
  const logs: string[][] = []
  before(async () => {
    database = opened.use(await openOwnDatabase('migrated'))
    redis = opened.adopt(await startRedis(), (it) => it.kill())
    const env = { ...limits, DATABASE_URL: database.url, REDIS_URL: redis.url }
    world = opened.adopt(await startWorld({ env }), (it) => it.end())
    await world.mint()
    const { text, hash } = newApiKey()
    keepSecret(text)
    await world.components.apiKeys.create({ hash, name: 'test', scopes: ['read'] })
    key = text
  })
  after(() => opened.disposeAsync())

  /** Starts another instance, the lines of whose log are the last of `logs`. */
  async function startAnother(env: Record<string, string>): Promise<Service> {
    const lines: string[] = []
    logs.push(lines)
    opened.defer(() => keepLog(lines))
    const log = createLog((line) => lines.push(line), 'debug')
    return opened.adopt(await startService(readConfig({ ...world.settings, ...env }), log), (it) => it.close(200))
  }

  const newClient = () => `198.18.${(clients += 1) >> 8}.${clients & 255}`
  const from = (client: string, { headers, ...init }: Sent = {}): Sent => ({
    ...init,
    headers: { ...headers, 'X-Forwarded-For': client },
  })
  const read = ({ urls }: Pick<Service, 'urls'>, client: string) =>
    fetch(`${urls.verification}/api/asset/1`, from(client))
  const json = (body: unknown, headers: Record<string, string> = {}): Sent => ({
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })

  /** So many requests at once, in turn to each instance; the answers that were let in. */
  async function letIn(
    instances: readonly Pick<Service, 'urls'>[],
    count: number,
    ask: (instance: Pick<Service, 'urls'>) => Promise<Response>,
  ): Promise<Response[]> {
    const replies = await Promise.all(
      Array.from({ length: count }, (_, n) => ask(instances[n % instances.length] as Service)),
    )
    await Promise.all(replies.map((reply) => reply.text()))
    return replies.filter(({ status }) => status !== 429)
  }

  const metrics = async (lines: readonly string[]) => {
    const found = lines.map((line) => JSON.parse(line) as { event: string; port: number })
    const port = found.find(({ event }) => event === 'metrics listen')?.port
    const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
    return (name: string) => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1])
  }

  /** Sends lists of one client at once. One of them fits, and the others consume one request each. */
  async function holdLists(instances: readonly Pick<Service, 'urls'>[]): Promise<void> {
    const client = newClient()
    const productIds = Array.from({ length: 40 }, () => 'https://example.com/01/09506000134352')
    const ask = ({ urls }: Pick<Service, 'urls'>) =>
      fetch(`${urls.verification}/dppsByProductIds`, from(client, json({ productIds })))
    const statuses = (await letIn(instances, 4, ask)).map(({ status }) => status)
    const next = await read(instances[0] as Service, client)
    assert.deepEqual([statuses, next.headers.get('x-ratelimit-remaining')], [[200], String(60 - 40 - 3 - 1)])
  }

  async function holdExactly(instances: readonly [Pick<Service, 'urls'>, Pick<Service, 'urls'>]): Promise<void> {
    const client = newClient()
    const replies = await letIn(instances, 200, (instance) => read(instance, client))
    assert.deepEqual(
      replies.map(({ headers }) => Number(headers.get('x-ratelimit-remaining'))).toSorted((a, b) => a - b),
      Array.from({ length: 60 }, (_, index) => index),
    )
    for (const instance of instances) {
      const refused = await read(instance, client)
      const reset = refused.headers.get('x-ratelimit-reset')
      assert.deepEqual(
        [refused.status, refused.headers.get('retry-after'), refused.headers.get('ratelimit')],
        [429, reset, `"default";r=0;t=${reset}`],
      )
      assert.equal(refused.headers.get('ratelimit-policy'), '"default";q=60;w=900')
      assert.ok(Number(reset) > 600 && Number(reset) <= 900, `${reset}`)
    }

    await holdLists(instances)
    const tap = `/api/verify?picc=${'0'.repeat(32)}&cmac=${'0'.repeat(16)}`
    const verify = ({ urls }: Pick<Service, 'urls'>) => fetch(urls.verification + tap, from(client))
    assert.equal((await letIn(instances, 20, verify)).length, 7)
    const buy = ({ urls }: Pick<Service, 'urls'>) =>
      fetch(`${urls.gateway}/verify`, from(client, json({ assetId: '1', chain: 'base-sepolia' })))
    assert.equal((await letIn(instances, 20, buy)).length, 6)
    const query = ({ urls }: Pick<Service, 'urls'>) =>
      fetch(`${urls.graphql}/graphql`, json({ query: '{ __typename }' }, { Authorization: `Bearer ${key}` }))
    assert.equal((await letIn(instances, 20, query)).length, 5)
    const wrong = { Authorization: `Bearer ${newApiKey().text}` }
    const guess = fetch(`${instances[0].urls.graphql}/graphql`, json({ query: '{ __typename }' }, wrong))
    assert.equal((await guess).status, 401)
    const list = ({ urls }: Pick<Service, 'urls'>) =>
      fetch(`${urls.verification}/a2a`, from(client, json({ jsonrpc: '2.0', id: 1, method: 'ListTasks' })))
    const call = { method: 'tools/call', params: { name: 'verify_asset', arguments: { token_id: '1' } } }
    const calls = Array.from({ length: 3 }, (_, id) => ({ jsonrpc: '2.0', id, ...call }))
    const batch = ({ urls }: Pick<Service, 'urls'>) => fetch(`${urls.verification}/mcp`, from(client, json(calls)))
    assert.equal((await batch(instances[0])).status === 429, false)
    assert.equal((await letIn(instances, 6, list)).length, 1) // the batch drew three of four
  }

  it('hold exactly on Redis, on every host', async () => {
    const other = await startAnother({})
    await holdExactly([world, other])
    assert.equal((await metrics(world.lines))('touchstone_limit_local_total'), 0)
    const admin = createClient({ url: redis.url })
    await admin.connect()
    const keys = await admin.keys('*')
    admin.destroy()
    const scopes = keys.map((name) => /^touchstone:limit:([a-z-]+):[\w-]{22}$/.exec(name)?.[1])
    assert.deepEqual(new Set(scopes), new Set(['asset', 'tap', 'gateway', 'graphql', 'agents', 'wrong-keys']))
  })

  it('hold exactly on PostgreSQL alone', async () => {
    const [held] = await database.query<{ id: string }>('select id from api_key')
    const own = (await Promise.all([1, 2].map(() => startAnother({ REDIS_URL: '' })))) as [Service, Service]
    await holdExactly(own)
    assert.equal((await metrics(logs.at(-1) ?? []))('touchstone_limit_local_total'), 0)
    const rows = await database.query<{ key: string }>('select key from rate_window')
    assert.equal(rows.length, 7)
    for (const row of rows) assert.ok(!row.key.includes('198.18') && !row.key.includes(String(held?.id)), row.key)
  })

  it('go on in each instance while Redis is away, from what it knew, and are shared again when it is back', async () => {
    const other = await startAnother({})
    const client = newClient()
    await letIn([world, other], 20, (instance) => read(instance, client))
    assert.equal((await read(world, client)).headers.get('x-ratelimit-remaining'), '39')
    await redis.kill()
    const alone: (string | null)[] = []
    for (let n = 0; n < 39; n += 1) {
      const reply = await read(world, client)
      assert.equal(reply.status, 200)
      alone.push(reply.headers.get('x-ratelimit-remaining'))
    }
    assert.deepEqual(
      alone,
      Array.from({ length: 39 }, (_, n) => String(38 - n)),
    )
    const refused = await read(world, client)
    assert.equal(refused.status, 429)
    assert.equal(refused.headers.get('retry-after'), refused.headers.get('x-ratelimit-reset'))
    const away = await metrics(world.lines)
    assert.deepEqual([away('touchstone_limit_local_total'), away('touchstone_limit_store_up')], [39, 0])
    const warnings = () => world.lines.filter((line) => line.includes('limits are counted by this process alone'))
    assert.equal(warnings().length, 1)

    await redis.start()
    const isShared = async (lines: readonly string[], instance: Pick<Service, 'urls'>) => {
      await read(instance, newClient()) // only a request that is not refused asks whether it is back
      return (await metrics(lines))('touchstone_limit_store_up') === 1
    }
    assert.ok(await eventually(() => isShared(world.lines, world)))
    assert.ok(await eventually(() => isShared(logs.at(-1) ?? [], other)))
    const another = newClient()
    assert.equal((await letIn([world, other], 200, (instance) => read(instance, another))).length, 60)
    assert.equal((await read(world, client)).status, 429, 'what was used up meanwhile stays so')
    assert.equal(warnings().length, 1)
  })

  it('do not keep an instance from starting while Redis is away', async () => {
    await redis.kill()
    const other = await startAnother({})
    const reply = await read(other, newClient())
    assert.deepEqual([reply.status, reply.headers.get('x-ratelimit-remaining')], [200, '59'])
  })
})
