/**
 * `npm run bench:failover`: what a failover of PostgreSQL loses. Rows are written one commit each over 16 connections; the primary is killed with
 * all its processes and the standby promoted. Rows whose commit was confirmed and that the standby lacks are lost. Rounds with a synchronous
 * and an asynchronous standby take turns; `--delay-ms` is how long the asynchronous one hangs behind, as over a slow network (0).
 */
import { setTimeout as delay } from 'node:timers/promises'
import { readOptions } from '../../scripts/options.ts'
import { openDatabase } from '../../service/src/db/database.ts'
import { startClusters } from '../../service/test/support/database/postgres-cluster.ts'
import { bounded } from '../lib/bounded.ts'
import { median } from '../lib/processes.ts'

const { values: options } = readOptions({
  options: { rounds: { type: 'string', default: '5' }, 'delay-ms': { type: 'string', default: '0' } },
})
const rounds = Number(options.rounds)
const delayMs = Number(options['delay-ms'])
const writers = 16
const loadMs = 3_000

type Round = { readonly confirmed: number; readonly lost: number; readonly oldestMs: number; readonly backMs: number }

await bounded(rounds * 2 * 120_000, async (made) => {
  const results = new Map<string, Round[]>([
    ['synchronous', []],
    ['asynchronous', []],
  ])
  for (let round = 0; round < rounds; round += 1)
    for (const [kind, all] of results) all.push(await runRound(made, kind === 'synchronous'))
  console.log(
    `${rounds} rounds each, ${writers} connections, the asynchronous standby ${delayMs} ms behind; medians, worst in brackets\n`,
  )
  console.log(line('standby', ['confirmed', 'lost', 'over the last', 'writes again']))
  for (const [kind, all] of results) {
    const spread = (name: keyof Round) => {
      const values = all.map((one) => one[name])
      return `${median(values).toFixed(0)} [${Math.max(...values).toFixed(0)}]${name.endsWith('Ms') ? ' ms' : ''}`
    }
    console.log(line(kind, [spread('confirmed'), spread('lost'), spread('oldestMs'), spread('backMs')]))
  }
  const lost = results.get('synchronous')?.some((one) => one.lost > 0) === true
  if (lost) throw new Error('A synchronous standby lost what was confirmed.')
})

async function runRound(made: AsyncDisposableStack, synchronous: boolean): Promise<Round> {
  const round = new AsyncDisposableStack()
  made.defer(() => round.disposeAsync())
  const clusters = round.adopt(await startClusters({ synchronous, delayMs: synchronous ? 0 : delayMs }), (it) =>
    it.end(),
  )
  const database = round.use(await openDatabase({ url: clusters.url, poolSize: writers }))
  await database.exec('create table written (id bigint primary key)')
  const confirmed = new Map<bigint, number>()
  let next = 0n
  let newest = 0
  let over = false
  const write = async () => {
    while (!over) {
      const id = (next += 1n)
      const isWritten = await database.query('insert into written values ($1)', [id]).then(
        () => true,
        () => false,
      )
      if (isWritten) confirmed.set(id, (newest = performance.now()))
      else await delay(10)
    }
  }
  const writing = Promise.all(Array.from({ length: writers }, write))
  await delay(loadMs)
  await clusters.primary.kill()
  const before = [...confirmed]
  const lastAt = Math.max(...before.map(([, at]) => at))
  await clusters.replica.promote()
  const promotedAt = performance.now()
  while (newest < promotedAt) await delay(5)
  const backMs = newest - promotedAt
  over = true
  await writing
  const rows = await database.query<{ id: bigint }>('select id from written')
  const kept = new Set(rows.map(({ id }) => id))
  const lost = before.filter(([id]) => !kept.has(id))
  await round.disposeAsync()
  return {
    confirmed: before.length,
    lost: lost.length,
    oldestMs: lost.length === 0 ? 0 : lastAt - Math.min(...lost.map(([, at]) => at)),
    backMs,
  }
}

function line(name: string, cells: readonly string[]): string {
  return name.padEnd(16) + cells.map((cell) => cell.padStart(18)).join('')
}
