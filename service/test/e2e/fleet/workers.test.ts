/** `touchstone serve --workers`: one service of several processes, whichever of them dies or is replaced (spec §8). */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { testFolder } from '../../support/folder.ts'
import { touchstone } from '../../support/processes/cli.ts'
import { envOf, mintOne } from '../../support/processes/env.ts'
import { openOwnDatabase, noPostgres } from '../../support/database/databases.ts'
import { eventually, until } from '../../support/wait.ts'
import { killProcess } from '../../support/processes/kill.ts'
import { noServiceManager, startServiceManager } from '../../support/processes/service-manager.ts'
import { get, startLoad, startWorkers, type Workers } from '../../support/processes/workers.ts'
import { startWriterWorld, type WriterWorld } from '../../support/index/writer-world.ts'

describe('several workers', { skip: noPostgres }, () => {
  const opened = new AsyncDisposableStack()
  let chain: WriterWorld
  const dataDir = testFolder()
  let env: Record<string, string>
  let service: Workers
  let manager: Awaited<ReturnType<typeof startServiceManager>> | undefined
  before(async () => {
    manager = noServiceManager === false ? opened.use(await startServiceManager()) : undefined
    chain = opened.adopt(await startWriterWorld(), (it) => it.close())
    const database = opened.use(await openOwnDatabase('migrated'))
    await mintOne(chain, database)
    env = {
      ...envOf({ dataDir, database, chain }),
      VERIFICATION_PORT: '0',
      GRAPHQL_PORT: '0',
      METRICS_PORT: '0',
      RATE_LIMIT_ASSET: '0',
      ...(manager && { NOTIFY_SOCKET: manager.socket }),
      TAG_KEK: `${'6b'.repeat(31)}01`,
      TAG_PEPPER: `${'70'.repeat(31)}02`,
    }
    service = await startWorkers(2, env)
    opened.defer(() => killProcess(service.child))
  })
  after(() => opened.disposeAsync())

  it('report to systemd once, when all of them serve', { skip: noServiceManager }, async () => {
    await until(() => (manager?.reports().length ?? 0) > 0)
    assert.deepEqual(manager?.reports(), ['READY=1'])
  })

  const port = () => service.portOf('verification host listens')
  const holder = async () => {
    const text = await readFile(join(dataDir, 'control.json'), 'utf8').catch(() => '{}')
    return (JSON.parse(text) as { pid?: number }).pid ?? 0
  }
  /** Carried out by the service, because without DATABASE_URL the command itself finds no such database. */
  const listKeys = () => touchstone(['key', 'list'], { DATA_DIR: dataDir }).ended

  it('answer on one port, each its share, and have metrics of their own; one follows the chain', async () => {
    const metrics = service.lines().filter(({ event }) => event === 'metrics listen')
    assert.equal(new Set(metrics.map((line) => line.port)).size, 2)
    assert.deepEqual(new Set(metrics.map((line) => line.worker)), new Set(service.pids()))
    const scrape = async (at = 0) => (await fetch(`http://127.0.0.1:${at}/metrics`)).text()
    const shares = async () => {
      const texts = await Promise.all(metrics.map((line) => scrape(line.port)))
      return texts.map((text) =>
        Number(/request_duration_seconds_count\{.*route="asset".*\} (\d+)/.exec(text)?.[1] ?? 0),
      )
    }
    for (let n = 0; n < 20; n += 1) assert.equal(await get(port(), '/api/asset/1'), '200')
    const counted = await shares()
    assert.equal((counted[0] ?? 0) + (counted[1] ?? 0), 20)
    assert.ok(
      counted.every((share) => share > 0),
      `shares ${counted.join(' and ')}`,
    )
    const leaders = (await Promise.all(metrics.map((line) => scrape(line.port)))).join('\n')
    assert.equal(leaders.match(/^touchstone_index_leader 1$/gm)?.length, 1)
  })

  it('go on when one is killed: it is restarted, and commands find the worker that took over its socket', async () => {
    assert.equal((await listKeys()).exit, 0)
    const [victim, before] = [await holder(), service.pids()]
    assert.ok(before.includes(victim))
    process.kill(victim, 'SIGKILL')
    const other = () => service.pids().every((pid) => pid !== victim)
    assert.ok(await eventually(other), service.said())
    assert.ok(service.lines().some(({ event, worker }) => event === 'worker ended' && worker === victim))
    for (let n = 0; n < 10; n += 1) assert.equal(await get(port(), '/api/asset/1'), '200')
    assert.ok(await eventually(async () => ![0, victim].includes(await holder())))
    assert.ok(service.pids().includes(await holder()))
    const listed = await listKeys()
    assert.equal(listed.exit, 0, listed.err)
  })

  it('are replaced one after another by SIGHUP, without a failed request', async () => {
    const before = service.pids()
    const load = startLoad({ port: port(), pathOf: () => '/api/asset/1' })
    assert.ok(await eventually(() => load.answered() > 200))
    service.child.kill('SIGHUP')
    assert.ok(await eventually(() => service.said().includes('every worker replaced')), service.said())
    const so = load.answered()
    assert.ok(await eventually(() => load.answered() > so + 200))
    await load.stop()
    assert.deepEqual(load.failures, [])
    assert.ok(
      service.pids().every((pid) => !before.includes(pid)),
      'a former worker is there still',
    )
    for (const pid of before) assert.throws(() => process.kill(pid, 0), { code: 'ESRCH' })
  })

  it('end by SIGTERM without a failed request, all of them', async () => {
    const pids = service.pids()
    const load = startLoad({ port: port(), pathOf: () => '/api/asset/1' })
    assert.ok(await eventually(() => load.answered() > 200))
    service.child.kill('SIGTERM')
    assert.equal((await service.ended).exit, 0)
    await load.ended()
    assert.deepEqual(load.failures, [])
    for (const pid of pids) assert.throws(() => process.kill(pid, 0), { code: 'ESRCH' })
  })

  it('end by themselves when their primary is killed', async () => {
    service = await startWorkers(2, env)
    const pids = service.pids()
    service.child.kill('SIGKILL')
    const isGone = (pid: number) => {
      try {
        return !process.kill(pid, 0)
      } catch {
        return true
      }
    }
    assert.ok(await eventually(() => pids.every(isGone)), 'a worker outlived its primary')
    assert.equal(await get(port(), '/api/asset/1'), 'ECONNREFUSED')
  })

  it('that cannot start end with one sentence: no PostgreSQL, a wrong setting, a port that is taken', async () => {
    const { DATABASE_URL: _, ...embedded } = env
    const run = (more: Record<string, string>, from = env) =>
      touchstone(['serve', '--workers', '2'], { ...from, ...more }).ended
    const cases = [
      [run({}, embedded), /^touchstone: WORKERS above 1 needs PostgreSQL: set DATABASE_URL[^\n]+\n$/],
      [run({ ONLY: 'verifier' }), /^touchstone: ONLY must be [^\n]+\n$/],
      [
        run({ DATABASE_URL: 'postgres://127.0.0.1:1/none', DATABASE_WAIT_SECONDS: '0' }),
        /^touchstone: PostgreSQL cannot be reached[^\n]+\n$/,
      ],
      [run({ VERIFICATION_PORT: new URL(chain.url).port }), /^touchstone: Port \d+ for the [^\n]+ is in use[^\n]+\n$/],
    ] as const
    for (const [ran, sentence] of cases) {
      const { exit, err } = await ran
      assert.match(err, sentence)
      assert.equal(exit, 1)
    }
  })
})
