/** `touchstone serve` with several workers as a child process, and a load on it that counts unanswered requests. */
import { Agent, request } from 'node:http'
import { sleep } from '../../../src/lib/async/sleep.ts'
import { touchstone, type Running } from './cli.ts'
import { eventually } from '../wait.ts'

type LogLine = Readonly<{ event: string; port?: number; place?: number; worker?: number; part?: string }>

export type Workers = Running & {
  readonly lines: () => readonly LogLine[]
  /** Returns the process that serves at each place now. */
  readonly pids: () => readonly number[]
  readonly portOf: (event: string) => number
}

/** Starts the workers and waits until all serve. Throws the output of a process that ends before. */
export async function startWorkers(count: number, env: Readonly<Record<string, string>>): Promise<Workers> {
  const running = touchstone(['serve', '--workers', String(count)], env)
  const lines = () =>
    running
      .said()
      .split('\n')
      .slice(0, -1)
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line) as LogLine)
  const pids = () => placesOf(lines())
  const portOf = (event: string) => lines().find((line) => line.event === event)?.port ?? 0
  const isEnded = () => running.child.exitCode !== null || running.child.signalCode !== null
  await eventually(() => isEnded() || pids().length === count)
  if (pids().length < count) throw new Error(`the workers did not start: ${running.said()}`)
  return { ...running, lines, pids, portOf }
}

/** Returns the process that serves at each place now, by the log of the primary. */
export function placesOf(lines: readonly Pick<LogLine, 'event' | 'place' | 'worker'>[]): number[] {
  const places: number[] = []
  for (const { event, place, worker } of lines)
    if (event === 'worker serves' && place !== undefined && worker !== undefined) places[place] = worker
  return places
}

type LoadOptions = {
  readonly port: number
  /** Returns the path of a request by its number. */
  readonly pathOf: (n: number) => string
  readonly clients?: number
  /** A load that takes the whole processor would slow down what happens beside it. */
  readonly pauseMs?: number
}

/** Sends requests over kept-alive connections until no process listens, or `stop` is called. Each client pauses after an answer. */
export function startLoad({ port, pathOf, clients = 8, pauseMs = 20 }: LoadOptions) {
  const agent = new Agent({ keepAlive: true, maxSockets: clients })
  const failures: string[] = []
  let [asked, answered, isOver] = [0, 0, false]
  const began: number[] = []
  const tookMs: number[] = []
  const asking = Array.from({ length: clients }, async (_, client) => {
    while (!isOver) {
      began[client] = performance.now()
      const outcome = await get(port, pathOf((asked += 1)), agent)
      tookMs[client] = performance.now() - began[client]
      if (outcome === 'ECONNREFUSED') return
      if (outcome === '200') answered += 1
      else failures.push(outcome)
      await sleep(pauseMs)
    }
  })
  return {
    failures,
    answered: () => answered,
    /** Returns whether each client had its last answer within half a second, and has waited no longer for the next. */
    isBrisk: () => tookMs.every((ms) => ms < 500) && began.every((at) => performance.now() - at < 500),
    /** Resolves when every client has its last answer. */
    stop: async () => {
      isOver = true
      await Promise.all(asking)
      agent.destroy()
    },
    ended: () => Promise.all(asking).then(() => agent.destroy()),
  }
}

/** Returns the status, or the code of the failure. */
export function get(port: number, path: string, agent?: Agent): Promise<string> {
  return new Promise((resolve) => {
    const outgoing = request({ port, host: '127.0.0.1', path, agent: agent ?? false, timeout: 240_000 }, (response) => {
      response.resume()
      response.on('end', () => resolve(String(response.statusCode)))
      response.on('error', () => resolve('cut'))
    })
    outgoing.on('timeout', () => outgoing.destroy(new Error('no answer')))
    outgoing.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message))
    outgoing.end()
  })
}
