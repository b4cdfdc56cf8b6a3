/** Metrics that components count themselves. They are read at each scrape and cost nothing between. */
import { Counter, Gauge, type Registry } from 'prom-client'
import type { IndexStatus } from '../chain/indexer/indexer.ts'
import type { ChainCounts } from '../chain/rpc/provider.ts'
import type { ReplicaStats } from '../db/replica.ts'
import type { Gateway } from '../hosts/gateway/gateway.ts'
import type { BreakerState } from '../lib/async/circuit-breaker.ts'
import { withDeadline } from '../lib/async/deadline.ts'
import type { Components } from './components.ts'
import type { Limits } from './limits.ts'
import type { Tracing } from './tracing/tracing.ts'

type ProviderState = Readonly<{ breaker: BreakerState; behind: boolean }>
type ProviderClient = Readonly<{
  stats: () => Readonly<{ providers: readonly ProviderState[] }>
  head: () => Promise<unknown>
}>

export type MetricSources = Readonly<{
  reader: Pick<Components['reader'], 'stats'>
  /** Clients of the chain that show which providers are asked. */
  chain: readonly ProviderClient[]
  chainClients: Components['chainClients']
  indexer: Pick<Components['indexer'], 'status'>
  gateway: Pick<Gateway, 'metrics'>
  limits: Pick<Limits, 'stats'>
  /** Lines of level error since the start. */
  errors: () => number
  /** Present when DATABASE_READ_URL is set. */
  replica: () => ReplicaStats
  /** WebSockets of GraphQL that are open. */
  sockets: () => number
  /** Present when traces are exported. */
  traces: Pick<Tracing, 'stats'> | undefined
}>

/** Registers the metrics, and returns the function that reads their sources for a scrape. Sources may be added later. */
export function registerSourceMetrics(registry: Registry, sources: Partial<MetricSources>): () => Promise<void> {
  let snapshot: Snapshot = {}
  const register = (Meter: typeof Counter | typeof Gauge, metrics: Readonly<Record<string, Metric>>) => {
    for (const [name, [help, rowsOf, ...labelNames]] of Object.entries(metrics)) {
      const collect = (): void => {
        metric.reset()
        // A reset leaves a zero where there are no labels, which would be shown for an unknown value.
        if (labelNames.length === 0) metric.remove()
        for (const [value, labels = {}] of rowsOf(snapshot)) metric.inc(labels, value)
      }
      const metric: Counter | Gauge = new Meter({ name, help, labelNames, registers: [registry], collect })
    }
  }
  register(Counter, counters)
  register(Gauge, gauges)
  return async () => {
    snapshot = await readSources(sources)
  }
}

/** Reads the sources once for all metrics of a scrape. A source that is missing shows no metric. */
async function readSources(sources: Partial<MetricSources>) {
  const { reader, chain, chainClients, indexer, gateway, limits, errors, replica, sockets, traces } = sources
  return {
    reader: reader?.stats(),
    providers: providersOf(chain ?? []),
    clients: Object.entries(chainClients ?? {}).map(([client, { stats }]) => ({ client, ...stats() })),
    index: indexer && (await statusInTime(indexer)),
    gateway: await gateway?.metrics(),
    limits: limits?.stats(),
    errors: errors?.(),
    replica: replica?.(),
    sockets: sockets?.(),
    spans: traces?.stats(),
  }
}

/**
 * Returns the worst state that any client sees of each provider. A client that nothing uses would never see that a provider is back: it
 * reads the head, from every provider that may be tried again.
 */
function providersOf(clients: readonly ProviderClient[]): readonly Readonly<{ isUp: boolean; isBehind: boolean }>[] {
  const seen = clients.map((client) => ({ client, states: client.stats().providers }))
  for (const { client, states } of seen)
    if (states.some(({ breaker }) => breaker === 'ready')) client.head().catch(() => {})
  return (seen[0]?.states ?? []).map((_provider, index) => {
    const states = seen.map((each) => each.states[index])
    return {
      isUp: states.every((state) => state?.breaker === 'closed'),
      isBehind: states.some((state) => state?.behind === true),
    }
  })
}

type Snapshot = Partial<Awaited<ReturnType<typeof readSources>>>

/** Reads the status of the indexer. A follower reads the database, which may hang: then this scrape shows none. */
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

function ofClients({ clients = [] }: Snapshot, name: keyof ChainCounts): Rows {
  return clients.map((counts) => [counts[name], { client: counts.client }])
}

