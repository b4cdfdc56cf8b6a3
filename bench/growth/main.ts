/**
 * `npm run bench:growth`: does a request cost the same when the catalogue has grown (spec §8)? The real service over a real database of a
 * thousand products and one of a million, both at the same time, asked in turn; and what each product takes on disk. The database is a
 * PostgreSQL of its own with a quarter of the machine's memory, or that of `TEST_DATABASE_URL`.
 * `--sizes 1000,1000000`, the first is what the others are compared with; `--minutes` bounds the whole run, default 30; `--only` names
 * rows by parts of their names, with commas between them; `--history 20` gives only one in twenty of more than a million products its history and its taps.
 * `--seconds` is the time of a row, default 6. A row that looks slower with the catalogue is measured up to five times as long.
 * `--citus` has the same sizes on a Citus cluster of a coordinator and two workers besides, in the same rounds.
 */
import { totalmem } from 'node:os'
import { readOptions } from '../../scripts/options.ts'
import { bounded } from '../lib/bounded.ts'
import { warnWhenBusy } from '../lib/cost.ts'
import { whole } from '../lib/print.ts'
import { citusLacks, type CitusCluster, startCitusCluster } from '../../service/test/support/database/citus-cluster.ts'
import { startPostgres } from '../../service/test/support/database/postgres-cluster.ts'
import { measureRow } from './rounds.ts'
import { rows } from './rows.ts'
import { nodeSizes, tableSizes } from './sizes.ts'
import { openGrowthWorld, type GrowthWorld } from './world.ts'

const { values: options } = readOptions({
  options: {
    sizes: { type: 'string', default: '1000,1000000' },
    minutes: { type: 'string', default: '30' },
    seconds: { type: 'string', default: '6' },
    only: { type: 'string', default: '' },
    history: { type: 'string', default: '1' },
    citus: { type: 'boolean', default: false },
  },
})
const sizes = options.sizes.split(',').map(Number)
const only = options.only.split(',')
const limitMs = Number(options.minutes) * 60_000
const isFirst = (world: GrowthWorld | undefined) => world?.products === sizes[0]
const nameOf = ({ products, onCluster }: GrowthWorld) => `${onCluster ? 'Citus ' : ''}${whole(products)}`
const began = performance.now()
const say = (what: string) => console.log(`${((performance.now() - began) / 1000).toFixed(0).padStart(5)} s  ${what}`)

await bounded(limitMs, async (made) => {
  await warnWhenBusy()
  const server = process.env['TEST_DATABASE_URL'] ?? made.adopt(await startServer(), ({ end }) => end()).url
  const cluster = options.citus ? [made.adopt(await startCluster(), ({ stop }) => stop())] : []
  const worlds: GrowthWorld[] = []
  for (const on of [server, ...cluster])
    for (const products of sizes) {
      const world = await openGrowthWorld(products, {
        made,
        loadMs: limitMs,
        every: products > 1_000_000 ? Number(options.history) : 1,
        say,
        on,
      })
      worlds.push(world)
      const { rows: rowSeconds, indexes } = world.loadSeconds
      say(`${whole(products)} products loaded: rows ${rowSeconds.toFixed(1)} s, indexes ${indexes.toFixed(1)} s`)
      await sayMemory(world)
    }
  for (const world of worlds) await (world.onCluster ? sayNodes(world) : saySizes(world))
  const columns = (cells: readonly string[]) => cells.map((cell) => cell.padStart(14)).join('')
  console.log(
    `\n${''.padEnd(38)}${columns(worlds.flatMap((world) => [nameOf(world), 'p99', 'a second', ...(isFirst(world) ? [] : ['median', 'mean'])]))}`,
  )
  for (const row of rows.filter(({ name }) => only.some((part) => name.includes(part)))) {
    const measured = await measureRow(row, worlds, Number(options.seconds))
    const cells = measured.flatMap(({ p50, p99, mean, longer, slower }, at) => [
      `${whole(p50 * 1_000)} µs`,
      `${whole(p99 * 1_000)} µs`,
      whole(1_000 / mean),
      ...(isFirst(worlds[at]) ? [] : [`×${longer.toFixed(2)}`, `×${slower.toFixed(2)}`]),
    ])
    console.log(`${row.name.padEnd(38)}${columns(cells)}`)
  }
})

/** A server with the memory that docs/capacity.md advises for so many products. */
function startServer() {
  return startPostgres({ shared_buffers: `${Math.round(totalmem() / 4 / 2 ** 20)}MB` })
}

function startCluster(): Promise<CitusCluster> {
  const lacks = citusLacks()
  if (lacks !== null) throw new Error(`There is no Citus to measure: ${lacks}.`)
  return startCitusCluster()
}

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

async function sayNodes({ database: { sql }, products }: GrowthWorld): Promise<void> {
  console.log(`\nbytes for each of ${whole(products)} products, on the nodes of the cluster:`)
  for (const { node, bytes, tables } of await nodeSizes(sql, products)) {
    const parts = tables.map((table) => `${table.name} ${whole(table.bytes)}`).join(', ')
    console.log(`${node.padEnd(16)}${whole(bytes).padStart(7)} = ${parts}, and the rest`)
  }
}
