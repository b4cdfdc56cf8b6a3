/**
 * Measures a tap over HTTP: GET /api/verify beside a bare server. It runs first with the cryptography alone (ledger and chain answer at
 * once), then with the real ledger on PostgreSQL, every tap a new one. There the build before taps were accepted in groups is beside it.
 */
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { batchToJson, type BatchRecord } from '../../service/src/tap/keys/batch.ts'
import { commitBefore, extractVersion } from '../../service/test/support/processes/previous-version.ts'
import { cpuSecondsOf } from '../lib/cost.ts'
import { applyLoad, type LoadResult } from '../lib/load.ts'
import { createOwnDatabase } from '../lib/own-database.ts'
import { median, startServer } from '../lib/processes.ts'

const script = fileURLToPath(new URL('server.ts', import.meta.url))
const rounds = 5
const whole = (value: number) => Math.round(value).toLocaleString('en')

/** `paths` are taps of `batch`, each of them new to the ledger. */
export async function benchTapHttp(batch: BatchRecord, paths: readonly string[]): Promise<void> {
  const json = JSON.stringify(batchToJson(batch))
  const bare = await startServer(script, ['bare'])
  const crypto = await startServer(script, ['crypto', present], json)
  const load = (port: number, some: readonly string[], seconds: number) =>
    applyLoad({ port, paths: some, connections: 64, seconds })
  const few = paths.slice(0, 1_000)
  await load(crypto.port, few, 2)
  const rates: { bare: number[]; crypto: number[] } = { bare: [], crypto: [] }
  const costs: number[] = []
  for (let round = 0; round < rounds; round += 1) {
    rates.bare.push((await load(bare.port, few, 1.5)).rate)
    const before = cpuSecondsOf([crypto.pid])
    const { rate, requests } = await load(crypto.port, few, 1.5)
    rates.crypto.push(rate)
    costs.push((1e6 * (cpuSecondsOf([crypto.pid]) - before)) / requests)
  }
  const ratio = median(rates.crypto.map((rate, round) => rate / (rates.bare[round] ?? Number.NaN)))
  console.log(
    `over HTTP, crypto only       bare ${whole(median(rates.bare))}/s   ours ${whole(median(rates.crypto))}/s   ratio ×${ratio.toFixed(2)}   CPU ${whole(median(costs))} µs a tap`,
  )
  await Promise.all([bare.stop(), crypto.stop()])
  await using made = new AsyncDisposableStack()
  const builds = [await startLedger(made, 'this build', present, json), await startFormer(made, json)]
  const contenders = builds.filter((build) => build !== null)
  const each = Math.floor(paths.length / (1 + ledgerRounds))
  for (let round = 0; round <= ledgerRounds; round += 1)
    for (const { port, pid, results } of contenders) {
      const before = cpuSecondsOf([pid])
      const result = await load(port, paths.slice(round * each, (round + 1) * each), 3)
      const cpuMicroseconds = (1e6 * (cpuSecondsOf([pid]) - before)) / result.requests
      if (round > 0) results.push({ ...result, cpuMicroseconds }) // the first is to warm up
    }
  for (const { name, results } of contenders) {
    if (results.some(({ requests }) => requests > each)) throw new Error('More taps were presented than are new.')
    const of = (part: 'rate' | 'p50' | 'p99' | 'cpuMicroseconds') => median(results.map((result) => result[part]))
    console.log(
      `PostgreSQL ledger, ${name.padEnd(11)} ${whole(of('rate'))}/s   p50 ${of('p50').toFixed(1)} ms   p99 ${of('p99').toFixed(1)} ms   CPU ${whole(of('cpuMicroseconds'))} µs a tap   ${statusesOf(results)}`,
    )
  }
  const [ours, former] = contenders
  const ratios = former && ours?.results.map(({ rate }, at) => rate / (former.results[at]?.rate ?? Number.NaN))
  if (ratios) console.log(`this build beside the one before  ×${median(ratios).toFixed(1)}`)
}

const ledgerRounds = 3
const present = fileURLToPath(new URL('../../service/src', import.meta.url))

type Contender = { readonly name: string; readonly port: number; readonly pid: number; readonly results: Result[] }
type Result = LoadResult & { readonly cpuMicroseconds: number }

/** Serves taps with the ledger of a build, on a database of its own, and announces each of them. */
async function startLedger(
  made: AsyncDisposableStack,
  name: string,
  sources: string,
  batch: string,
): Promise<Contender> {
  const { url, drop } = await createOwnDatabase()
  made.defer(drop)
  const { port, pid, stop } = await startServer(script, ['ledger', sources, url], batch)
  made.defer(async () => void (await stop()))
  return { name, port, pid, results: [] }
}

/** Serves the build before taps were accepted in groups. Returns `null` where the history is not here. */
async function startFormer(made: AsyncDisposableStack, batch: string): Promise<Contender | null> {
  const found = await commitBefore('service/src/db/migrations/0012-settlements.sql')
  if (!('commit' in found)) {
    console.log(`the build before is not compared: ${found.reason}`)
    return null
  }
  const { cli, remove } = await extractVersion(found.commit)
  made.defer(remove)
  return startLedger(made, 'the one before', dirname(cli), batch)
}

function statusesOf(results: readonly LoadResult[]): string {
  const all: Record<string, number> = {}
  for (const { statuses } of results)
    for (const [status, count] of Object.entries(statuses)) all[status] = (all[status] ?? 0) + count
  return JSON.stringify(all)
}
