/**
 * The primary of `serve --workers`: starts as many processes as it is told, which share the ports of the hosts, and keeps them there.
 * It serves nothing itself. A worker that dies is replaced; SIGHUP replaces one after another without a failed request.
 */
import cluster, { type Worker } from 'node:cluster'
import { setTimeout as delay } from 'node:timers/promises'
import { reasonOf } from '../errors.ts'
import type { Log } from '../log.ts'
import type { FromWorker, ToWorker } from './worker.ts'

export type WorkersOptions = {
  readonly count: number
  /** What the environment of a worker has besides that of the primary; the first one is 0. */
  readonly envOf: (place: number) => Readonly<Record<string, string>>
  readonly log: Log
}

export type Workers = {
  /** Replaces one after another: the next one serves before the former ends. What cannot start leaves the former in its place. */
  readonly restart: () => Promise<void>
  /** Lets all of them answer what was accepted, and end. */
  readonly stop: () => Promise<void>
}

const shortestBackoffMs = 1_000
const longestBackoffMs = 30_000
/** Whoever served so long is restarted without delay the next time. */
const provenMs = 60_000
/** A worker ends within five seconds; one that hangs is killed after this time. */
const mostPatienceMs = 10_000

/** One after another, so that the first one migrates the database. It throws the sentence of a worker that cannot start. */
export async function startWorkers({ count, envOf, log }: WorkersOptions): Promise<Workers> {
  const places: Worker[] = []
  const stopping = new AbortController()
  let turn: Promise<void> = Promise.resolve()

  /** Resolves when the new one serves, and the one before has ended. */
  async function start(place: number, failures = 0): Promise<void> {
    const worker = cluster.fork(envOf(place))
    worker.on('error', (error) => log.warn('worker out of reach', { place, reason: reasonOf(error) }))
    await started(worker)
    const [former, began] = [places[place], performance.now()]
    places[place] = worker
    log.info('worker serves', { place, worker: worker.process.pid })
    worker.once('exit', (exitCode, signal) => {
      if (places[place] !== worker || stopping.signal.aborted) return
      log.error('worker ended', { place, worker: worker.process.pid, exitCode, signal })
      void replace(place, performance.now() - began > provenMs ? 0 : failures)
    })
    if (former !== undefined) await end(former)
  }

  /** After a time that doubles with every failure. */
  async function replace(place: number, failures: number): Promise<void> {
    const waitMs = Math.min(longestBackoffMs, shortestBackoffMs * 2 ** Math.min(failures, 10))
    await delay(waitMs, undefined, { signal: stopping.signal }).catch(() => {})
    if (stopping.signal.aborted || places[place]?.isDead() === false) return
    await start(place, failures + 1).catch((error: Error) => {
      if (stopping.signal.aborted) return
      log.error('worker does not start', { place, reason: error.message })
      void replace(place, failures + 1)
    })
  }

  async function restartAll(): Promise<void> {
    for (let place = 0; place < count; place += 1) {
      if (stopping.signal.aborted) return
      await start(place).catch((error: Error) => {
        if (!stopping.signal.aborted) log.error('worker not replaced', { place, reason: error.message })
      })
    }
  }

  async function stop(): Promise<void> {
    stopping.abort()
    const all = Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined)
    const told = Promise.all(all.map((worker) => answered(worker, 'stop accepting', 'accepts no more')))
    await Promise.race([told, delay(1_000, undefined, { ref: false })])
    await Promise.all(all.map(end))
  }

  try {
    for (let place = 0; place < count; place += 1) await start(place)
  } catch (error) {
    await stop()
    throw error
  }
  return { restart: () => (turn = turn.then(restartAll)), stop }
}

function started(worker: Worker): Promise<void> {
  return new Promise((resolve, reject) => {
    worker.on('message', (message: FromWorker) => {
      if (message === 'started') resolve()
      else if (typeof message === 'object') reject(new Error(message.failed))
    })
    worker.once('exit', (code, signal) => reject(new Error(`A worker ended at its start (${signal ?? code}).`)))
  })
}

/** Resolves with the answer, or with the end of the worker. */
function answered(worker: Worker, message: ToWorker, answer: FromWorker): Promise<void> {
  return new Promise((resolve) => {
    worker.on('message', (found: FromWorker) => found === answer && resolve())
    worker.once('exit', () => resolve())
    say(worker, message)
  })
}

async function end(worker: Worker): Promise<void> {
  if (worker.isDead()) return
  const ended = new Promise((resolve) => worker.once('exit', resolve))
  say(worker, 'stop')
  const kill = setTimeout(() => worker.process.kill('SIGKILL'), mostPatienceMs)
  await ended
  clearTimeout(kill)
}

/** One that is ending may be out of reach already. */
function say(worker: Worker, message: ToWorker): void {
  if (worker.isConnected()) worker.send(message, () => {})
}
