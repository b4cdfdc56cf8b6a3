/**
 * Metrics of a process, for Prometheus, on a port of their own (METRICS_PORT). Labels come from closed lists: no path, token id, key,
 * owner's address or text from outside; the facilitator's own accounts are named. docs/operators-handbook.md lists them, docs/grafana-dashboard.json draws them.
 */
import type { RequestListener } from 'node:http'
import { collectDefaultMetrics, Counter, Gauge, Histogram, type OpenMetricsContentType, Registry } from 'prom-client'
import type { HostName } from '../discovery/instance.ts'
import {
  createRequestMeter,
  durationBuckets,
  type Exemplar,
  metricsListener,
  type RequestCount,
} from '../http/metrics.ts'
import { reasonOf } from '../lib/errors.ts'
import type { Log } from '../lib/log.ts'
import { routeNames } from './route-names.ts'
import { type MetricSources, registerSourceMetrics } from './source-metrics.ts'
import type { Tracing } from './tracing/tracing.ts'

const tapOutcomes = [
  'resolved',
  'unbound',
  'replayed',
  'counterfeit',
  'busy',
  'challenge',
  'malformed',
  'not_configured',
  'failed',
] as const
type TapOutcome = (typeof tapOutcomes)[number]

const operationKinds = ['query', 'mutation', 'subscription', 'refused'] as const
/** `refused` is an operation that never ran: it does not parse, is not valid or costs too much. */
type OperationKind = (typeof operationKinds)[number]

export type Metrics = ReturnType<typeof createMetrics>

export function createMetrics({ version, log, traces }: MetricsOptions) {
  const registry = new Registry()
  const registers = [registry]
  collectDefaultMetrics({ register: registry })
  new Gauge({
    name: 'touchstone_build_info',
    help: '1, with the version of the program.',
    labelNames: ['version'],
    registers,
  }).set({ version }, 1)
  const meters = requestMetrics(registry, traces?.traceOf)
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
  const sources: { -readonly [Name in keyof MetricSources]?: MetricSources[Name] } = { traces }
  const readSources = registerSourceMetrics(registry, sources)

  async function scrape(openMetrics: boolean): Promise<{ text: string; contentType: string }> {
    await readSources()
    const from = openMetrics ? inOpenMetrics(registry) : registry
    return { text: await from.metrics(), contentType: from.contentType }
  }

  return {
    registry,
    measured: (host: HostName, listener: RequestListener) => meters[host].measured(listener),
    /** Counts a presented tap; `failed` when the chain or the ledger did not answer. */
    countTap: (outcome: TapOutcome) => taps.inc({ outcome }),
    countOperation: (kind: OperationKind) => operations.inc({ kind }),
    /** Adds sources that are read at each scrape. */
    watch: (more: Partial<MetricSources>) => void Object.assign(sources, more),
    listener: metricsListener({
      scrape,
      onFault: (error) => log.warn('metrics not read', { reason: reasonOf(error) }),
    }),
  }
}

type MetricsOptions = Readonly<{ version: string; log: Log; traces?: Pick<Tracing, 'traceOf' | 'stats'> | undefined }>

/** Returns the same metrics in the form that has exemplars. A registry renames its counters there, so that it gets copies. */
function inOpenMetrics(registry: Registry) {
  const copies = new Registry<OpenMetricsContentType>()
  copies.setContentType(Registry.OPENMETRICS_CONTENT_TYPE)
  for (const metric of registry.getMetricsAsArray()) copies.registerMetric(Object.create(metric) as Gauge)
  return copies
}

const requestsName = 'touchstone_http_request_duration_seconds'

/** Counts requests in plain numbers, which cost a busy route less than the library's own. They are read at each scrape. */
function requestMetrics(registry: Registry, traceOf: Tracing['traceOf'] | undefined) {
  const meters = {
    verification: createRequestMeter(routeNames.verification, traceOf),
    gateway: createRequestMeter(routeNames.gateway, traceOf),
    graphql: createRequestMeter(routeNames.graphql, traceOf),
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
function samplesOf(host: string, { route, status, requests, seconds, buckets, exemplars }: RequestCount) {
  const labels = { host, route, status: String(status) }
  let below = 0
  const lines = durationBuckets.map((le, index) => ({
    metricName: `${requestsName}_bucket`,
    labels: { le, ...labels },
    value: (below += buckets[index] ?? 0),
    ...exemplarOf(exemplars[index]),
  }))
  return [
    ...lines,
    {
      metricName: `${requestsName}_bucket`,
      labels: { le: '+Inf', ...labels },
      value: requests,
      ...exemplarOf(exemplars[buckets.length]),
    },
    { metricName: `${requestsName}_sum`, labels, value: seconds },
    { metricName: `${requestsName}_count`, labels, value: requests },
  ]
}

function exemplarOf(exemplar: Exemplar | undefined) {
  if (exemplar === undefined) return {}
  const { traceId, seconds, at } = exemplar
  return { exemplar: { labelSet: { trace_id: traceId }, value: seconds, timestamp: at.toFixed(3) } }
}
