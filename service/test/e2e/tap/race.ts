/**
 * A race for taps (spec §4.4: a cryptogram counts once): several processes over one PostgreSQL, every tap presented by every
 * connection at about the same time. `npm run stress:tap` prints what came out; exit code 1 when a tap counted twice or not at all.
 * `-- --citus` does it on a Citus cluster that it starts and ends.
 */
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { createAuthenticate } from '../../../src/tap/sun/authenticate.ts'
import { batchFromJson, batchToJson, createKeyRing } from '../../../src/tap/keys/batch.ts'
import { createReplayLedger } from '../../../src/tap/replay-ledger.ts'
import { createTagHash } from '../../../src/tap/tag-hash.ts'
import { createVerifyTap } from '../../../src/tap/verify-tap.ts'
import { openDatabase } from '../../../src/db/database.ts'
import { makeTemplate } from '../../support/database/citus.ts'
import { citusLacks, startCitusCluster } from '../../support/database/citus-cluster.ts'
import { openOwnDatabase } from '../../support/database/databases.ts'
import { testBatch, testBatches, testTag } from '../../support/tap/tags.ts'

export type RaceResult = Readonly<{
  requests: number
  taps: number
  freshTwice: number
  lost: number
  /** Answers that were neither FRESH nor SAME TAP although every tap came in order. */
  refused: number
  /** Rows in the ledger that do not match the taps. */
  wrongRows: number
  seconds: number
}>

type Job = {
  url: string
  connections: number
  batch: Record<string, unknown>
  tags: { picc: string; cmac: string }[][]
}
type Report = { fresh: number[]; refused: number; requests: number }

/** About `requests` in all: every connection of every process presents every tap once, each tag's taps in order. */
export async function runTapRace({
  requests = 12_000,
  processes = 2,
  connections = 8,
  tags = 25,
} = {}): Promise<RaceResult> {
  await using database = await openOwnDatabase('migrated')
  const batch = testBatch()
  const perTag = Math.max(1, Math.round(requests / (processes * connections * tags)))
  const made = await Promise.all(Array.from({ length: tags }, () => testTag(batch)))
  const job: Job = {
    url: database.url,
    connections,
    batch: batchToJson(batch),
    tags: made.map((tag) => Array.from({ length: perTag }, () => tag.next())),
  }

  const workers = await Promise.all(Array.from({ length: processes }, () => startWorker(job)))
  const began = performance.now()
  const reports = await Promise.all(workers.map(runWorker))
  const seconds = (performance.now() - began) / 1000

  const fresh = Array.from({ length: tags * perTag }, (_, tap) => sum(reports.map((report) => report.fresh[tap] ?? 0)))
  const [rows] = await database.query<{ wrong: number }>(
    `select ((select abs(count(*) - $1) from tap) + (select abs(count(*) - $2) from tag where last_counter = $3))::int as wrong`,
    [tags * perTag, tags, perTag],
  )
  return {
    requests: sum(reports.map((report) => report.requests)),
    taps: fresh.length,
    freshTwice: fresh.filter((count) => count > 1).length,
    lost: fresh.filter((count) => count === 0).length,
    refused: sum(reports.map((report) => report.refused)),
    wrongRows: rows?.wrong ?? -1,
    seconds,
  }
}

async function startWorker(job: Job): Promise<ChildProcess> {
  // A worker is a plain program, also when a test runner started this one.
  const { NODE_TEST_CONTEXT: _none, ...env } = process.env
  const worker = fork(fileURLToPath(import.meta.url), ['worker'], {
    env,
    execArgv: [],
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  const ready = once(worker, 'message')
  worker.send(job)
  await ready
  return worker
}

async function runWorker(worker: ChildProcess): Promise<Report> {
  const [exited, answered] = [once(worker, 'exit'), once(worker, 'message')]
  worker.send('go')
  const [report] = (await Promise.race([
    answered,
    exited.then(([code]) => Promise.reject(new Error(`A worker ended with ${String(code)}.`))),
  ])) as [Report]
  await exited
  return report
}

/** One process: `connections` lanes over a pool of as many connections, each starting at another tag. */
async function work(job: Job): Promise<Report> {
  const record = batchFromJson(job.batch)
  if (record === null) throw new Error('The batch is not legal.')
  const database = await openDatabase({ url: job.url, poolSize: job.connections })
  const keys = createKeyRing(await testBatches(record))
  const verifyTap = createVerifyTap({
    keys,
    authenticate: createAuthenticate({ keys }),
    ledger: createReplayLedger({ sql: database }),
    tagHash: createTagHash({ scheme: 'keccak-uid' }),
  })
  const report: Report = { fresh: [], refused: 0, requests: 0 }
  const perTag = job.tags[0]?.length ?? 0

  const lane = async (start: number) => {
    for (let count = 0; count < perTag; count++) {
      for (let step = 0; step < job.tags.length; step++) {
        const tag = (start + step) % job.tags.length
        const tap = job.tags[tag]?.[count]
        if (tap === undefined) continue
        const result = await verifyTap(tap)
        report.requests += 1
        if (result.kind !== 'tapped') report.refused += 1
        else if (result.fresh) report.fresh[tag * perTag + count] = (report.fresh[tag * perTag + count] ?? 0) + 1
      }
    }
  }
  await onMessage('go')
  await Promise.all(Array.from({ length: job.connections }, (_, index) => lane(index % 3)))
  await database.close()
  return report
}

async function onMessage(wanted: 'go'): Promise<void> {
  const go = once(process, 'message')
  process.send?.('ready')
  const [message] = (await go) as [unknown]
  if (message !== wanted) throw new Error('The parent said something else.')
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}

if (import.meta.main && process.argv[2] === 'worker') {
  const [job] = (await once(process, 'message')) as [Job]
  const report = await work(job)
  process.send?.(report, () => process.disconnect())
} else if (import.meta.main && process.argv.includes('--citus')) {
  const lacks = citusLacks()
  if (lacks !== null) throw new Error(`There is no Citus to race on: ${lacks}.`)
  const { url, workerPorts, env } = await startCitusCluster()
  await makeTemplate(url, workerPorts)
  const others = process.argv.slice(2).filter((argument) => argument !== '--citus')
  const race = fork(fileURLToPath(import.meta.url), others, { env: { ...process.env, ...env } })
  const [code] = (await once(race, 'exit')) as [number | null]
  process.exitCode = code ?? 1
} else if (import.meta.main) {
  const result = await runTapRace({ requests: Number(process.argv[2] ?? 12_000) })
  const { requests, taps, freshTwice, lost, refused, wrongRows, seconds } = result
  process.stdout.write(
    `${requests} requests for ${taps} taps by 2 processes with 8 connections each, ${seconds.toFixed(1)} s, ${Math.round(requests / seconds)} requests/s\n` +
      `fresh-twice = ${freshTwice}\nlost = ${lost}\nrefused = ${refused}\nwrong rows = ${wrongRows}\n`,
  )
  process.exitCode = freshTwice + lost + refused + wrongRows === 0 ? 0 : 1
}
