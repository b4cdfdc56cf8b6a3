/** Workers of `serve --workers` that hang: SIGSTOP makes them. This process is the primary, with shorter limits than `serve` has. */
import assert from 'node:assert/strict'
import cluster, { type Worker } from 'node:cluster'
import { after, before, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { createNotifier } from '../../../src/cli/serve/notify.ts'
import { startWorkers } from '../../../src/cli/serve/workers.ts'
import { createLog } from '../../../src/lib/log.ts'
import { testFolder } from '../../support/folder.ts'
import { freePort } from '../../support/free-port.ts'
import { openOwnDatabase, noPostgres } from '../../support/database/databases.ts'
import { startWriterWorld } from '../../support/index/writer-world.ts'
import { cli } from '../../support/processes/cli.ts'
import { envOf } from '../../support/processes/env.ts'
import { children } from '../../support/processes/kill.ts'
import { noServiceManager, startServiceManager } from '../../support/processes/service-manager.ts'
import { get, placesOf } from '../../support/processes/workers.ts'
import { until } from '../../support/wait.ts'

type Line = { event: string; place?: number; worker: number }
const mostAtStart = 4_800 // a busy machine takes more than a minute to read the program
const pingLimits = { pingEveryMs: 250, mostUnanswered: 40, mostAtStart }

describe('workers that hang', { skip: noPostgres }, () => {
  const opened = new AsyncDisposableStack()
  const dataDir = testFolder()
  let workers: Awaited<ReturnType<typeof startWorkers>>
  let [port, metricsPort] = [0, 0]
  const lines: Line[] = []
  const log = createLog((line) => lines.push(JSON.parse(line) as Line))

  before(async () => {
    const chain = opened.adopt(await startWriterWorld(), (it) => it.close())
    const database = opened.use(await openOwnDatabase('migrated'))
    port = await freePort()
    metricsPort = await freePort()
    const env = { ...envOf({ dataDir, database, chain }), VERIFICATION_PORT: String(port), LOG_LEVEL: 'error' }
    const envOfPlace = (place: number) =>
      place === 0
        ? { ...env, ONLY: 'verification,indexer', METRICS_PORT: String(metricsPort) }
        : { ...env, ONLY: 'verification' }
    cluster.setupPrimary({ exec: cli, args: ['serve'], execArgv: [] })
    cluster.on('fork', remember)
    opened.defer(() => void cluster.off('fork', remember))
    const starting = startWorkers({ count: 2, envOf: envOfPlace, log, pingLimits })
    workers = opened.adopt(await starting, (it) => it.stop())
  })
  after(() => opened.disposeAsync())

  let [isNextStopped, isNextPaused] = [false, false]
  const pauseMs = pingLimits.pingEveryMs * (pingLimits.mostUnanswered + 8)
  let paused = Promise.resolve<unknown>(undefined)
  function remember(worker: Worker): void {
    const child = worker.process
    if (isNextStopped) child.kill('SIGSTOP')
    if (isNextPaused) worker.once('message', pause)
    ;[isNextStopped, isNextPaused] = [false, false]
    pingLimits.mostAtStart = mostAtStart
    children.add(child)
    child.once('exit', () => children.delete(child))
  }
  /** Stops a worker that has answered once, for longer than one that serves may be silent. */
  function pause(this: Worker, message: unknown): void {
    assert.notEqual(message, 'started')
    this.process.kill('SIGSTOP')
    paused = sleep(pauseMs).then(() => this.process.kill('SIGCONT'))
  }
  const pids = () => placesOf(lines)
  const killed = () =>
    lines.flatMap(({ event, worker }) => (event.startsWith('worker does not answer') ? [worker] : []))
  const isServed = async () => {
    for (let n = 0; n < 4; n += 1) assert.equal(await get(port, '/health'), '200')
  }
  const leads = async () => {
    const answer = await fetch(`http://127.0.0.1:${metricsPort}/metrics`).catch(() => null)
    return /^touchstone_index_leader 1$/m.test((await answer?.text()) ?? '')
  }

  it('are killed and replaced, and the next one leads the index', async () => {
    await until(leads)
    const [victim = 0, other] = pids()
    process.kill(victim, 'SIGSTOP')
    await until(() => pids()[0] !== victim)
    assert.deepEqual(killed(), [victim])
    assert.equal(pids()[1], other)
    assert.throws(() => process.kill(victim, 0), { code: 'ESRCH' })
    await isServed()
    await until(leads)
  })

  it('are killed and replaced also while they start', async () => {
    const [former = 0, before] = [pids()[0], killed().length]
    isNextStopped = true
    pingLimits.mostAtStart = pingLimits.mostUnanswered // of the worker that is stopped; its start has read it when `remember` runs
    process.kill(former, 'SIGKILL')
    await until(() => killed().length === before + 1)
    await until(() => pids()[0] !== former)
    await isServed()
  })

  it('are not killed while they read the program, though they have answered before', async () => {
    const [former = 0, before] = [pids()[0], killed()]
    isNextPaused = true
    process.kill(former, 'SIGKILL')
    await until(() => pids()[0] !== former)
    assert.equal(await paused, true)
    await isServed()
    assert.deepEqual(killed(), before)
  })

  it('let the watchdog of systemd wait while none answers', { skip: noServiceManager }, async () => {
    await using manager = await startServiceManager()
    const answers: boolean[] = []
    const notify = createNotifier({ socket: manager.socket, watchdogMs: 1_000 }, log)
    await notify.ready(() => {
      answers.push(workers.isAnswering())
      return workers.isAnswering()
    })
    await until(() => answers.includes(true))
    const former = pids()
    for (const pid of former) process.kill(pid, 'SIGSTOP')
    await until(() => answers.includes(false))
    await until(() => former.every((pid) => !pids().includes(pid)))
    await until(() => answers.at(-1) === true)
    await notify.stopping()
    const reports = () => manager.reports().filter((report) => report === 'WATCHDOG=1').length
    await until(() => reports() === answers.filter(Boolean).length)
    await isServed()
  })

  it('are not those of a primary that stood still itself', async () => {
    const [now, before] = [pids(), killed()]
    const standing = pingLimits.pingEveryMs * pingLimits.mostUnanswered
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, standing)
    await until(() => workers.isAnswering())
    await isServed()
    assert.deepEqual([pids(), killed()], [now, before])
  })
})
