/** A host's answers are counted by route and status; no text of a caller becomes a label. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { get, type RequestListener } from 'node:http'
import { after, before, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { serve } from '../../test/support/http.ts'
import { createRequestMeter, metricsListener } from './metrics.ts'

const routes = [
  ['/api/asset/', 'asset'],
  ['/api/verify', 'tap'],
  ['/', 'home'],
] as const

describe('the request meter', () => {
  const meter = createRequestMeter(routes)
  let url: string
  let close: () => Promise<void>
  before(async () => {
    const listener: RequestListener = (request, response) => {
      if (request.url?.startsWith('/api/asset/')) return void response.writeHead(200).end('{}')
      if (request.url?.startsWith('/api/verify')) return void setTimeout(() => response.writeHead(502).end(), 20)
      if (request.url === '/hang') return void response.writeHead(200).write('…')
      response.writeHead(404).end()
    }
    ;({ url, close } = await serve(meter.measured(listener)))
  })
  after(() => close())

  it('names a request by the list, never by its path', async () => {
    for (const path of ['/api/asset/1', '/api/asset/2?x=secret', '/', '/?q=1', '/verify', '/secret', '/api/asset'])
      await (await fetch(url + path)).text()
    await (await fetch(`${url}/api/verify?picc=secret`)).text()
    const rows = meter.read().map(({ route, status, requests }) => [route, status, requests])
    assert.deepEqual(
      rows.toSorted((a, b) => String(a).localeCompare(String(b))),
      [
        ['asset', 200, 2],
        ['home', 404, 2],
        ['other', 404, 3],
        ['tap', 502, 1],
      ],
    )
    assert.ok(!JSON.stringify(meter.read()).includes('secret'))
  })

  it('measures until the answer is out', () => {
    const tap = meter.read().find(({ route }) => route === 'tap')
    assert.ok(tap !== undefined && tap.seconds >= 0.015 && tap.seconds < 5, String(tap?.seconds))
    assert.equal(
      tap.buckets.reduce((sum, count) => sum + count),
      1,
    )
    assert.deepEqual(tap.buckets.slice(0, 4), [0, 0, 0, 0]) // not within 5 ms
  })

  it('counts a client that disconnected before the answer was complete apart', async () => {
    const request = get(`${url}/hang`)
    const [response] = await once(request, 'response')
    response.on('error', () => {})
    request.destroy()
    for (let waited = 0; waited < 2_000 && !hasClosed(); waited += 10) await delay(10)
    assert.ok(hasClosed())
    function hasClosed(): boolean {
      return meter.read().some(({ status, requests }) => status === 'closed' && requests === 1)
    }
  })
})

describe('GET /metrics', () => {
  let scrapes = 0
  const faults: unknown[] = []
  let url: string
  let close: () => Promise<void>
  before(async () => {
    const scrape = async (openMetrics: boolean) => {
      scrapes += 1
      await delay(50)
      if (scrapes === 2) throw new Error('a reason that stays private')
      return openMetrics
        ? { text: 'up 1\n# EOF\n', contentType: 'application/openmetrics-text; version=1.0.0' }
        : { text: 'up 1\n', contentType: 'text/plain; version=0.0.4' }
    }
    ;({ url, close } = await serve(metricsListener({ scrape, onFault: (error) => faults.push(error) })))
  })
  after(() => close())

  it('answers all who ask at a time from one scrape', async () => {
    const texts = await Promise.all([1, 2, 3].map(async () => (await fetch(`${url}/metrics`)).text()))
    assert.deepEqual([texts, scrapes], [['up 1\n', 'up 1\n', 'up 1\n'], 1])
  })

  it('says 500 without a reason, and goes on', async () => {
    const failed = await fetch(`${url}/metrics`)
    assert.deepEqual([failed.status, await failed.json()], [500, { error: 'The metrics could not be read.' }])
    assert.match(String(faults[0]), /a reason that stays private/)
    const next = await fetch(`${url}/metrics?x=1`)
    assert.deepEqual([next.status, next.headers.get('content-type')], [200, 'text/plain; version=0.0.4'])
    assert.equal(await next.text(), 'up 1\n')
  })

  it('answers in OpenMetrics a client that weighs it no less', async () => {
    const typeFor = async (accept: string) => {
      const response = await fetch(`${url}/metrics`, { headers: { accept } })
      await response.text()
      return response.headers.get('content-type')?.split(';')[0]
    }
    const openMetrics = 'application/openmetrics-text'
    assert.equal(
      await typeFor(`${openMetrics};version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.2`),
      openMetrics,
    )
    assert.equal(await typeFor(openMetrics), openMetrics)
    assert.equal(await typeFor(`${openMetrics};q=0.2, text/plain;q=0.5`), 'text/plain')
    assert.equal(await typeFor(`${openMetrics};q=0, */*`), 'text/plain')
  })

  it('answers nothing else', async () => {
    const other = await fetch(`${url}/`)
    const post = await fetch(`${url}/metrics`, { method: 'POST', body: 'x' })
    assert.deepEqual([other.status, post.status, post.headers.get('allow')], [404, 405, 'GET, HEAD'])
    await Promise.all([other.text(), post.text()])
  })
})
