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
import { whole } from '../lib/print.ts'
import { applyWrk, generator } from '../lib/wrk.ts'
import { createOwnDatabase } from '../lib/own-database.ts'
import { median, startServer } from '../lib/processes.ts'

const script = fileURLToPath(new URL('server.ts', import.meta.url))
const rounds = 5

/** `paths` are taps of `batch`, each of them new to the ledger. */
export async function benchTapHttp(batch: BatchRecord, paths: readonly string[]): Promise<void> {
  const json = JSON.stringify(batchToJson(batch))
  const bare = await startServer(script, ['bare'])
  const crypto = await startServer(script, ['crypto', present], { input: json })
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
  const each = Math.floor(paths.length / (warmUps + ledgerRounds))
  for (let round = 0; round < warmUps + ledgerRounds; round += 1)
    for (const { port, costs: read, results } of contenders) {
      const before = await read()
      const fresh = paths.slice(round * each, (round + 1) * each)
      const result = await applyWrk({ port, paths: fresh, connections: 64, seconds: 2 })
      const after = await read()
      const perTap = (part: keyof Costs) => (1e6 * (after[part] - before[part])) / result.requests
      if (round >= warmUps) results.push({ ...result, ours: perTap('ours'), postgres: perTap('postgres') })
    }
  for (const { name, results } of contenders) {
    if (results.some(({ requests }) => requests > each)) throw new Error('More taps were presented than are new.')
    const of = (part: keyof Result) => median(results.map((result) => result[part]))
    console.log(
      `PostgreSQL ledger, ${name.padEnd(14)} ${whole(of('rate'))}/s   p50 ${of('p50').toFixed(1)} ms   p99 ${of('p99').toFixed(1)} ms   CPU of a tap: ${whole(of('ours'))} µs, and ${whole(of('postgres'))} µs of PostgreSQL`,
    )
  }
  const [ours, former] = contenders
  if (ours === undefined || former === undefined) return
  const ratioOf = (of: (result: Result) => number) =>
    median(ours.results.map((result, at) => of(result) / of(former.results[at] ?? result)))
  console.log(
    `this build beside the one before   taps a second ×${ratioOf(({ rate }) => rate).toFixed(1)}   for a second of processor time ×${(1 / ratioOf((result) => result.ours + result.postgres)).toFixed(1)}   load by ${generator}`,
  )
}

const ledgerRounds = 5
/** Rounds that are not counted. V8 optimises the code of a tap until about 20,000 of them. */
const warmUps = 2
const present = fileURLToPath(new URL('../../service/src', import.meta.url))

type Contender = {
  readonly name: string
  readonly port: number
  readonly costs: () => Promise<Costs>
  readonly results: Result[]
}
/** Seconds of processor time until now, of the server and of its sessions. A PostgreSQL on another machine counts nothing. */
type Costs = { readonly ours: number; readonly postgres: number }
/** `ours` and `postgres` are microseconds a tap. */
type Result = Omit<LoadResult, 'statuses'> & Costs

const sessionsStatement = `select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`

/** Serves taps with the ledger of a build, on a database of its own, and announces each of them. */
async function startLedger(
  made: AsyncDisposableStack,
  name: string,
  sources: string,
  batch: string,
): Promise<Contender> {
  const { url, sql, drop } = await createOwnDatabase()
  made.defer(drop)
  const { port, pid, stop } = await startServer(script, ['ledger', sources, url], { input: batch })
  made.defer(stop)
  const costs = async (): Promise<Costs> => {
    const sessions = await sql.query<{ pid: number }>(sessionsStatement)
    return { ours: cpuSecondsOf([pid]), postgres: cpuSecondsOf(sessions.map((session) => session.pid)) }
  }
  return { name, port, costs, results: [] }
}

/** Serves the build before taps were accepted in groups. Returns `null` where the history is not here. */
async function startFormer(made: AsyncDisposableStack, batch: string): Promise<Contender | null> {
  const found = await commitBefore('service/src/db/migrations/0012-settlements.sql')
  if (!('commit' in found)) {
    console.log(`the build before is not compared: ${found.reason}`)
    return null
  }
  const { cli } = await extractVersion(found.commit)
  return startLedger(made, 'the one before', dirname(cli), batch)
}
