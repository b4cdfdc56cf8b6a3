/**
 * The primary and the workers of `serve --workers`. The primary serves nothing itself: it starts processes that share the ports of the
 * hosts, replaces one that dies or hangs, and on SIGHUP replaces them one by one without a failed request.
 */
import cluster, { type Worker } from 'node:cluster'
import { withDeadline } from '../../lib/async/deadline.ts'
import { sleep } from '../../lib/async/sleep.ts'
import { reasonOf } from '../../lib/errors.ts'
import type { Log } from '../../lib/log.ts'

const shortestBackoffMs = 1_000
const longestBackoffMs = 30_000
/** A worker that served this long is restarted without backoff. */
const provenMs = 60_000
/** A worker ends within five seconds; one that hangs is killed after this time. */
const killAfterMs = 10_000

/**
 * A worker that leaves this many pings in a row unanswered hangs: half a minute. No collection of garbage and no work of a request takes as
 * long, and systemd waits a minute for the primary. Pings are counted, not time: a primary that stands still, as in a machine that sleeps,
 * sends none. A worker that starts has five minutes for an answer, because it reads the program meanwhile.
 */
export const usualPingLimits = { pingEveryMs: 5_000, mostUnanswered: 6, mostAtStart: 60 }

type WorkersOptions = {
  readonly count: number
  /** Returns the additions to the primary's environment for the worker at a place, from 0. */
  readonly envOf: (place: number) => Readonly<Record<string, string>>
  readonly log: Log
  readonly pingLimits?: typeof usualPingLimits
}

/** Starts the workers one by one, so that the first migrates the database. Throws the sentence of a worker that cannot start. */
export async function startWorkers({ count, envOf, log, pingLimits = usualPingLimits }: WorkersOptions) {
  const pings = sendPings(pingLimits, log)
  const places: Worker[] = []
  const stopping = new AbortController()
  let turn: Promise<void> = Promise.resolve()
  let next: Promise<void> | undefined

  /** Resolves when the new worker serves and its predecessor has ended. */
  async function start(place: number, failures = 0): Promise<void> {
    const worker = cluster.fork(envOf(place))
    worker.on('error', (error) => log.warn('worker out of reach', { place, reason: reasonOf(error) }))
    pings.watch(worker)
    await started(worker)
    pings.serves(worker)
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

  /** Starts a worker anew after a backoff that doubles with every failure. */
  async function replace(place: number, failures: number): Promise<void> {
    const waitMs = Math.min(longestBackoffMs, shortestBackoffMs * 2 ** Math.min(failures, 10))
    await sleep(waitMs, { signal: stopping.signal })
    if (stopping.signal.aborted || places[place]?.isDead() === false) return
    await start(place, failures + 1).catch((error: Error) => {
      if (stopping.signal.aborted) return
      log.error('worker does not start', { place, reason: error.message })
      void replace(place, failures + 1)
    })
  }

  /** Replaces the workers one by one; each serves before its predecessor ends. One that cannot start leaves its predecessor in place. */
  async function restartAll(): Promise<void> {
    for (let place = 0; place < count; place += 1) {
      if (stopping.signal.aborted) return
      await start(place).catch((error: Error) => {
        if (!stopping.signal.aborted) log.error('worker not replaced', { place, reason: error.message })
      })
    }
  }

  /** Lets all workers finish accepted requests and ends them. */
  async function stop(): Promise<void> {
    stopping.abort()
    const all = Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined)
    const paused = Promise.all(all.map((worker) => answered(worker, 'stop accepting', 'accepts no more')))
    await withDeadline(paused, 1_000, { onTimeout: () => undefined, ref: false })
    await Promise.all(all.map(end))
    pings.stop()
  }

  try {
    for (let place = 0; place < count; place += 1) await start(place)
  } catch (error) {
    await stop()
    throw error
  }
  /** Replaces every worker. Calls during a replacement become one more. */
  function restart(): Promise<void> {
    next ??= turn = turn.then(() => {
      next = undefined
      return restartAll()
    })
    return next
  }
  return { restart, stop, isAnswering: pings.isAnswering }
}

/** Sends pings to the workers, and kills one that hangs. It is replaced as one that died, or does not start. */
function sendPings(pingLimits: typeof usualPingLimits, log: Log) {
  type Watched = { unanswered: number; most: number; isServing: boolean }
  const watched = new Map<Worker, Watched>()

  function sendRound(): void {
    for (const [worker, state] of watched) {
      if (!worker.isConnected()) watched.delete(worker)
      else if (state.unanswered >= state.most) {
        log.error('worker does not answer and is killed', { worker: worker.process.pid, pings: state.unanswered })
        watched.delete(worker)
        worker.process.kill('SIGKILL')
      } else {
        state.unanswered += 1
        send(worker, 'ping')
      }
    }
  }

  // An answer that has arrived is read before the immediate runs: then the primary was late, not the worker.
  const timer = setInterval(() => setImmediate(sendRound), pingLimits.pingEveryMs).unref()
  return {
    watch(worker: Worker): void {
      const state = { unanswered: 0, most: pingLimits.mostAtStart, isServing: false }
      watched.set(worker, state)
      worker.on('message', () => Object.assign(state, { unanswered: 0 }))
    },
    serves(worker: Worker): void {
      const state = watched.get(worker)
      if (state !== undefined) Object.assign(state, { most: pingLimits.mostUnanswered, isServing: true })
    },
    /** Returns whether at least one worker answers: at most its last ping is unanswered. */
    isAnswering: (): boolean => [...watched.values()].some((state) => state.isServing && state.unanswered <= 1),
    stop: (): void => clearInterval(timer),
  }
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
    send(worker, message)
  })
}

async function end(worker: Worker): Promise<void> {
  if (worker.isDead()) return
  const ended = new Promise((resolve) => worker.once('exit', resolve))
  send(worker, 'stop')
  const kill = setTimeout(() => worker.process.kill('SIGKILL'), killAfterMs)
  await ended
  clearTimeout(kill)
}

/** Sends a message to a worker, unless its channel is closed because it is ending. */
function send(worker: Worker, message: ToWorker): void {
  if (worker.isConnected()) worker.send(message, () => {})
}

/** Messages of the primary. All workers stop accepting before the first one drains, so that no client meets a half-closed port. */
type ToWorker = 'ping' | 'stop accepting' | 'stop'
/** Messages of a worker. `failed` is one sentence why it cannot start. */
type FromWorker = 'alive' | 'started' | 'accepts no more' | { readonly failed: string }

/**
 * Connects a worker to its primary. Signals are ignored: a terminal and systemd send them to every process, but only the primary may end
 * the workers in order.
 */
export function connectToPrimary() {
  const stopped = Promise.withResolvers<void>()
  let stopAccepting: (() => void) | undefined
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})
  process.on('message', (message: ToWorker) => {
    if (message === 'ping') report('alive')
    else if (message === 'stop accepting') {
      stopAccepting?.()
      report('accepts no more')
    } else if (stopAccepting === undefined) process.exit(0)
    else stopped.resolve()
  })
  return {
    stop: stopped.promise,
    started(service: { readonly stopAccepting: () => void }): void {
      stopAccepting = service.stopAccepting
      report('started')
    },
  }
}

/** Ends this worker, which cannot start, and reports the reason to the primary. */
export function failStart(sentence: string): Promise<never> {
  return new Promise(() => process.send?.({ failed: sentence } satisfies FromWorker, () => process.exit(1)))
}

function report(message: Exclude<FromWorker, object>): void {
  process.send?.(message)
}
