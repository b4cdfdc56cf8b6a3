/**
 * `npm run bench:graphql` measures GraphQL over a million products on PostgreSQL (spec §4.9, §8). It prints ratios of interleaved rounds:
 * beside a bare `node:http` server that runs the same statements, page 10,000 beside page 1, a million products beside a thousand; and what
 * counting costs. `--products N`, default 1,000,000.
 */
import { fileURLToPath } from 'node:url'
import { readOptions } from '../../scripts/options.ts'
import { migrate } from '../../service/src/db/migrate.ts'
import { bounded } from '../lib/bounded.ts'
import { warnWhenBusy } from '../lib/cost.ts'
import { loadProducts } from './data.ts'
import { counts, pagesBehind, pageSize, productsWithTransfers } from './operations.ts'
import { answerOf, inRounds, type Measured, type Server } from './rounds.ts'
import { createOwnDatabase, type OwnDatabase } from '../lib/own-database.ts'
import { whole } from '../lib/print.ts'
import { startServer } from '../lib/processes.ts'

const { values: options } = readOptions({ options: { products: { type: 'string', default: '1000000' } } })
const many = Number(options.products)
const few = Math.min(1_000, many)
const script = fileURLToPath(new URL('server.ts', import.meta.url))
const per = (a: number, b: number) => `×${(a / b).toFixed(2)}`

await bounded(300_000, async (made) => {
  await warnWhenBusy()
  const [large, small] = [await newDatabase(), await newDatabase()]
  const graphql = await start('graphql', large.url)
  const bare = await start('bare', large.url)
  const graphqlSmall = await start('graphql', small.url)
  await fill(large, many)
  await fill(small, few)

  for (const operation of [await pagesBehind(large.sql, pageSize), productsWithTransfers(many)]) {
    const asked = [
      { server: bare, operation },
      { server: graphql, operation },
    ] as const
    const [peer, ours] = await inRounds(asked, { connections: 16, seconds: 1.5 })
    const label = operation.barePath === '/page' ? `page of ${pageSize}` : operation.name
    console.log(`${label.padEnd(24)} bare ${shown(peer)}`)
    console.log(
      `${''.padEnd(24)} GraphQL ${shown(ours)}   rate ${per(ours.rate, peer.rate)}   CPU ${per(ours.cpu, peer.cpu)}`,
    )
  }

  const depths = [100, 10_000].map((page) => (page - 1) * pageSize).filter((rows) => rows < many)
  for (const rows of depths) {
    const operations = [await pagesBehind(large.sql, 0), await pagesBehind(large.sql, rows)] as const
    const asked = [
      { server: graphql, operation: operations[0] },
      { server: graphql, operation: operations[1] },
    ] as const
    const [first, deep] = await inRounds(asked, { connections: 1, seconds: 1 })
    console.log(
      `${operations[1].name.padEnd(24)} p50 ${deep.p50.toFixed(2)} ms   ${per(deep.p50, first.p50)} of page 1 (wanted: ×2 at most)`,
    )
  }

  const page = await pagesBehind(small.sql, 0)
  const [among, amongFew] = await inRounds(
    [
      { server: graphql, operation: page },
      { server: graphqlSmall, operation: page },
    ] as const,
    { connections: 1, seconds: 1 },
  )
  console.log(
    `${`page 1 of ${whole(many)}`.padEnd(24)} p50 ${among.p50.toFixed(2)} ms   ${per(among.p50, amongFew.p50)} of page 1 of ${whole(few)}`,
  )

  for (const { operation, where } of counts) {
    const [{ p50 }] = await inRounds([{ server: graphql, operation }], { connections: 1, seconds: 1 })
    const { totalCount } = (await answerOf(graphql, operation))['products'] as { totalCount: number | null }
    const [truth] = await large.sql.query<{ n: bigint }>(`select count(*) as n from asset where ${where}`)
    if (totalCount !== null && totalCount !== Number(truth?.n))
      throw new Error(`${operation.name}: ${totalCount} counted, ${truth?.n} there`)
    const said = totalCount === null ? 'none: takes too long' : whole(totalCount)
    console.log(`${operation.name.padEnd(24)} p50 ${p50.toFixed(2)} ms   (${said})`)
  }

  async function newDatabase(): Promise<OwnDatabase> {
    const database = await createOwnDatabase()
    made.defer(database.drop)
    await migrate(database.sql)
    return database
  }

  async function fill({ sql }: OwnDatabase, products: number): Promise<void> {
    const began = performance.now()
    await loadProducts(sql, products)
    console.log(`${whole(products)} products loaded in ${((performance.now() - began) / 1000).toFixed(1)} s`)
  }

  async function start(kind: 'graphql' | 'bare', url: string): Promise<Server> {
    const server = made.adopt(await startServer(script, [kind, url]), (it) => it.stop())
    return { ...server, key: /^key (\S+)$/m.exec(server.said())?.[1] ?? null }
  }
})

function shown({ rate, cpu, p50, p99 }: Measured): string {
  return `${whole(rate)}/s   CPU ${whole(cpu)} µs a request   p50 ${p50.toFixed(1)} ms   p99 ${p99.toFixed(1)} ms`
}
