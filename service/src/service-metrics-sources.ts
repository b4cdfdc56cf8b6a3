/**
 * Metrics that the parts count themselves (spec §2.5, §4.1, §4.8, §4.9): read when they are scraped, so that they cost nothing between.
 * Of what a process does not have, it tells nothing.
 */
import { Counter, Gauge, type Registry } from 'prom-client'
import type { IndexStatus } from './chain/indexer.ts'
import type { Gateway } from './gateway/gateway.ts'
import type { Parts } from './parts.ts'
import type { Limits } from './service-limits.ts'
import type { ReplicaStats } from './store/read-replica.ts'

export type MetricSources = Readonly<{
  reader: Pick<Parts['reader'], 'stats'>
  chain: Pick<Parts['source'], 'stats'>
  indexer: Pick<Parts['indexer'], 'status'>
  gateway: Pick<Gateway, 'metrics'>
  limits: Pick<Limits, 'stats'>
  /** Where DATABASE_READ_URL is set. */
  replica: () => ReplicaStats
  /** WebSockets of GraphQL that are open. */
  sockets: () => number
}>

/** What one scrape shows. */
type Snapshot = Readonly<{
  reader?: ReturnType<MetricSources['reader']['stats']> | undefined
  chain?: ReturnType<MetricSources['chain']['stats']> | undefined
  index?: IndexStatus | undefined
  gateway?: ReturnType<MetricSources['gateway']['metrics']> | undefined
  limits?: ReturnType<Limits['stats']> | undefined
  replica?: ReplicaStats | undefined
  sockets?: number | undefined
}>

/** Registers the metrics; the function that comes back reads the sources for the next scrape. */
export function sourceMetrics(registry: Registry, sources: Partial<MetricSources>): () => Promise<void> {
  let snapshot: Snapshot = {}
  for (const [name, help, label, rowsOf] of counters) {
    const metric = new Counter({
      name,
      help,
      labelNames: label,
      registers: [registry],
      collect: () => {
        forget(metric, label)
        for (const [value, labels = {}] of rowsOf(snapshot)) metric.inc(labels, value)
      },
    })
  }
  for (const [name, help, label, rowsOf] of gauges) {
    const metric = new Gauge({
      name,
      help,
      labelNames: label,
      registers: [registry],
      collect: () => {
        forget(metric, label)
        for (const [value, labels = {}] of rowsOf(snapshot)) metric.set(labels, value)
      },
    })
  }
  return async () => {
    snapshot = {
      reader: sources.reader?.stats(),
      chain: sources.chain?.stats(),
      index: sources.indexer && (await inTime(sources.indexer.status())),
      gateway: sources.gateway?.metrics(),
      limits: sources.limits?.stats(),
      replica: sources.replica?.(),
      sockets: sources.sockets?.(),
    }
  }
}

/** Without labels `reset` leaves a zero, which would be told of what is not known. */
function forget(metric: Pick<Gauge, 'reset' | 'remove'>, labels: readonly string[]): void {
  metric.reset()
  if (labels.length === 0) metric.remove()
}

type Rows = readonly (readonly [value: number, labels?: Readonly<Record<string, string>>])[]
type Row = readonly [name: string, help: string, labels: string[], rows: (now: Snapshot) => Rows]

/** One value without labels, or none. */
const one = (value: number | bigint | null | undefined): Rows =>
  value === null || value === undefined ? [] : [[Number(value)]]
const each = (values: Readonly<Record<string, number>> | undefined, label: string): Rows =>
  Object.entries(values ?? {}).map(([name, value]) => [value, { [label]: name }])

