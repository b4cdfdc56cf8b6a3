/**
 * Metrics of a process, for Prometheus, on a port of their own (METRICS_PORT). Labels come from closed lists: no path, token id, key,
 * address or text from outside. docs/operators-handbook.md lists them, docs/grafana-dashboard.json draws them.
 */
import type { RequestListener } from 'node:http'
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client'
import { reasonOf } from '../../lib/errors.ts'
import { createRequestMeter, durationBuckets, metricsListener, type RequestCount } from '../../http/metrics.ts'
import type { Log } from '../../lib/log.ts'
import { routeNames } from './routes.ts'
import { sourceMetrics, type MetricSources } from './sources.ts'
import type { HostName } from '../../discovery/instance.ts'

const tapOutcomes = [
  'resolved',
  'unbound',
  'replayed',
  'counterfeit',
  'challenge',
  'malformed',
  'not_configured',
  'failed',
] as const
type TapOutcome = (typeof tapOutcomes)[number]

const operationKinds = ['query', 'mutation', 'subscription', 'refused'] as const
/** `refused` is an operation that never ran: it does not parse, is not valid or costs too much. */
type OperationKind = (typeof operationKinds)[number]

export type Metrics = Readonly<{
  registry: Registry
  /** Wraps a listener so that its answers are counted under the host. */
  measured: (host: HostName, listener: RequestListener) => RequestListener
  /** Counts a presented tap; `failed` when the chain or the ledger did not answer. */
  countTap: (outcome: TapOutcome) => void
  countOperation: (kind: OperationKind) => void
  /** Adds sources that are read at each scrape. */
  watch: (sources: Partial<MetricSources>) => void
  /** GET /metrics. */
  listener: RequestListener
}>

export function createMetrics({ version, log }: { readonly version: string; readonly log: Log }): Metrics {
  const registry = new Registry()
  const registers = [registry]
  collectDefaultMetrics({ register: registry })
  new Gauge({
    name: 'touchstone_build_info',
    help: '1, with the version of the program.',
    labelNames: ['version'],
    registers,
  }).set({ version }, 1)
  const meters = requestMetrics(registry)
  const taps = new Counter({
    name: 'touchstone_taps_total',
    help: 'Taps that were presented, by outcome. failed: the chain or the ledger did not answer.',
    labelNames: ['outcome'],
    registers,
  })
  const operations = new Counter({
    name: 'touchstone_graphql_operations_total',
    help: 'GraphQL operations over HTTP and WebSocket, by kind. refused: it was not run.',
    labelNames: ['kind'],
    registers,
  })
  for (const outcome of tapOutcomes) taps.inc({ outcome }, 0)
  for (const kind of operationKinds) operations.inc({ kind }, 0)
  const sources: { -readonly [Name in keyof MetricSources]?: MetricSources[Name] } = {}
  const readSources = sourceMetrics(registry, sources)

  async function scrape(): Promise<string> {
    await readSources()
    return registry.metrics()
  }

  return {
    registry,
    measured: (host, listener) => meters[host].measured(listener),
    countTap: (outcome) => taps.inc({ outcome }),
    countOperation: (kind) => operations.inc({ kind }),
    watch: (more) => void Object.assign(sources, more),
    listener: metricsListener({
      scrape,
      contentType: registry.contentType,
      onFault: (error) => log.warn('metrics not read', { reason: reasonOf(error) }),
    }),
  }
}

const requestsName = 'touchstone_http_request_duration_seconds'

/** Counts requests in plain numbers, which cost a busy route less than the library's own. They are read at each scrape. */
function requestMetrics(registry: Registry) {
  const meters = {
    verification: createRequestMeter(routeNames.verification),
    gateway: createRequestMeter(routeNames.gateway),
    graphql: createRequestMeter(routeNames.graphql),
  } as const satisfies Record<HostName, unknown>
  const help =
    'Time from a request to the end of its answer, by host, route and status. closed: the client went before.'
  const labelNames = ['host', 'route', 'status']
  const metric = new Histogram({ name: requestsName, help, labelNames, registers: [registry] })
  const read = () => Object.entries(meters).flatMap(([host, meter]) => meter.read().map((row) => samplesOf(host, row)))
  const counted = async () => ({
    name: requestsName,
    help,
    type: 'histogram',
    aggregator: 'sum',
    values: read().flat(),
  })
  Object.assign(metric, { get: counted, getForPromString: counted })
  return meters
}

/** Returns the lines of one series: cumulative buckets, sum and count. */
function samplesOf(host: string, { route, status, requests, seconds, buckets }: RequestCount) {
  const labels = { host, route, status: String(status) }
  let below = 0
  const lines = durationBuckets.map((le, index) => ({
    metricName: `${requestsName}_bucket`,
    labels: { le, ...labels },
    value: (below += buckets[index] ?? 0),
  }))
  return [
    ...lines,
    { metricName: `${requestsName}_bucket`, labels: { le: '+Inf', ...labels }, value: requests },
    { metricName: `${requestsName}_sum`, labels, value: seconds },
    { metricName: `${requestsName}_count`, labels, value: requests },
  ]
}
