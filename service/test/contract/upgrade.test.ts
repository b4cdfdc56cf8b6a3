/** An upgrade under load (docs/operators-handbook.md). The version before serves on the schema of the next, then beside it, then leaves. */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { Agent } from 'node:http'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { testFolder } from '../support/folder.ts'
import { envOf } from '../support/processes/env.ts'
import { bareCommandsOf, touchstone, type Ran, type Running } from '../support/processes/cli.ts'
import { send, type Sent } from '../support/contract.ts'
import type { Reply } from '../support/http.ts'
import { openOwnDatabase, noPostgres } from '../support/database/databases.ts'
import { keepSecret } from '../support/evidence.ts'
import { eventually, until } from '../support/wait.ts'
import { commitBeforeNewestMigration, extractVersion } from '../support/processes/previous-version.ts'
import { newUid, testTag } from '../support/tap/tags.ts'
import { startWriterWorld } from '../support/index/writer-world.ts'
import { publishedKey } from '../../src/domain/published-accounts.ts'
import { readMigrations } from '../../src/db/migrate.ts'
import { newApiKey } from '../../src/access/api-keys.ts'
import { readKeyFile } from '../../src/tap/keys/key-file.ts'

const before = await commitBeforeNewestMigration()
const mustRun = process.env['REQUIRE_SERVICES'] === '1' && 'reason' in before && !before.isExcuse
const skip = noPostgres || ('reason' in before && !mustRun ? before.reason : false)
const kinds = ['read', 'tap', 'list'] as const
const kek = '6b'.repeat(31) + '07'

describe('an upgrade', { skip }, () => {
  const opened = new AsyncDisposableStack()
  after(() => opened.disposeAsync())

  it('from the version before the newest migration, which runs on meanwhile, fails no request and no tap', async () => {
    assert.ok('commit' in before, 'reason' in before ? before.reason : '')
    const { old, env, database, chain } = await openWorld(before.commit)
    const commandOfOld = (...args: string[]) => succeeded(touchstone(args, env, env.DATA_DIR, old.cli))
    // Commands first: a program that ends keeps what Node compiled of it for the next one.
    const tags = await boundTags(env.DATA_DIR, commandOfOld)
    const [first, firstTarget] = await start(env, old.cli)
    const head = BigInt((await chain.rpc('eth_blockNumber', [])) as string)
    await until(async () => {
      const [cursor] = await database.query<{ number: bigint }>('select number from index_cursor')
      return (cursor?.number ?? -1n) >= head
    })
    const { text: key, hash } = newApiKey()
    keepSecret(key)
    const insertKey = "insert into api_key (id, hash, name, scopes) values ('loadload', $1, 'load', array['read'])"
    await database.query(insertKey, [hash])
    const accepted = { count: 0 }
    const load = startLoad({ key, tags, accepted, first: firstTarget })
    opened.defer(() => load.end())
    const goesOn = async (target: Target) => {
      const since = kinds.map((kind) => load.count(kind, target) + 20)
      const isMore = () => kinds.every((kind, index) => load.count(kind, target) >= (since[index] ?? 0))
      assert.ok((await eventually(() => isMore() || load.failures.length > 0)) && isMore(), load.failures.join('\n'))
    }
    await goesOn(firstTarget)

    const newest = readMigrations().at(-1)?.name ?? ''
    const run = bareCommandsOf(env)
    assert.equal((await run('migrate', '--check')).exit, 1)
    assert.match((await run('migrate')).out, new RegExp(`^${newest} +\\d+ ms$`, 'm'))
    await goesOn(firstTarget)
    const [second, secondTarget] = await start({ ...env, MIGRATE: 'off' })
    load.targets.push(secondTarget)
    await Promise.all([goesOn(firstTarget), goesOn(secondTarget)])

    first.child.kill('SIGTERM')
    assert.equal((await first.ended).exit, 0, first.said())
    await goesOn(secondTarget)
    await load.end()
    second.child.kill('SIGTERM')
    assert.equal((await second.ended).exit, 0, second.said())

    assert.deepEqual(load.failures, [])
    const [{ taps, announced } = { taps: 0, announced: 0 }] = await database.query<{ taps: number; announced: number }>(
      'select count(*)::int as taps, count(announced_at)::int as announced from tap',
    )
    assert.deepEqual(
      [taps, announced],
      [accepted.count, accepted.count],
      'every tap was accepted once, and announced once',
    )
  })

  async function openWorld(commit: string) {
    const folder = testFolder()
    const old = await extractVersion(commit)
    const chain = opened.adopt(await startWriterWorld(), (it) => it.close())
    const database = opened.use(await openOwnDatabase())
    const env = {
      ...envOf({ dataDir: folder, database, chain }),
      INDEX_POLL_MS: '25',
      VERIFICATION_PORT: '0',
      GATEWAY_PORT: '0',
      GRAPHQL_PORT: '0',
      RATE_LIMIT_ASSET: '0',
      RATE_LIMIT_TAP: '0',
      RATE_LIMIT_GRAPHQL: '0',
      OPERATOR_KEY: publishedKey(0),
      TAG_KEK: kek,
      TAG_PEPPER: '70'.repeat(31) + '08',
      TAP_WINDOW_SECONDS: '0',
      DEMO: 'on',
    }
    return { old, env, database, chain }
  }

  async function start(env: Record<string, string>, program?: string): Promise<[Running, Target]> {
    const running = touchstone(['serve'], env, env['DATA_DIR'], program)
    opened.defer(async () => {
      running.child.kill('SIGKILL')
      await running.ended
    })
    const port = (host: string) =>
      Number(new RegExp(`"${host} host listens","port":(\\d+)`).exec(running.said())?.[1] ?? 0)
    const isOpen = () => (port('verification') > 0 && port('graphql') > 0) || running.child.exitCode !== null
    assert.ok((await eventually(isOpen)) && running.child.exitCode === null, running.said())
    return [running, { verification: port('verification'), graphql: port('graphql') }]
  }
})