const counters: readonly Row[] = [
  [
    'touchstone_verdict_cache_total',
    'Reads of a record by result: a hit was in memory, a miss was read from the chain. Prepared answers are not among them.',
    ['result'],
    ({ reader }) => each(reader && { hit: reader.hits, miss: reader.misses }, 'result'),
  ],
  [
    'touchstone_verdict_batches_total',
    'Batches in which records were read from the chain.',
    [],
    ({ reader }) => one(reader?.batches),
  ],
  [
    'touchstone_cache_reorgs_total',
    'Reorganisations of the chain that the cache followed.',
    [],
    ({ reader }) => one(reader?.reorgs),
  ],
  [
    'touchstone_cache_follow_failures_total',
    'Heads whose logs could not be read; the cache was emptied.',
    [],
    ({ reader }) => one(reader?.followFailures),
  ],
  ['touchstone_cache_audits_total', 'Looks for changes that no log told of.', [], ({ reader }) => one(reader?.audits)],
  [
    'touchstone_cache_audit_failures_total',
    'Changes that no log told of. More than 0: look at providers and contract.',
    [],
    ({ reader }) => one(reader?.auditFailures),
  ],
  [
    'touchstone_chain_calls_total',
    'JSON-RPC calls, every member of a batch counted.',
    [],
    ({ chain }) => one(chain?.calls),
  ],
  ['touchstone_chain_requests_total', 'HTTP requests to providers.', [], ({ chain }) => one(chain?.requests)],
  ['touchstone_chain_faults_total', 'Attempts that a provider failed.', [], ({ chain }) => one(chain?.faults)],
  [
    'touchstone_chain_hedges_total',
    'Second providers asked because the first was slow.',
    [],
    ({ chain }) => one(chain?.hedges),
  ],
  [
    'touchstone_chain_failovers_total',
    'Next providers asked because one failed.',
    [],
    ({ chain }) => one(chain?.failovers),
  ],
  [
    'touchstone_chain_disagreements_total',
    'Reads refused because providers contradicted one another.',
    [],
    ({ chain }) => one(chain?.disagreements),
  ],
  [
    'touchstone_gateway_sales_total',
    'What requests to buy came to. pending: the outcome was unknown when it was answered; reconciled: it was found out later.',
    ['outcome'],
    ({ gateway }) => each(gateway, 'outcome'),
  ],
  [
    'touchstone_limit_calls_total',
    'Calls to the store of shared limits, each for many requests, by result.',
    ['result'],
    ({ limits }) => each(limits && { answered: limits.calls - limits.failures, failed: limits.failures }, 'result'),
  ],
  [
    'touchstone_limit_local_total',
    'Requests that this process counted alone because the store of shared limits did not answer.',
    [],
    ({ limits }) => one(limits?.local),
  ],
  [
    'touchstone_list_reads_total',
    'Statements of GraphQL lists by the database that answered them; only where DATABASE_READ_URL is set.',
    ['database'],
    ({ replica }) => each(replica?.reads, 'database'),
  ],
]

const gauges: readonly Row[] = [
  ['touchstone_verdict_cache_entries', 'Records in memory.', [], ({ reader }) => one(reader?.entries)],
  [
    'touchstone_cache_mode',
    '1 for the way in which the cache is kept true now: events, root, or head.',
    ['mode'],
    ({ reader }) => (reader === undefined ? [] : [[1, { mode: reader.mode }]]),
  ],
  [
    'touchstone_chain_provider_up',
    '1 while a provider is asked, 0 while it is left out after faults. Numbered as in CHAIN_RPC_URLS, from 0.',
    ['provider'],
    ({ chain }) => ofProviders(chain, ({ breaker }) => breaker !== 'open'),
  ],
  [
    'touchstone_chain_provider_behind',
    '1 while the head of a provider is behind that of the others.',
    ['provider'],
    ({ chain }) => ofProviders(chain, ({ behind }) => behind),
  ],
  ['touchstone_index_block', 'Block to which the index is complete.', [], ({ index }) => one(index?.indexed?.number)],
  [
    'touchstone_index_lag_blocks',
    'Blocks that the index is behind the head; only where this process leads.',
    [],
    ({ index }) => one(index?.lagBlocks),
  ],
  [
    'touchstone_index_lag_seconds',
    'Age of the block to which the index is complete. It also grows when the chain makes no blocks.',
    [],
    ({ index }) => one(index?.lagSeconds),
  ],
  [
    'touchstone_index_leader',
    '1 in the process that writes the index.',
    [],
    ({ index }) => one(index && (index.role === 'leader' ? 1 : 0)),
  ],
  [
    'touchstone_index_faulty',
    '1 while the index cannot be brought up to date.',
    [],
    ({ index }) => one(index && (index.fault === null ? 0 : 1)),
  ],
  [
    'touchstone_limit_store_up',
    '1 while the store of shared limits answers, 0 while this process counts alone.',
    [],
    ({ limits }) => one(limits && Number(limits.up)),
  ],
  [
    'touchstone_read_replica_up',
    '1 while lists are read from the replica, 0 while it is away or lags.',
    [],
    ({ replica }) => one(replica && (replica.up ? 1 : 0)),
  ],
  ['touchstone_graphql_sockets', 'WebSockets that are open.', [], ({ sockets }) => one(sockets)],
]

function ofProviders(
  chain: Snapshot['chain'],
  is: (provider: NonNullable<Snapshot['chain']>['providers'][number]) => boolean,
): Rows {
  return (chain?.providers ?? []).map((provider, index) => [is(provider) ? 1 : 0, { provider: String(index) }])
}

/** A process that follows asks the database, which may hang: then this scrape goes without. */
async function inTime<T>(work: Promise<T>): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<undefined>((resolve) => (timer = setTimeout(() => resolve(undefined), 2_000)))
  return Promise.race([work.catch(() => undefined), late]).finally(() => clearTimeout(timer))
}
