/** Traces of requests (OpenTelemetry). A collector gets the tap and no secret of it, and costs no answer while it is away. */
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { before, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { publishedAddresses } from '../../../src/domain/published-accounts.ts'
import type { BatchRecord } from '../../../src/tap/keys/batch.ts'
import { rootOf, type SpanReceived, startCollector, treeOf } from '../../support/collector.ts'
import { boundTag, demoBatchOf } from '../../support/tap/bound.ts'
import { until } from '../../support/wait.ts'
import { startWorld } from '../../support/world.ts'
import { useOpened } from '../../support/opened.ts'

const page = new URL('../../../../docs/traces.md', import.meta.url)
const shownTrace = /(?<=<!-- trace of one tap -->\n\n```text\n)[^]*?(?=```)/

const traceparent = (flags: string) => `00-${'4b'.repeat(16)}-${'b7'.repeat(8)}-${flags}`
const isOf = (requestId: string) => (spans: readonly SpanReceived[]) =>
  spans.some(({ attributes }) => attributes['touchstone.request_id'] === requestId)

describe('the trace of a request', () => {
  let batch: BatchRecord
  const collector = useOpened(startCollector)
  const world = useOpened(() =>
    startWorld({
      env: {
        OTEL_EXPORTER_OTLP_ENDPOINT: `${collector.url}/`,
        OTEL_EXPORTER_OTLP_HEADERS: 'x-collector-key=a%20key',
        OTEL_BSP_SCHEDULE_DELAY: '20',
        OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test',
        TRUSTED_PROXIES: '127.0.0.1',
        METRICS_PORT: '0',
      },
    }),
  )
  before(async () => {
    batch = await demoBatchOf(world, 'traced')
  })

  async function product() {
    const { tokenId, tag, tagHash } = await boundTag(world, batch, { name: 'A traced product' })
    await world.components.tags.importTag({ uid: tag.uid, epoch: 0, batchId: 'traced', tokenId })
    await world.write({ kind: 'activate', tokenId })
    return { tokenId, tag, hash: tagHash }
  }
  const metrics = async (accept: string) => {
    const port = /"event":"metrics listen".*"port":(\d+)/.exec(world.lines.join('\n'))?.[1]
    return (await fetch(`http://127.0.0.1:${port}/metrics`, { headers: { accept } })).text()
  }

  it('leads from the host over tap, verdict and chain to the database, as the documentation shows', async () => {
    const { tag } = await product()
    await world.get('/api/verify?' + new URLSearchParams(tag.next())) // the first one also asks what the contract is
    let spans: Awaited<ReturnType<typeof collector.trace>> = []
    let taps = 0
    // A tap whose product is read for longer than half a second is announced after it was consumed.
    await until(async () => {
      await world.mint() // the head is resolved anew after it
      const id = `tap-of-the-docs-${++taps}`
      const query = String(new URLSearchParams(tag.next()))
      const response = await world.get(`/api/verify?${query}`, { headers: { 'x-request-id': id } })
      assert.equal(response.status, 200)
      await response.text()
      spans = await collector.trace(isOf(id))
      return !spans.some(({ name }) => name === 'tap announcement')
    })
    // A tap reads the batches again where the last reading is a second old.
    const tree = treeOf(spans.filter(({ name }) => name !== 'select tag_batch'))
    const source = readFileSync(page, 'utf8')
    const shape = (text = '') => text.replace(/ +[\d.]+ ms/g, '').replace(/request_id=\S+/g, '')
    if (process.env['UPDATE_ANSWERS'] === '1') writeFileSync(page, source.replace(shownTrace, tree))
    else assert.equal(shape(tree), shape(shownTrace.exec(source)?.[0]))
    const root = rootOf(spans)
    assert.ok(spans.every(({ startNs, endNs }) => startNs >= root.startNs && endNs >= startNs))
    for (const name of ['tap', 'tap ledger', 'verdict', 'eth_call'])
      assert.ok(
        spans.some((span) => span.name === name),
        `${name} in\n${tree}`,
      )
  })

  it('links to the trace of a request whose work it shares', async () => {
    const { tag } = await product()
    const ids = Array.from({ length: 12 }, (_, n) => `shared-${n}`)
    const taps = ids.map((id) => {
      const { picc, cmac } = tag.next()
      return world.get(`/api/verify?picc=${picc}&cmac=${cmac}`, { headers: { 'x-request-id': id } })
    })
    for (const answer of await Promise.all(taps)) await answer.text()
    const traces = await Promise.all(ids.map((id) => collector.trace(isOf(id))))
    const known = new Set(traces.map((spans) => rootOf(spans).traceId))
    const linked = traces.flatMap((spans) => spans.flatMap(({ links }) => links.map(({ traceId }) => traceId)))
    assert.ok(linked.length > 0)
    assert.deepEqual(
      linked.filter((id) => !known.has(id)),
      [],
    )
  })

  it('is all that the collector learns: no key, cryptogram, id, address or value', async () => {
    const { tokenId, tag, hash } = await product()
    const taps = [tag.next(), tag.next()]
    const key = 'ts_live_' + 'A'.repeat(43)
    for (const [index, { picc, cmac }] of taps.entries())
      for (const path of ['/api/verify', '/tap', `/api/dpp/token/${tokenId}`])
        await (
          await world.get(`${path}?picc=${picc}&cmac=${cmac}&${index}`, { headers: { authorization: key } })
        ).text()
    await (await world.get(`/api/asset/${tokenId}?secret-of-a-query`)).text()
    const post = (url: string, body: object) =>
      fetch(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-api-key': key },
        body: JSON.stringify(body),
      })
    await (await post(`${world.urls.graphql}/graphql`, { query: '{ chainStatus { head } }' })).text()
    await (await world.get('/api/asset/9', { headers: { 'x-request-id': 'last' } })).text()
    await collector.trace(isOf('last'))
    const got = Buffer.concat(collector.requests.map(({ body }) => body))
      .toString('latin1')
      .toLowerCase()
    const owner = publishedAddresses[0] ?? assert.fail()
    const uid = Buffer.from(tag.uid).toString('hex')
    const secret = [
      ...taps.flatMap(({ picc, cmac }) => [picc, cmac]),
      key,
      owner,
      owner.slice(2),
      uid,
      hash,
      hash.slice(2),
    ]
    for (const text of [
      ...secret,
      'secret-of-a-query',
      '127.0.0.1',
      'a traced product',
      world.settings.TAG_KEK,
      'a key',
    ])
      assert.ok(!got.includes(text.toLowerCase()), text)
    assert.ok(
      collector.requests.every(({ headers, path }) => path === '/v1/traces' && headers['x-collector-key'] === 'a key'),
    )
  })

  it('goes on from the traceparent of a trusted proxy, and to no provider', async () => {
    const ask = async (id: string, flags: string) =>
      (await world.get('/api/asset/1', { headers: { 'x-request-id': id, traceparent: traceparent(flags) } })).text()
    await ask('sampled', '01')
    await ask('not-sampled', '00')
    await (await world.get('/api/asset/1', { headers: { 'x-request-id': 'broken', traceparent: '00-zz-1-01' } })).text()
    const root = rootOf(await collector.trace(isOf('sampled')))
    assert.deepEqual([root.traceId, root.parentSpanId], ['4b'.repeat(16), 'b7'.repeat(8)])
    const own = rootOf(await collector.trace(isOf('broken')))
    assert.ok(own.parentSpanId === '' && own.traceId !== root.traceId)
    assert.ok(!collector.spans.some(({ attributes }) => attributes['touchstone.request_id'] === 'not-sampled'))
    const [resource] = collector.resources
    assert.deepEqual([resource?.['service.name'], resource?.['deployment.environment.name']], ['touchstone', 'test'])
  })

  it('has the request id of the answer, whichever path answers', async () => {
    await (await world.get('/api/asset/1')).text()
    for (const given of [undefined, 'not a plain id']) {
      const headers = given === undefined ? {} : { 'x-request-id': given }
      const response = await world.get('/api/asset/1', { headers })
      await response.text()
      const id = response.headers.get('x-request-id') ?? assert.fail()
      assert.notEqual(id, given)
      const root = rootOf(await collector.trace(isOf(id)))
      assert.equal(root.attributes['http.response.status_code'], 200)
    }
  })

  it('is named by the histogram of its route in OpenMetrics, and in no other form', async () => {
    const { tag } = await product()
    await (
      await world.get(`/api/verify?${new URLSearchParams(tag.next()).toString()}`, {
        headers: { 'x-request-id': 'exemplar' },
      })
    ).text()
    const [{ traceId } = assert.fail()] = await collector.trace(isOf('exemplar'))
    const text = await metrics('application/openmetrics-text')
    const line = text.split('\n').find((one) => one.includes(traceId)) ?? assert.fail(text)
    assert.match(
      line,
      /^touchstone_http_request_duration_seconds_bucket\{le="[^"]+",host="verification",route="tap",status="200"\} \d+ # \{trace_id="[0-9a-f]{32}"\} [\d.e-]+ \d+\.\d{3}$/,
    )
    assert.ok(text.endsWith('\n# EOF\n') && !text.includes('\n\n'))
    assert.match(text, /^# TYPE touchstone_taps counter$/m)
    assert.match(text, /^touchstone_taps_total\{outcome="resolved"\} [1-9]/m)
    const plain = await metrics('text/plain')
    assert.match(plain, /^# TYPE touchstone_taps_total counter$/m)
    assert.ok(!plain.includes(traceId) && !plain.includes('_total_total'))
    assert.match(plain, /^touchstone_trace_spans_total\{result="exported"\} [1-9]/m)
    assert.match(plain, /^touchstone_trace_spans_total\{result="failed"\} 0$/m)
  })
})

describe('a collector that is away', () => {
  /** The longest that an export may take. */
  const timeoutMs = 60_000
  it('costs the spans, which are counted, and neither an answer nor the end of the service', async () => {
    await using opened = new AsyncDisposableStack()
    const collector = opened.adopt(await startCollector(), (it) => it.close())
    const world = await startWorld({
      env: {
        OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
        OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
        OTEL_EXPORTER_OTLP_TIMEOUT: String(timeoutMs),
        OTEL_BSP_MAX_QUEUE_SIZE: '64',
        OTEL_BSP_SCHEDULE_DELAY: '10',
        METRICS_PORT: '0',
      },
    })
    const ask = async (id: string) => {
      const response = await world.get('/api/asset/1', { headers: { 'x-request-id': id } })
      assert.equal(response.status, 404)
      await response.text()
    }
    const warnings = () => world.lines.filter((line) => line.includes('traces not exported'))
    try {
      await ask('taken')
      await collector.trace(isOf('taken'))
      collector.answerWith(503)
      await ask('refused')
      await until(() => warnings().length === 1)
      assert.match(warnings()[0] ?? '', /status 503/)
      collector.answerWith(0)
      const before = collector.requests.length
      await ask('hangs')
      await until(() => collector.requests.length > before)
      for (let index = 0; index < 100; index++) await ask(`dropped-${index}`)
      const port = /"event":"metrics listen".*"port":(\d+)/.exec(world.lines.join('\n'))?.[1]
      const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
      const count = (result: string) =>
        Number(new RegExp(`^touchstone_trace_spans_total\\{result="${result}"\\} (\\d+)$`, 'm').exec(text)?.[1])
      assert.ok(
        count('exported') > 0 && count('failed') > 0 && count('dropped') > 0,
        text.match(/.*trace_spans.*/g)?.join('\n'),
      )
      assert.equal(warnings().length, 1, 'once for all failures in a row')
    } finally {
      const given = delay(timeoutMs, 'waited for the collector', { ref: false })
      assert.equal(await Promise.race([world.end().then(() => 'ended'), given]), 'ended')
    }
  })
})
