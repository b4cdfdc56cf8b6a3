/**
 * `npm run bench:limits`: what it costs that processes share their limits. The cached keyless read with budgets counted in the process, on
 * Redis and on PostgreSQL, in one interleaved run, as ratios to the first: of requests a second, and of requests for each second of the
 * service's own CPU time, which other work on the machine disturbs less. 1,000 clients on 64 connections; and one connection, for the wait.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { bounded } from '../lib/bounded.ts'
import { costOf } from '../lib/cost.ts'
import { applyLoad, type LoadResult } from '../lib/load.ts'
import { createOwnDatabase } from '../lib/own-database.ts'
import { whole } from '../lib/print.ts'
import { median, startServer } from '../lib/processes.ts'
import { startWorld } from '../lib/world.ts'
import { readOptions } from '../../scripts/options.ts'

readOptions({})

const clients = 1_000
const rounds = 5
const script = fileURLToPath(new URL('server.ts', import.meta.url))
const redisUrl = process.env['TEST_REDIS_URL'] ?? 'redis://127.0.0.1:6379'

await bounded(240_000, async (made) => {
  const world = made.adopt(await startWorld(clients), (it) => it.close())
  const database = made.adopt(await createOwnDatabase(), (it) => it.drop())
  const folder = made.adopt(await mkdtemp(join(tmpdir(), 'touchstone-bench-')), (path) =>
    rm(path, { recursive: true, force: true }),
  )
  const shared = { TRUSTED_PROXIES: '127.0.0.1', DATABASE_URL: database.url, REDIS_URL: redisUrl }
  const stores = ['process', 'redis', 'postgres'] as const
  const servers = await Promise.all(
    stores.map(async (store) => {
      const settings = JSON.stringify({ ...shared, RATE_LIMIT_STORE: store })
      const args = ['touchstone', world.url, world.contract, 'events', join(folder, store), settings]
      return made.adopt(await startServer(script, args), (it) => it.stop())
    }),
  )
  const paths = Array.from({ length: clients }, (_, index) => `/api/asset/${index + 1}`)
  const load = (port: number, connections: number, seconds: number) =>
    applyLoad({ port, paths, connections, seconds, forwarded: true })
  for (const { port } of servers) await load(port, 64, 2)
  const busy = stores.map((): (LoadResult & { ofCpu: number })[] => [])
  const quiet = stores.map((): LoadResult[] => [])
  for (let round = 0; round < rounds; round += 1) {
    for (const [index, { port, pid }] of servers.entries()) {
      const before = costOf(pid).cpuSeconds
      const result = await load(port, 64, 2)
      const ofCpu = result.requests / (costOf(pid).cpuSeconds - before)
      if (Object.keys(result.statuses).join() !== '200') throw new Error(`statuses ${JSON.stringify(result.statuses)}`)
      busy[index]?.push({ ...result, ofCpu })
      quiet[index]?.push(await load(port, 1, 1))
    }
  }
  for (const [index, store] of stores.entries()) {
    const of = busy[index] ?? []
    const ratioOf = (name: 'rate' | 'ofCpu') =>
      `×${median(of.map((result, round) => result[name] / (busy[0]?.[round]?.[name] ?? Number.NaN))).toFixed(2)}`
    const wait = median((quiet[index] ?? []).map(({ p50 }, round) => p50 - (quiet[0]?.[round]?.p50 ?? Number.NaN)))
    console.log(
      `limits on ${store.padEnd(9)} ${whole(median(of.map(({ rate }) => rate)))}/s   ratio ${ratioOf('rate')}   by CPU ${ratioOf('ofCpu')}   ` +
        `p99 ${median(of.map(({ p99 }) => p99)).toFixed(1)} ms   one client alone waits ${wait.toFixed(2)} ms longer`,
    )
  }
})
