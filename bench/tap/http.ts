/**
 * Measures a tap over HTTP: GET /api/verify beside a bare server. It runs first with the cryptography alone (ledger and chain answer at
 * once), then with the real ledger on PostgreSQL, every tap a new one.
 */
import { randomBytes } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { batchToJson, type BatchRecord } from '../../service/src/tap/keys/batch.ts'
import { openDatabase } from '../../service/src/db/database.ts'
import { applyLoad } from '../lib/load.ts'
import { median, startServer } from '../lib/processes.ts'

const script = fileURLToPath(new URL('server.ts', import.meta.url))
const rounds = 5
const whole = (value: number) => Math.round(value).toLocaleString('en')

/** `paths` are taps of `batch`, each of them new to the ledger. */
export async function benchTapHttp(batch: BatchRecord, paths: readonly string[]): Promise<void> {
  const json = JSON.stringify(batchToJson(batch))
  const bare = await startServer(script, ['bare'])
  const crypto = await startServer(script, ['crypto'], json)
  const load = (port: number, some: readonly string[], seconds: number) =>
    applyLoad({ port, paths: some, connections: 64, seconds })
  const few = paths.slice(0, 1_000)
  await load(crypto.port, few, 2)
  const rates: { bare: number[]; crypto: number[] } = { bare: [], crypto: [] }
  for (let round = 0; round < rounds; round += 1) {
    rates.bare.push((await load(bare.port, few, 1.5)).rate)
    rates.crypto.push((await load(crypto.port, few, 1.5)).rate)
  }
  const ratio = median(rates.crypto.map((rate, round) => rate / (rates.bare[round] ?? Number.NaN)))
  console.log(
    `over HTTP, crypto only       bare ${whole(median(rates.bare))}/s   ours ${whole(median(rates.crypto))}/s   ratio ×${ratio.toFixed(2)}`,
  )
  await Promise.all([bare.stop(), crypto.stop()])
  await withDatabase(async (url) => {
    const ledger = await startServer(script, ['ledger', url], json)
    const { rate, p50, p99, statuses } = await load(ledger.port, paths, 3)
    console.log(
      `over HTTP, PostgreSQL ledger ${whole(rate)}/s   p50 ${p50.toFixed(1)} ms   p99 ${p99.toFixed(1)} ms   ${JSON.stringify(statuses)}`,
    )
    await ledger.stop()
  })
}

async function withDatabase(run: (url: string) => Promise<void>): Promise<void> {
  const server = new URL(process.env['TEST_DATABASE_URL'] ?? 'postgres://postgres@127.0.0.1:5432/postgres')
  const admin = await openDatabase({ url: server.href, poolSize: 1 }).catch(() => null)
  if (admin === null) return console.log(`over HTTP, PostgreSQL ledger: not measured, no PostgreSQL at ${server.host}`)
  const name = `touchstone_bench_${randomBytes(4).toString('hex')}`
  await admin.exec(`create database ${name}`)
  try {
    const own = new URL(server)
    own.pathname = `/${name}`
    await run(own.href)
  } finally {
    await admin.exec(`drop database ${name} with (force)`)
    await admin.close()
  }
}
