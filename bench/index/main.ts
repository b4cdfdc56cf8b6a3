/**
 * `npm run bench:index`: our indexer beside Ponder (bench/ponder) on one anvil and one PostgreSQL, the same events into empty tables, rows
 * compared. Ours also folds them into products, transfers and counts. Ponder cold asks the chain for everything; warm it has all of it in
 * its own cache of RPC answers. `--events N`, default 200,000; `--rounds N`, default 3, of Ponder warm and ours in turn, after one of
 * Ponder cold.
 */
import { readOptions } from '../../scripts/options.ts'
import { bounded } from '../lib/bounded.ts'
import { warnWhenBusy } from '../lib/cost.ts'
import { startBenchChain } from './chain.ts'
import { measureBackfill, measureHead, reachHead, type Backfill, type Indexer } from './measure.ts'
import { startOurs } from './ours.ts'
import { preparePonder } from './theirs.ts'
import { startCountingProxy } from './proxy.ts'
import { createOwnDatabase, type OwnDatabase } from '../lib/own-database.ts'
import { whole } from '../lib/print.ts'
import { median, percentile } from '../lib/processes.ts'

const { values: options } = readOptions({
  options: { events: { type: 'string', default: '200000' }, rounds: { type: 'string', default: '3' } },
})
const per = (a: number, b: number) => `×${(a / b).toFixed(1)}`

await bounded(600_000, async (made) => {
  await warnWhenBusy()
  const chain = await startBenchChain(Number(options.events))
  made.defer(chain.stop)
  const proxy = await startCountingProxy(chain.url)
  made.defer(proxy.stop)
  const ponder = await preparePonder()
  made.defer(ponder.close)
  const database = await newDatabase()
  const { contract } = chain
  let starts = 0

  function startPonder(rpcUrl = proxy.url): Indexer {
    const schema = `run_${(starts += 1)}`
    const running = ponder.start({ rpcUrl, contract, databaseUrl: database.url, schema })
    made.defer(running.stop)
    return { running, sql: database.sql, table: `${schema}.event` }
  }

  async function newDatabase(): Promise<OwnDatabase> {
    const own = await createOwnDatabase()
    made.defer(own.drop)
    return own
  }

  function startOwn({ url, sql }: OwnDatabase, rpcUrl = proxy.url, wsUrl = ''): Indexer {
    const running = startOurs({ rpcUrl, contract, databaseUrl: url, wsUrl })
    made.defer(running.stop)
    return { running, sql, table: 'history' }
  }

  async function backfill(name: string, indexer: Indexer): Promise<Backfill> {
    const result = await measureBackfill(indexer, chain, proxy)
    await indexer.running.stop()
    show(name, result)
    return result
  }

  async function atHead(name: string, indexer: Indexer, blocks: number): Promise<void> {
    await reachHead(indexer, chain)
    await measureHead(indexer, chain, 3) // it may have rows of all blocks and yet not follow the head
    const times = await measureHead(indexer, chain, blocks)
    await indexer.running.stop()
    const at = (share: number) => `${percentile(times, share).toFixed(0)} ms`
    console.log(`${name.padEnd(15)} block to row, ${blocks} blocks: p50 ${at(0.5)}   p99 ${at(0.99)}`)
  }

  console.log(`${whole(chain.head().events)} events in ${whole(chain.head().number)} blocks`)
  const cold = await backfill('Ponder cold', startPonder())
  const warm: Backfill[] = []
  const ours: Backfill[] = []
  let last = await newDatabase()
  for (let round = 0; round < Number(options.rounds); round += 1) {
    warm.push(await backfill('Ponder warm', startPonder()))
    if (round > 0) last = await newDatabase()
    ours.push(await backfill('ours', startOwn(last)))
  }
  if (new Set([cold, ...warm, ...ours].map(({ digest }) => digest)).size > 1)
    throw new Error('The rows of the two differ in block, log, token or kind.')

  const middle = (
    runs: readonly Backfill[],
    what: 'rate' | 'cpuSeconds' | 'databaseSeconds' | 'peakMegabytes' | 'calls',
  ) => median(runs.map((run) => run[what]))
  console.log(
    `CPU          Ponder cold is ${per(cold.cpuSeconds, middle(ours, 'cpuSeconds'))} of ours, warm ${per(middle(warm, 'cpuSeconds'), middle(ours, 'cpuSeconds'))} (wanted: cold ×10)\n` +
      `PostgreSQL   Ponder cold is ${per(cold.databaseSeconds, middle(ours, 'databaseSeconds'))} of ours, warm ${per(middle(warm, 'databaseSeconds'), middle(ours, 'databaseSeconds'))}\n` +
      `rate         ours is ${per(middle(ours, 'rate'), middle(warm, 'rate'))} of Ponder warm (wanted: ×2)\n` +
      `memory       ours is ${per(middle(ours, 'peakMegabytes'), cold.peakMegabytes)} of Ponder cold, ${per(middle(ours, 'peakMegabytes'), middle(warm, 'peakMegabytes'))} of warm (wanted: ×0.5)\n` +
      `RPC calls    Ponder cold makes ${per(cold.calls, middle(ours, 'calls'))} of ours (wanted: ×10)`,
  )
  await atHead('ours, announced', startOwn(last, chain.url, chain.url.replace(/^http/, 'ws')), 100)
  await atHead('ours, polling', startOwn(last, chain.url), 30)
  await atHead('Ponder', startPonder(chain.url), 30)
})

function show(name: string, { rate, cpuSeconds, databaseSeconds, peakMegabytes, calls, methods }: Backfill): void {
  const asked = Object.entries(methods).map(([method, count]) => `${method} ${whole(count)}`)
  console.log(
    `${name.padEnd(12)} ${whole(rate)} events/s   CPU ${cpuSeconds.toFixed(1)} s, PostgreSQL ${databaseSeconds.toFixed(1)} s   peak ${whole(peakMegabytes)} MB   RPC calls ${whole(calls)} (${asked.join(', ')})`,
  )
}
