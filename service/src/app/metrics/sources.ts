/** Metrics that the components count themselves (spec §2.5, §4.1, §4.8, §4.9). They are read at each scrape and cost nothing between. */
import { Counter, Gauge, type Registry } from 'prom-client'
import type { IndexStatus } from '../../chain/indexer/indexer.ts'
import type { Gateway } from '../../hosts/gateway/gateway.ts'
import type { Components } from '../components.ts'
import { withDeadline } from '../../lib/async/deadline.ts'
import type { Limits } from '../limits.ts'
import type { ReplicaStats } from '../../db/replica.ts'

export type MetricSources = Readonly<{
  reader: Pick<Components['reader'], 'stats'>
  chain: Pick<Components['source'], 'stats'>
  indexer: Pick<Components['indexer'], 'status'>
  gateway: Pick<Gateway, 'metrics'>
  limits: Pick<Limits, 'stats'>
  /** Present when DATABASE_READ_URL is set. */
  replica: () => ReplicaStats
  /** WebSockets of GraphQL that are open. */
  sockets: () => number
}>

/** The values of one scrape. */
type Snapshot = Readonly<{
  reader?: ReturnType<MetricSources['reader']['stats']> | undefined
  chain?: ReturnType<MetricSources['chain']['stats']> | undefined
  index?: IndexStatus | undefined
  gateway?: ReturnType<MetricSources['gateway']['metrics']> | undefined
  limits?: ReturnType<Limits['stats']> | undefined
  replica?: ReplicaStats | undefined
  sockets?: number | undefined
}>

/** Registers the metrics. The function returned reads the sources for the next scrape; a source that is missing shows no metric. */
export function sourceMetrics(registry: Registry, sources: Partial<MetricSources>): () => Promise<void> {
  let snapshot: Snapshot = {}
  const registers = [registry]
  for (const [name, [help, rowsOf, ...labelNames]] of Object.entries(counters)) {
    const collect = (): void =>
      replaceRows(metric, labelNames, (labels, value) => metric.inc(labels, value), rowsOf(snapshot))
    const metric: Counter = new Counter({ name, help, labelNames, registers, collect })
  }
  for (const [name, [help, rowsOf, ...labelNames]] of Object.entries(gauges)) {
    const collect = (): void =>
      replaceRows(metric, labelNames, (labels, value) => metric.set(labels, value), rowsOf(snapshot))
    const metric: Gauge = new Gauge({ name, help, labelNames, registers, collect })
  }
  return async () => {
    snapshot = {
      reader: sources.reader?.stats(),
      chain: sources.chain?.stats(),
      index: sources.indexer && (await statusInTime(sources.indexer)),
      gateway: sources.gateway?.metrics(),
      limits: sources.limits?.stats(),
      replica: sources.replica?.(),
      sockets: sources.sockets?.(),
    }
  }
}

/** Replaces all rows. Without labels `reset` leaves a zero, which is removed: it would be shown for an unknown value. */
function replaceRows(
  metric: Pick<Gauge, 'reset' | 'remove'>,
  labelNames: readonly string[],
  write: (labels: Labels, value: number) => void,
  rows: Rows,
): void {
  metric.reset()
  if (labelNames.length === 0) metric.remove()
  for (const [value, labels = {}] of rows) write(labels, value)
}

/** Reads the status of the indexer. A follower asks the database, which may hang: then this scrape shows none. */
function statusInTime(indexer: MetricSources['indexer']): Promise<IndexStatus | undefined> {
  return withDeadline(
    indexer.status().catch(() => undefined),
    2_000,
    { onTimeout: () => undefined },
  )
}

type Labels = Readonly<Record<string, string>>
type Rows = readonly (readonly [value: number, labels?: Labels])[]
type Metric = readonly [help: string, rows: (now: Snapshot) => Rows, ...labelNames: string[]]

/** Returns one row without labels, or none for an unknown value. */
const one = (value: number | bigint | boolean | null | undefined): Rows =>
  value === null || value === undefined ? [] : [[Number(value)]]
const each = (values: Readonly<Record<string, number>> | undefined, label: string): Rows =>
  Object.entries(values ?? {}).map(([name, value]) => [value, { [label]: name }])

