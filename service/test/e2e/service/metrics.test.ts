/** The metrics of a process. Covers what is counted; nothing of a caller is in them, and the dashboard draws what exists. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import type { RequestListener } from 'node:http'
import { after, before, describe, it } from 'node:test'
import { createLog } from '../../../src/lib/log.ts'
import type { BreakerState } from '../../../src/lib/async/circuit-breaker.ts'
import { createMetrics, type Metrics } from '../../../src/app/metrics.ts'
import { alertRules } from '../../../../scripts/docs.ts'
import { serve } from '../../support/http.ts'
import { startWorld, type World } from '../../support/world.ts'

const lines: string[] = []
const log = createLog((line) => lines.push(line))

describe('GET /metrics', () => {
  let world: World
  let metrics: Metrics
  const opened = new AsyncDisposableStack()
  const served = async (listener: RequestListener) => opened.adopt(await serve(listener), (it) => it.close()).url
  let metricsUrl: string
  let host: string
  before(async () => {
    world = await startWorld()
    await world.components.indexer.until(1n, 600_000)
    metrics = createMetrics({ version: '0.1.0', log })
    const { reader, source, chainClients, indexer } = world.components
    metrics.watch({ reader, chain: [source], chainClients, indexer })
    metrics.watch({ limits: { stats: () => ({ calls: 7, failures: 2, local: 5, up: false }) } })
    metrics.watch({ errors: () => 2, sockets: () => 3, gateway: { metrics: async () => figures } })
    const answer: RequestListener = (request, response) =>
      void response.writeHead(request.url?.includes('404') === true ? 404 : 200).end()
    metricsUrl = await served(metrics.listener)
    host = await served(metrics.measured('verification', answer))
  })
  after(async () => {
    await opened.disposeAsync()
    await world?.end()
    assert.deepEqual(lines, [])
  })

  const scraped = async () => (await fetch(`${metricsUrl}/metrics`)).text()
  const valueOf = (text: string, line: string) =>
    Number(
      text
        .split('\n')
        .find((one) => one.startsWith(`${line} `))
        ?.slice(line.length + 1),
    )

  it('is text that Prometheus reads', async () => {
    const response = await fetch(`${metricsUrl}/metrics`)
    assert.equal(response.headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8')
    for (const line of (await response.text()).split('\n'))
      assert.match(
        line,
        /^$|^# (HELP|TYPE) [a-z_0-9]+ .+|^[a-z_0-9]+(\{([a-z]+="[^"\n]*",?)+\})? (-?[0-9.e+-]+|Nan|[+-]Inf)$/,
      )
  })

  it('counts answers by host, route and status, and nothing of the caller', async () => {
    for (const path of [
      '/api/asset/123456789',
      '/api/asset/404',
      '/secret-path?picc=ABCDEF',
      '/01/09520003000001/21/S7',
    ])
      await (await fetch(host + path)).text()
    const text = await scraped()
    const series = (route: string, status: number) =>
      valueOf(
        text,
        `touchstone_http_request_duration_seconds_count{host="verification",route="${route}",status="${status}"}`,
      )
    assert.deepEqual(
      [series('asset', 200), series('asset', 404), series('other', 200), series('item-page', 200)],
      [1, 1, 1, 1],
    )
    const infinite =
      'touchstone_http_request_duration_seconds_bucket{le="+Inf",host="verification",route="asset",status="200"}'
    assert.equal(valueOf(text, infinite), 1)
    for (const secret of ['123456789', 'secret', 'ABCDEF', '09520003000001']) assert.ok(!text.includes(secret), secret)
  })

  it('has buckets that only rise', async () => {
    const buckets = [
      ...(await scraped()).matchAll(/_bucket\{le="[^"]+",host="verification",route="asset",status="200"\} (\d+)/g),
    ]
    const counts = buckets.map(([, count]) => Number(count))
    assert.ok(counts.length > 10)
    assert.deepEqual(
      counts,
      counts.toSorted((a, b) => a - b),
    )
  })

  it('counts taps and operations by a closed list', async () => {
    metrics.countTap('replayed')
    metrics.countOperation('query')
    metrics.countOperation('query')
    const text = await scraped()
    assert.equal(valueOf(text, 'touchstone_taps_total{outcome="replayed"}'), 1)
    assert.equal(valueOf(text, 'touchstone_taps_total{outcome="resolved"}'), 0)
    assert.equal(valueOf(text, 'touchstone_graphql_operations_total{kind="query"}'), 2)
  })

  it('exports what the components counted', async () => {
    const before = await scraped()
    await world.components.reader.read(1n)
    await world.mint()
    await world.components.paymentRpc('eth_blockNumber')
    const text = await scraped()
    const miss = 'touchstone_verdict_cache_total{result="miss"}'
    assert.equal(valueOf(text, miss), valueOf(before, miss) + 1)
    for (const client of ['verdicts', 'writes', 'payments']) {
      const calls = `touchstone_chain_calls_total{client="${client}"}`
      assert.ok(valueOf(text, calls) > valueOf(before, calls), client)
    }
    assert.equal(valueOf(text, 'touchstone_chain_provider_up{provider="0"}'), 1)
    assert.equal(valueOf(text, 'touchstone_log_errors_total'), 2)
    assert.equal(valueOf(text, 'touchstone_graphql_sockets'), 3)
    assert.equal(valueOf(text, 'touchstone_gateway_sales_total{outcome="settled"}'), 2)
    assert.equal(valueOf(text, 'touchstone_gateway_revenue_units_total'), 20_000)
    assert.equal(valueOf(text, 'touchstone_gateway_gas_wei_total'), 3e14)
    assert.equal(valueOf(text, 'touchstone_gateway_gas_lost_wei_total'), 1e14)
    assert.equal(valueOf(text, 'touchstone_gateway_refusals_total{error="invalid_signature"}'), 4)
    assert.equal(valueOf(text, 'touchstone_gateway_key_balance_wei{account="0x01"}'), 5e15)
    assert.equal(valueOf(text, 'touchstone_gateway_oldest_pending_seconds'), 61)
    assert.equal(valueOf(text, 'touchstone_index_faulty'), 0)
    assert.equal(valueOf(text, 'touchstone_limit_calls_total{result="answered"}'), 5)
    assert.equal(valueOf(text, 'touchstone_limit_local_total'), 5)
    assert.equal(valueOf(text, 'touchstone_limit_store_up'), 0)
    assert.ok(valueOf(text, 'touchstone_index_block') >= 0)
    assert.ok(!text.includes(new URL(world.settings.CHAIN_RPC_URLS).host), 'the provider is named by its number')
  })

  it('says nothing of what it has not', async () => {
    const bare = createMetrics({ version: '0.1.0', log })
    const text = await (await fetch(`${await served(bare.listener)}/metrics`)).text()
    for (const name of ['touchstone_index_lag_blocks', 'touchstone_chain_calls_total', 'touchstone_graphql_sockets'])
      assert.doesNotMatch(text, new RegExp(`^${name}`, 'm'))
  })

  it('shows a provider as left out until it has answered all clients, and has an idle client ask it', async () => {
    const asked: string[] = []
    const client = (name: string, ...states: BreakerState[]) => ({
      stats: () => ({ providers: states.map((breaker) => ({ breaker, behind: false })) }),
      head: async () => void asked.push(name),
    })
    const bare = createMetrics({ version: '0.1.0', log })
    bare.watch({ chain: [client('idle', 'closed', 'closed', 'ready'), client('busy', 'closed', 'open', 'closed')] })
    const text = await (await fetch(`${await served(bare.listener)}/metrics`)).text()
    const up = ['0', '1', '2'].map((provider) => valueOf(text, `touchstone_chain_provider_up{provider="${provider}"}`))
    assert.deepEqual([up, asked], [[1, 0, 0], ['idle']])
  })

  it('answers while the index does not', async () => {
    const bare = createMetrics({ version: '0.1.0', log })
    bare.watch({ indexer: { status: () => new Promise(() => {}) }, sockets: () => 1 })
    const text = await (await fetch(`${await served(bare.listener)}/metrics`)).text()
    assert.match(text, /^touchstone_graphql_sockets 1$/m)
  })

  it('has every metric that the dashboard and the alerts name', async () => {
    const text = await scraped()
    const names = new Set(
      [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].flatMap(([, name = '', type]) =>
        type === 'histogram' ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name],
      ),
    )
    const read = (file: string) => readFileSync(new URL(`../../../../docs/${file}`, import.meta.url), 'utf8')
    const { panels, templating } = JSON.parse(read('grafana-dashboard.json')) as Dashboard
    const expressions = panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr))
    const rules = alertRules()
    const all = [
      ...expressions,
      ...templating.list.map(({ definition }) => definition),
      ...rules.map(({ expr }) => expr),
    ]
    const named = all.flatMap((expression) => expression.match(/\b(?:touchstone|process|nodejs)_[a-z_0-9]+/g) ?? [])
    assert.ok(expressions.length > 20 && named.length > 30)
    for (const name of named) assert.ok(names.has(name), `${name} is in the dashboard or an alert, and no metric`)
    for (const [, name = '', matchers = ''] of all.join('\n').matchAll(/\b(touchstone_\w+)\{([^}]*)\}/g)) {
      const metric: object | undefined = metrics.registry.getSingleMetric(name.replace(/_(?:bucket|sum|count)$/, ''))
      const labels = metric !== undefined && 'labelNames' in metric ? (metric.labelNames as string[]) : []
      for (const [, label = '', operator, value = ''] of matchers.matchAll(/(\w+)(=~?)"([^"]*)"/g)) {
        assert.ok(label === 'instance' || labels.includes(label), `${name} has no label ${label}`)
        // A scrape has all values of this closed list from the start.
        if (operator !== undefined && name === 'touchstone_taps_total' && label === 'outcome')
          for (const one of value.split('|')) assert.ok(text.includes(`${name}{outcome="${one}"}`), one)
      }
    }
    for (const { alert, expr } of rules) assert.match(expr, /\btouchstone_/, alert)
    assert.equal(new Set(rules.map(({ alert }) => alert)).size, rules.length)
    for (const metric of ['key_balance_wei', 'oldest_pending_seconds', 'refusals_total', 'gas_lost_wei_total'])
      assert.ok(
        rules.some(({ expr }) => expr.includes(`touchstone_gateway_${metric}`)),
        metric,
      )
    assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length)
  })
})

type Dashboard = {
  readonly panels: readonly { readonly id: number; readonly targets?: readonly { readonly expr: string }[] }[]
  readonly templating: { readonly list: readonly { readonly definition: string }[] }
}

const figures = {
  channels: undefined,
  sales: { settled: 2, pending: 1 },
  refused: { invalid_signature: 4 },
  units: 20_000,
  gas: 3e14,
  lostGas: 1e14,
  balances: { '0x01': 5e15 },
  oldestPendingSeconds: 61,
}
