/**
 * `npm run bench:growth`: does a request cost the same when the catalogue has grown (spec §8)? The real service over a real database of a
 * thousand products and one of a million, both at the same time, asked in turn; and what each product takes on disk.
 * `--sizes 1000,1000000`, the first is what the others are compared with; `--minutes` bounds the whole run, default 20; `--only` names
 * rows by parts of their names, with commas between them; `--history 20` gives only one in twenty of more than a million products its history and its taps.
 */
import { parseArgs } from 'node:util'
import { bounded } from '../lib/bounded.ts'
import { warnWhenBusy } from '../lib/cost.ts'
import { measureRow } from './rounds.ts'
import { rows } from './rows.ts'
import { tableSizes } from './sizes.ts'
import { openGrowthWorld, type GrowthWorld } from './world.ts'

const { values: options } = parseArgs({
  options: {
    sizes: { type: 'string', default: '1000,1000000' },
    minutes: { type: 'string', default: '20' },
    only: { type: 'string', default: '' },
    history: { type: 'string', default: '1' },
  },
})
const sizes = options.sizes.split(',').map(Number)
const only = options.only.split(',')
const limitMs = Number(options.minutes) * 60_000
const whole = (value: number) => Math.round(value).toLocaleString('en')
const began = performance.now()
const say = (what: string) => console.log(`${((performance.now() - began) / 1000).toFixed(0).padStart(5)} s  ${what}`)

await bounded(limitMs, async (made) => {
  await warnWhenBusy()
  const worlds: GrowthWorld[] = []
  for (const products of sizes) {
    const world = await openGrowthWorld(products, {
      made,
      loadMs: limitMs,
      every: products > 1_000_000 ? Number(options.history) : 1,
      say,
    })
    worlds.push(world)
    const { rows: rowSeconds, indexes } = world.loadSeconds
    say(`${whole(products)} products loaded: rows ${rowSeconds.toFixed(1)} s, indexes ${indexes.toFixed(1)} s`)
    await sayMemory(world)
  }
  for (const world of worlds) await saySizes(world)
  const columns = (cells: readonly string[]) => cells.map((cell) => cell.padStart(11)).join('')
  console.log(
    `\n${''.padEnd(38)}${columns(sizes.flatMap((size, at) => [whole(size), 'p99', 'a second', ...(at === 0 ? [] : ['median', 'mean'])]))}`,
  )
  for (const row of rows.filter(({ name }) => only.some((part) => name.includes(part)))) {
    const measured = await measureRow(row, worlds)
    const cells = measured.flatMap(({ p50, p99, mean, longer, slower }, at) => [
      `${whole(p50 * 1_000)} µs`,
      `${whole(p99 * 1_000)} µs`,
      whole(1_000 / mean),
      ...(at === 0 ? [] : [`×${longer.toFixed(2)}`, `×${slower.toFixed(2)}`]),
    ])
    console.log(`${row.name.padEnd(38)}${columns(cells)}`)
  }
})

async function sayMemory({ database: { sql } }: GrowthWorld): Promise<void> {
  const [row] = await sql.query<{ buffers: string; bytes: bigint }>(
    `select current_setting('shared_buffers') as buffers, pg_database_size(current_database()) as bytes`,
  )
  say(
    `the database has ${whole(Number(row?.bytes) / 1e6)} MB; PostgreSQL keeps ${row?.buffers} of it in its own memory`,
  )
}

async function saySizes({ database: { sql }, products }: GrowthWorld): Promise<void> {
  const tables = await tableSizes(sql, products)
  let total = 0
  console.log(`\nbytes for each of ${whole(products)} products:`)
  for (const { name, rows: count, table, indexes } of tables) {
    const bytes = indexes.reduce((sum, index) => sum + index.bytes, table)
    total += bytes
    const parts = indexes.map((index) => `${index.name} ${whole(index.bytes)}`).join(', ')
    console.log(
      `${name.padEnd(12)}${count.toFixed(2).padStart(6)} rows${whole(bytes).padStart(7)} = ${whole(table)} + ${parts}`,
    )
  }
  console.log(`${'all'.padEnd(12)}${whole(total).padStart(18)}`)
}