async function succeeded({ ended }: Running): Promise<Ran> {
  const ran = await ended
  assert.equal(ran.exit, 0, ran.err)
  return ran
}

/** Two products with software tags, minted, bound and activated by the old version. */
async function boundTags(dataDir: string, command: (...args: string[]) => Promise<Ran>) {
  await command('tag', 'batch', 'create', 'load', '--demo')
  const uids = [newUid(), newUid()]
  const rows = uids.map((uid, index) => `${Buffer.from(uid).toString('hex')},load,Product ${index}`)
  await writeFile(join(dataDir, 'tags.csv'), `${['uid,batch,name', ...rows].join('\n')}\n`)
  await command('tag', 'import', 'tags.csv', '--mint', '--bind', '--activate')
  const batches = await readKeyFile(join(dataDir, 'keys', 'tag-keys.json'), {
    kek: Buffer.from(kek, 'hex'),
    demo: true,
  })
  const batch = batches.find(({ id }) => id === 'load')
  assert.ok(batch)
  return Promise.all(uids.map((uid) => testTag(batch, { uid })))
}

type Target = { readonly verification: number; readonly graphql: number }

/**
 * Clients that ask several processes in turn, as behind a balancer, and record every missing answer. They send keyless reads, lists, and
 * taps, of which each is presented to one process, and once more to another one if there is one.
 */
function startLoad({
  key,
  tags,
  accepted,
  first,
}: {
  readonly key: string
  readonly tags: Awaited<ReturnType<typeof boundTags>>
  readonly accepted: { count: number }
  readonly first: Target
}) {
  const targets = [first]
  const failures: string[] = []
  const answered = new Map<string, number>()
  const agent = new Agent({ keepAlive: true })
  const clients: Promise<void>[] = []
  let running = true
  let turn = 0

  /** `not` is a process that is not asked as long as there is another. One that refuses connections is left out from then on. */
  async function ask(kind: string, sent: Partial<Sent>, not?: Target): Promise<Reply & { by: Target }> {
    for (;;) {
      const others = targets.filter((target) => target !== not)
      const by = others[(turn += 1) % others.length] ?? not
      if (by === undefined) throw new Error('No target is left.')
      const port = kind === 'list' ? by.graphql : by.verification
      try {
        const request = { method: 'GET', target: '/graphql', headers: {}, ...sent }
        const reply = await send(`http://127.0.0.1:${port}`, request, agent)
        if (reply.status !== 200) failures.push(`${kind}: ${reply.status} ${reply.text.slice(0, 200)}`)
        const name = `${kind} ${by.verification}`
        answered.set(name, (answered.get(name) ?? 0) + 1)
        return { ...reply, by }
      } catch (error) {
        const { code } = error as NodeJS.ErrnoException
        if (code !== 'ECONNREFUSED') failures.push(`${kind}: ${code ?? String(error)}`)
        if (targets.includes(by)) targets.splice(targets.indexOf(by), 1)
      }
    }
  }

  /** Does `once` again and again until the end. */
  function client(once: () => Promise<unknown>): void {
    const work = async () => {
      for (; running; await delay(50)) await once()
    }
    clients.push(work().catch((error: unknown) => void failures.push(String(error))))
  }

  const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' }
  const query = '{ products(first: 5) { totalCount edges { node { id name verified transfers { id } } } } }'
  const expect = (holds: boolean, what: string, found: string) =>
    holds || failures.push(`${what}: ${found.slice(0, 300)}`)
  for (const id of [1, 2]) client(() => ask('read', { target: `/api/asset/${id}` }))
  client(async () => {
    const { text } = await ask('list', { method: 'POST', headers, body: JSON.stringify({ query }) })
    expect(text.includes('"totalCount":2') && !text.includes('errors'), 'a list', text)
  })
  for (const tag of tags)
    client(async () => {
      const { picc, cmac } = tag.next()
      const target = `/api/verify?picc=${picc}&cmac=${cmac}`
      const tap = await ask('tap', { target })
      expect(tap.text.includes('"verified":true'), 'a tap', tap.text)
      accepted.count += 1
      const again = await ask('tap', { target }, tap.by)
      expect(again.text.includes('"reason":"replayed"'), 'a tap presented again', again.text)
    })
  return {
    targets,
    failures,
    /** How often this process has answered this kind. */
    count: (kind: string, { verification }: Target) => answered.get(`${kind} ${verification}`) ?? 0,
    async end() {
      running = false
      await Promise.all(clients)
      agent.destroy()
    },
  }
}