const counters: Readonly<Record<string, Metric>> = {
  touchstone_log_errors_total: [
    'Lines of level error in the log: something failed for an unexpected reason.',
    ({ errors }) => one(errors),
  ],
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
  touchstone_chain_calls_total: [
    'JSON-RPC calls by what asks, every member of a batch counted. writes: also claims and reads of transfers.',
    (now) => ofClients(now, 'calls'),
    'client',
  ],
  touchstone_chain_requests_total: ['HTTP requests to providers.', (now) => ofClients(now, 'requests'), 'client'],
  touchstone_chain_faults_total: ['Attempts that a provider failed.', (now) => ofClients(now, 'faults'), 'client'],
  touchstone_chain_limits_total: [
    'Answers of providers that limit their rate. Such a provider is asked again after a pause.',
    (now) => ofClients(now, 'limits'),
    'client',
  ],
  touchstone_chain_hedges_total: [
    'Second providers asked because the first was slow.',
    (now) => ofClients(now, 'hedges'),
    'client',
  ],
  touchstone_chain_failovers_total: [
    'Next providers asked because one failed.',
    (now) => ofClients(now, 'failovers'),
    'client',
  ],
  touchstone_chain_disagreements_total: [
    'Reads rejected because providers contradicted one another.',
    (now) => ofClients(now, 'disagreements'),
    'client',
  ],
  touchstone_chain_unknown_headers_total: [
    'Block headers with other members than this program knows, as after a hard fork. More than 0: look for a newer version.',
    (now) => ofClients(now, 'uncheckedHeaders'),
    'client',
  ],
  touchstone_index_repairs_total: [
    'Repairs of an index that differed from the chain; only where this process leads.',
    ({ index }) => one(index?.repairs),
  ],
  touchstone_gateway_sales_total: [
    'Outcomes of requests to buy. pending: the outcome was unknown when it was answered; reconciled: it was found out later.',
    ({ gateway }) => each(gateway?.sales, 'outcome'),
    'outcome',
  ],
  touchstone_gateway_revenue_units_total: [
    'Amounts that were settled, in the smallest unit of the payment token: 1000000 is 1 USDC.',
    ({ gateway }) => one(gateway?.units),
  ],
  touchstone_gateway_gas_wei_total: [
    'Gas and L1 data fees that transactions of the facilitator in this process cost, in wei.',
    ({ gateway }) => one(gateway?.gas),
  ],
  touchstone_gateway_gas_lost_wei_total: [
    'Gas and L1 data fees of transfers that were mined and moved nothing, in wei.',
    ({ gateway }) => one(gateway?.lostGas),
  ],
  touchstone_gateway_refusals_total: [
    'Answers of POST /verify that were neither proof nor offer, by error code.',
    ({ gateway }) => each(gateway?.refused, 'error'),
    'error',
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
    'Reads of GraphQL lists by the database that answered them; only where DATABASE_READ_URL is set.',
    ({ replica }) => each(replica?.reads, 'database'),
    'database',
  ],
  touchstone_trace_spans_total: [
    'Spans of traces by result. failed: the collector did not take them; dropped: too many were waiting. Only where traces are on.',
    ({ spans }) => each(spans, 'result'),
    'result',
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
    '1 while a provider is asked, 0 from five faults or limits in a row until it answers. Numbered as in CHAIN_RPC_URLS, from 0.',
    ofProviders(({ isUp }) => isUp),
    'provider',
  ],
  touchstone_chain_provider_behind: [
    '1 while the head of a provider is behind that of the others.',
    ofProviders(({ isBehind }) => isBehind),
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
  touchstone_index_differences: [
    'Tokens that the last comparison of the index with the chain found missing or different, of whatever process leads.',
    ({ index }) => one(index?.differences),
  ],
  touchstone_index_faulty: [
    '1 while the index cannot be brought up to date, or differs from the chain.',
    ({ index }) => one(index && index.fault !== null),
  ],
  touchstone_gateway_key_balance_wei: [
    'Ether of each account of the facilitator, in wei, at the last self-check (once a minute).',
    ({ gateway }) => each(gateway?.balances, 'account'),
    'account',
  ],
  touchstone_gateway_oldest_pending_seconds: [
    'Age of the oldest payment of all processes that is not settled; 0 where there is none.',
    ({ gateway }) => one(gateway?.oldestPendingSeconds),
  ],
  touchstone_gateway_channels_units: [
    'Payment channels of all processes, in the smallest unit of the payment token: deposits, unclaimed sales, and uncovered sales, which are lost.',
    ({ gateway }) => {
      const { balance: deposits, unclaimed, uncovered } = gateway?.channels ?? {}
      return deposits === undefined ? [] : each({ deposits, unclaimed, uncovered } as Record<string, number>, 'what')
    },
    'what',
  ],
  touchstone_gateway_channels_oldest_unclaimed_seconds: [
    'Age of the oldest purchase through a payment channel that is not claimed; 0 where there is none. A payer can have a deposit back after a day.',
    ({ gateway }) => one(gateway?.channels?.oldestSeconds),
  ],
  touchstone_limit_store_up: [
    '1 while the store of shared limits answers, 0 while this process counts alone.',
    ({ limits }) => one(limits?.up),
  ],
  touchstone_read_replica_up: [
    '1 while lists are read from the replica, 0 while it is unreachable or lags.',
    ({ replica }) => one(replica?.up),
  ],
  touchstone_graphql_sockets: ['WebSockets and event streams that are open.', ({ sockets }) => one(sockets)],
}

function ofProviders(is: (provider: NonNullable<Snapshot['providers']>[number]) => boolean) {
  return ({ providers = [] }: Snapshot): Rows =>
    providers.map((provider, index) => [Number(is(provider)), { provider: String(index) }])
}
