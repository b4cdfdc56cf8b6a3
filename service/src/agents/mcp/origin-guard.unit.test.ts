import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { createRateLimiter } from '../../http/rate-limit/limiter.ts'
import { testTools } from '../../../test/support/agents/assets.ts'
import { startMcp } from '../../../test/support/agents/mcp.ts'

const world = testTools()
const call = (name: string, args: object) => ({ name, arguments: args })
let mcp: Awaited<ReturnType<typeof startMcp>>

before(async () => void (mcp = await startMcp(world)))
after(() => mcp.close())

describe('the origin guard of /mcp', () => {
  const list = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' })

  it('rejects a foreign Host and a foreign Origin', async () => {
    for (const host of [
      'evil.example',
      'evil.example:80',
      'localhost.evil.example',
      '127.0.0.1.evil.example',
      'a@localhost',
      '',
    ])
      assert.match(await raw({ host }), /^HTTP\/1\.1 40[03] /, host)
    for (const host of ['localhost', 'LOCALHOST:8080', '127.0.0.1:1', '[::1]:8080'])
      assert.match(await raw({ host }), /^HTTP\/1\.1 200 /, host)
    for (const origin of [
      'https://evil.example',
      'null',
      'http://localhost.evil.example',
      'http://evil.example#localhost',
      'https://localhost',
    ]) {
      const { status, json, headers } = await mcp.post(list, { Origin: origin })
      assert.deepEqual(
        [status, json.error?.code, headers.get('access-control-allow-origin')],
        [403, -32000, null],
        origin,
      )
    }
  })

  it('allows its own page, loopback pages and listed origins', async () => {
    const other = await startMcp({
      ...world,
      baseUrl: 'https://verify.example.com',
      origins: ['https://app.example.com'],
    })
    for (const origin of [
      'https://verify.example.com',
      'http://localhost:6274',
      'http://[::1]:3000',
      'https://app.example.com',
    ]) {
      const { status, headers } = await other.post(list, { Origin: origin })
      assert.deepEqual(
        [status, headers.get('access-control-allow-origin'), headers.get('vary')],
        [200, origin, 'Origin'],
      )
    }
    await other.close()
    const open = await startMcp({ ...world, origins: ['*'] })
    assert.equal((await open.post(list, { Origin: 'https://anyone.example' })).status, 200)
    await open.close()
  })

  it('answers a preflight first', async () => {
    const ask = (origin: string) =>
      fetch(mcp.mcpUrl, { method: 'OPTIONS', headers: { Origin: origin, 'Access-Control-Request-Method': 'POST' } })
    const response = await ask('http://localhost:6274')
    assert.equal(response.status, 204)
    assert.equal(response.headers.get('access-control-allow-origin'), 'http://localhost:6274')
    assert.match(
      response.headers.get('access-control-allow-headers') ?? '',
      /content-type, mcp-protocol-version, mcp-method, mcp-name/,
    )
    assert.equal((await ask('https://evil.example')).status, 403)
  })

  it('bounds the body in size, in time and in kind', async () => {
    assert.equal((await mcp.post(`"${'x'.repeat(65_600)}"`).catch(() => ({ status: 413 }))).status, 413)
    const chunked = await fetch(mcp.mcpUrl, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: streamOf(70_000),
      duplex: 'half',
    } as RequestInit).catch(() => null)
    assert.ok(chunked === null || chunked.status === 413)
    for (const text of ['{', '', 'nonsense']) {
      const { status, json } = await mcp.post(text)
      assert.deepEqual([status, json.error?.code, json.id], [400, -32700, null])
    }
    assert.equal((await mcp.post(list, { 'Content-Type': 'text/plain' })).status, 415)
    assert.equal((await mcp.post(list, { 'Content-Type': 'application/json; charset=utf-8' })).status, 200)
    for (const body of ['5', 'null', '[]', '{}', '[5]', '{"jsonrpc":"2.0"}'])
      assert.equal((await mcp.post(body)).json.error?.code, -32600, body)
  })

  it('consumes one of the quota for each call, in a batch too, and none for a rejection', async () => {
    const limited = await startMcp({
      ...world,
      limiter: createRateLimiter({ limit: 3 }),
      otherLimiter: createRateLimiter({ limit: 2 }),
    })
    const one = () => limited.legacy('tools/call', call('check_flagged', { token_id: '4' }))
    const first = await one()
    assert.deepEqual(
      [first.status, first.headers.get('x-ratelimit-limit'), first.headers.get('x-ratelimit-remaining')],
      [200, '3', '2'],
    )
    const batch = [1, 2, 3].map((id) => ({
      jsonrpc: '2.0',
      id,
      method: 'tools/call',
      params: call('check_flagged', { token_id: '4' }),
    }))
    const refused = await limited.post(batch)
    assert.deepEqual([refused.status, refused.json.error?.code, refused.json.id], [429, -32000, null])
    const again = await one()
    assert.deepEqual([again.status, again.json.id], [429, 1])
    assert.match(again.headers.get('retry-after') ?? '', /^\d+$/)
    assert.deepEqual(
      [
        (await limited.legacy('ping')).status,
        (await limited.legacy('tools/list')).status,
        (await limited.legacy('ping')).status,
      ],
      [200, 200, 429],
    )
    await limited.close()
  })

  function raw({ host }: { host: string }): Promise<string> {
    return new Promise((resolve, reject) => {
      const socket = connect(Number(new URL(mcp.url).port), '127.0.0.1', () =>
        socket.end(
          `POST /mcp HTTP/1.1\r\nHost: ${host}\r\nContent-Type: application/json\r\nContent-Length: ${list.length}\r\nConnection: close\r\n\r\n${list}`,
        ),
      )
      let answer = ''
      socket
        .on('data', (chunk) => (answer += chunk.toString()))
        .on('close', () => resolve(answer))
        .on('error', reject)
    })
  }
})

function streamOf(bytes: number): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(controller) {
      controller.enqueue(new Uint8Array(bytes).fill(32))
      controller.close()
    },
  })
}
