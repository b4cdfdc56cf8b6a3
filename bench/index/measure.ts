/** One indexer from an empty table to the head of the chain, or at the head: what it took. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Sql } from '../../service/src/db/database.ts'
import { costOf, cpuSecondsOf } from '../lib/cost.ts'
import type { BenchChain } from './chain.ts'
import type { CountingProxy } from './proxy.ts'
import type { Running } from '../lib/program.ts'

const longestMs = 240_000

/** `table` has a row for each event, with `block_number`, `log_index`, `token_id` and `kind`. */
export type Indexer = { readonly running: Running; readonly sql: Sql; readonly table: string }

/** `rate` is in events a second, from the first request to the chain until the last row. So it leaves out the start of the program. */
export type Backfill = {
  readonly rate: number
  readonly cpuSeconds: number
  /** Processor time of PostgreSQL in the connections of the indexer. */
  readonly databaseSeconds: number
  readonly peakMegabytes: number
  readonly calls: number
  readonly methods: Record<string, number>
  /** Digest of block, log, token and kind of all rows: the same for all indexers. */
  readonly digest: string
}

/** Measures an indexer that was just started. It throws when there is not a row for each event. */
export async function measureBackfill(indexer: Indexer, chain: BenchChain, proxy: CountingProxy): Promise<Backfill> {
  await proxy.take() // what the one before still asked for; this one has hardly begun
  const { events } = chain.head()
  await reachHead(indexer, chain)
  const ended = performance.timeOrigin + performance.now()
  const { cpuSeconds, peakMegabytes } = costOf(indexer.running.pid)
  const databaseSeconds = cpuSecondsOf(await backendsOf(indexer))
  const { calls, firstAt, methods } = await proxy.take()
  const { sql, table } = indexer
  const [rows] = await sql.query<{ count: bigint; digest: string }>(`select count(*) as count,
    md5(string_agg(concat_ws(' ', block_number, log_index, token_id, kind), ',' order by block_number, log_index)) as digest
    from ${table}`)
  if (Number(rows?.count) !== events) throw new Error(`${table} has ${rows?.count} rows for ${events} events.`)
  const rate = events / ((ended - firstAt) / 1000)
  return { rate, cpuSeconds, databaseSeconds, peakMegabytes, calls, methods, digest: rows?.digest ?? '' }
}

/** Returns the processes of PostgreSQL that serve the indexer: all of its database but those that asked for its progress. */
async function backendsOf({ sql }: Indexer): Promise<number[]> {
  const rows = await sql.query<{ pid: number }>(`select pid from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid() and query not like 'select max(block_number)%'`)
  return rows.map(({ pid }) => pid)
}

/** Waits until the table of an indexer that was just started has rows of the last block. */
export async function reachHead({ running, sql, table }: Indexer, chain: BenchChain): Promise<void> {
  const { number } = chain.head()
  const until = performance.now() + longestMs
  let alive = true
  void running.ended.then(() => (alive = false))
  // The table does not exist at first. Its primary key begins with the block, so asking costs next to nothing.
  const reached = () =>
    sql.query<{ at: number | bigint | null }>(`select max(block_number) as at from ${table}`).then(
      ([row]) => Number(row?.at ?? -1) >= number,
      () => false,
    )
  while (!(await reached())) {
    if (!alive || performance.now() > until)
      throw new Error(`${table} did not reach the head.\n${running.said().slice(-2_000)}`)
    await delay(20)
  }
}

/** Milliseconds from the order to mine a block until its row can be read, for each of `blocks` blocks. The indexer is at the head. */
export async function measureHead({ sql, table }: Indexer, chain: BenchChain, blocks: number): Promise<number[]> {
  const times: number[] = []
  for (let made = 0; made < blocks; made += 1) {
    await delay(20 + Math.random() * 200) // out of step with whatever polls
    const ordered = await chain.mineOneEvent()
    const { number } = chain.head()
    const found = () => sql.query(`select 1 from ${table} where block_number = $1`, [number])
    while ((await found()).length === 0) {
      if (performance.now() - ordered > 20_000) throw new Error(`${table} never showed block ${number}.`)
      await delay(1)
    }
    times.push(performance.now() - ordered)
  }
  return times
}
