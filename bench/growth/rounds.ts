/**
 * The rows of `bench:growth`, measured at all sizes at once. One connection to each, one request at a time, in turn. Whatever else the
 * machine does slows all of them alike, and none takes its time from another.
 */
import type { Row } from './rows.ts'
import type { GrowthWorld } from './world.ts'
import { openConnection, type Connection } from './connection.ts'
import { median, percentile } from '../lib/processes.ts'

/** Times in ms. `longer` and `slower` compare median and mean with the first size on the same kind of database. */
export type Measured = {
  readonly p50: number
  readonly p99: number
  readonly mean: number
  readonly longer: number
  readonly slower: number
}

const warmUp = 200

/** One result for each world, in their order, after so many seconds or some times as many. It throws where an answer is not the right one. */
export async function measureRow(row: Row, worlds: readonly GrowthWorld[], seconds: number): Promise<Measured[]> {
  const lanes = await Promise.all(
    worlds.map(async (world) => {
      const asked = await row.ask(world)
      const connection = await openConnection(asked.port)
      const answer = await connection.ask(asked.requests[0] ?? '')
      if (answer.status !== '200' || !answer.text().includes(row.sign) || answer.text().includes('"errors"'))
        throw new Error(`${row.name}: ${answer.text().slice(0, 500)}`)
      return { connection, requests: asked.requests.slice(row.once === true ? 1 : 0), times: [] as number[], next: 0 }
    }),
  )
  for (const lane of lanes) {
    const [count, untilWarm] =
      row.warm === 'all' ? [lane.requests.length, Infinity] : [warmUp, performance.now() + 2_000]
    for (let turn = 0; turn < count && performance.now() < untilWarm; turn += 1) await send(row, lane)
    lane.times = []
  }
  const began = performance.now()
  const mostRequests =
    row.once === true ? Math.min(...lanes.map(({ requests, next }) => requests.length - next)) : 650 * seconds
  let round = 0
  for (let spans = 1; spans <= mostSpans; spans += 1) {
    for (; round < spans * mostRequests && performance.now() < began + spans * seconds * 1_000; round += 1)
      for (const index of lanes.keys()) await send(row, lanes[(index + round) % lanes.length] as Lane)
    if (row.once === true || compared(lanes, worlds).every(({ longer }) => longer < unsure)) break
  }
  for (const { connection } of lanes) connection.close()
  return compared(lanes, worlds)
}

/** A row whose median looks longer by this factor is measured on. A few seconds of an uneven machine mislead. */
const unsure = 1.2
const mostSpans = 5

function compared(lanes: readonly Lane[], worlds: readonly GrowthWorld[]): Measured[] {
  return lanes.map(({ times }, index) => {
    const base = resultOf(
      lanes[worlds.findIndex(({ onCluster }) => onCluster === worlds[index]?.onCluster)]?.times ?? [],
    )
    const result = resultOf(times)
    return { ...result, longer: result.p50 / base.p50, slower: result.mean / base.mean }
  })
}

type Lane = { connection: Connection; requests: readonly string[]; times: number[]; next: number }

async function send(row: Row, lane: Lane): Promise<void> {
  if (row.once === true && lane.next === lane.requests.length) throw new Error(`${row.name}: too few taps were made.`)
  const request = lane.requests[lane.next++ % lane.requests.length] ?? ''
  const began = performance.now()
  const { status } = await lane.connection.ask(request)
  lane.times.push(performance.now() - began)
  if (status !== '200') throw new Error(`${row.name}: status ${status}`)
}

function resultOf(times: readonly number[]): Pick<Measured, 'p50' | 'p99' | 'mean'> {
  const mean = times.reduce((sum, time) => sum + time, 0) / times.length
  return { p50: median(times), p99: percentile(times, 0.99), mean }
}