const counters: Readonly<Record<string, Metric>> = {
  touchstone_verdict_cache_total: [
    'Reads of a record by result: a hit was in memory, a miss was read from the chain. Prepared answers are not among them.',
    ({ reader }) => each(reader && { hit: reader.hits, miss: reader.misses }, 'result'),
    'result',
  ],
  touchstone_verdict_batches_total: [
    'Batches in which records were read from the chain.',
    ({ reader }) => one(reader?.batches),
  ],
  touchstone_cache_reorgs_total: [
    'Reorganisations of the chain that the cache processed.',
    ({ reader }) => one(reader?.reorgs),
  ],
  touchstone_cache_follow_failures_total: [
    'Heads whose logs could not be read; the cache was emptied.',
    ({ reader }) => one(reader?.followFailures),
  ],
  touchstone_cache_audits_total: ['Searches for changes that no log reported.', ({ reader }) => one(reader?.audits)],
  touchstone_cache_audit_failures_total: [
    'Changes that no log reported. More than 0: look at providers and contract.',
    ({ reader }) => one(reader?.auditFailures),
  ],
  touchstone_chain_calls_total: ['JSON-RPC calls, every member of a batch counted.', ({ chain }) => one(chain?.calls)],
  touchstone_chain_requests_total: ['HTTP requests to providers.', ({ chain }) => one(chain?.requests)],
  touchstone_chain_faults_total: ['Attempts that a provider failed.', ({ chain }) => one(chain?.faults)],
  touchstone_chain_hedges_total: [
    'Second providers asked because the first was slow.',
    ({ chain }) => one(chain?.hedges),
  ],
  touchstone_chain_failovers_total: ['Next providers asked because one failed.', ({ chain }) => one(chain?.failovers)],
  touchstone_chain_disagreements_total: [
    'Reads rejected because providers contradicted one another.',
    ({ chain }) => one(chain?.disagreements),
  ],
  touchstone_gateway_sales_total: [
    'Outcomes of requests to buy. pending: the outcome was unknown when it was answered; reconciled: it was found out later.',
    ({ gateway }) => each(gateway, 'outcome'),
    'outcome',
  ],
  touchstone_limit_calls_total: [
    'Calls to the store of shared limits, each for many requests, by result.',
    ({ limits }) => each(limits && { answered: limits.calls - limits.failures, failed: limits.failures }, 'result'),
    'result',
  ],
  touchstone_limit_local_total: [
    'Requests that this process counted alone because the store of shared limits did not answer.',
    ({ limits }) => one(limits?.local),
  ],
  touchstone_list_reads_total: [
    'Statements of GraphQL lists by the database that answered them; only where DATABASE_READ_URL is set.',
    ({ replica }) => each(replica?.reads, 'database'),
    'database',
  ],
}

const gauges: Readonly<Record<string, Metric>> = {
  touchstone_verdict_cache_entries: ['Records in memory.', ({ reader }) => one(reader?.entries)],
  touchstone_cache_mode: [
    '1 for the way in which the cache is invalidated now: events, root, or head.',
    ({ reader }) => (reader === undefined ? [] : [[1, { mode: reader.mode }]]),
    'mode',
  ],
  touchstone_chain_provider_up: [
    '1 while a provider is asked, 0 while it is left out after faults. Numbered as in CHAIN_RPC_URLS, from 0.',
    ({ chain }) => ofProviders(chain, ({ breaker }) => breaker !== 'open'),
    'provider',
  ],
  touchstone_chain_provider_behind: [
    '1 while the head of a provider is behind that of the others.',
    ({ chain }) => ofProviders(chain, ({ behind }) => behind),
    'provider',
  ],
  touchstone_index_block: ['Block to which the index is complete.', ({ index }) => one(index?.indexed?.number)],
  touchstone_index_lag_blocks: [
    'Blocks that the index is behind the head; only where this process leads.',
    ({ index }) => one(index?.lagBlocks),
  ],
  touchstone_index_lag_seconds: [
    'Age of the block to which the index is complete. It also grows when the chain makes no blocks.',
    ({ index }) => one(index?.lagSeconds),
  ],
  touchstone_index_leader: [
    '1 in the process that writes the index.',
    ({ index }) => one(index && index.role === 'leader'),
  ],
  touchstone_index_faulty: [
    '1 while the index cannot be brought up to date.',
    ({ index }) => one(index && index.fault !== null),
  ],
  touchstone_limit_store_up: [
    '1 while the store of shared limits answers, 0 while this process counts alone.',
    ({ limits }) => one(limits?.up),
  ],
  touchstone_read_replica_up: [
    '1 while lists are read from the replica, 0 while it is unreachable or lags.',
    ({ replica }) => one(replica?.up),
  ],
  touchstone_graphql_sockets: ['WebSockets that are open.', ({ sockets }) => one(sockets)],
}

function ofProviders(
  chain: Snapshot['chain'],
  is: (provider: NonNullable<Snapshot['chain']>['providers'][number]) => boolean,
): Rows {
  return (chain?.providers ?? []).map((provider, index) => [is(provider) ? 1 : 0, { provider: String(index) }])
}
