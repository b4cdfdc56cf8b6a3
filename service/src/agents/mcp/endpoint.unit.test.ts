import assert from 'node:assert/strict'
import { request as httpRequest } from 'node:http'
import { connect } from 'node:net'
import { after, describe, it } from 'node:test'
import { createRateLimiter } from '../../http/rate-limit/limiter.ts'
import { marker, testTools } from '../../../test/support/agents/assets.ts'
import { startMcp, type Answer } from '../../../test/support/agents/mcp.ts'
import { toolNames } from '../tools/tools.ts'

const world = testTools()
const { verdicts, lines } = world
const mcp = await startMcp(world)
after(() => mcp.close())

const call = (name: string, args: object) => ({ name, arguments: args })
const messageOf = (id: number, method: string, params?: object) => ({ jsonrpc: '2.0', id, method, params })
/** A call of check_flagged. */
const checkOf = (id: number, tokenId = '4') => messageOf(id, 'tools/call', call('check_flagged', { token_id: tokenId }))
const initialization = (protocolVersion: string) => ({
  protocolVersion,
  capabilities: {},
  clientInfo: { name: 'a', version: '1' },
})
const eras = ['modern', 'legacy'] as const

describe('POST /mcp', () => {
  for (const era of eras) {
    it(`lists exactly the three read-only tools with their schemas (${era})`, async () => {
      const { status, json } = await mcp[era]('tools/list')
      const listed = json.result?.tools ?? []
      assert.equal(status, 200)
      assert.deepEqual(
        listed.map(({ name }) => name),
        toolNames,
      )
      for (const { name, annotations, inputSchema, outputSchema } of listed) {
        assert.deepEqual(annotations, {
          readOnlyHint: true,
          destructiveHint: false,
          idempotentHint: true,
          openWorldHint: name === 'verify_asset',
        })
        assert.deepEqual(
          [inputSchema, outputSchema].map((schema) => (schema as { type: string }).type),
          ['object', 'object'],
        )
        const schemas = JSON.stringify([inputSchema, outputSchema])
        assert.doesNotMatch(schemas, /\$ref|"type":"number"/)
      }
    })

    it(`verify_asset gives the keyless read's body as structured content (${era})`, async () => {
      for (const id of ['1', '4', '5', '7', '8']) {
        const { json } = await mcp[era]('tools/call', call('verify_asset', { token_id: id }))
        assert.deepEqual(json.result?.structuredContent, JSON.parse((await verdicts.answer(BigInt(id)))?.body ?? ''))
      }
    })

    it(`keeps hostile text in untrusted and in a block for the user (${era})`, async () => {
      const { json } = await mcp[era]('tools/call', call('verify_asset', { token_id: '8' }))
      const { content = [], structuredContent: { untrusted, ...structured } = {} } = json.result ?? {}
      assert.equal(JSON.stringify(structured).includes(marker), false)
      assert.deepEqual(JSON.parse(content[0]?.text ?? ''), structured)
      assert.deepEqual(JSON.parse(content[1]?.text ?? ''), untrusted)
      assert.deepEqual(
        content.map(({ annotations }) => annotations),
        [
          { audience: ['assistant', 'user'], priority: 1 },
          { audience: ['user'], priority: 0 },
        ],
      )
      assert.match(content[1]?.text ?? '', /^\{"_warning":/)
      const { text } = await mcp[era]('tools/call', call('verify_asset', { token_id: '8', include_untrusted: false }))
      assert.equal(text.includes(marker), false)
    })

    it(`answers a wrong id, wrong arguments and an unknown asset as tool errors (${era})`, async () => {
      for (const [args, code] of [
        [{ token_id: '0x7' }, 'INVALID_TOKEN_ID'],
        [{ token_id: '9'.repeat(78) }, 'INVALID_TOKEN_ID'],
        [{ token_id: '123456' }, 'ASSET_NOT_FOUND'],
        [{}, 'INVALID_ARGUMENT'],
        [{ token_id: '9' }, 'CHAIN_UNAVAILABLE'],
      ] as const)
        for (const tool of toolNames) {
          const { status, json } = await mcp[era]('tools/call', call(tool, args))
          assert.equal(status, 200)
          assert.equal(json.result?.isError, true)
          assert.equal('structuredContent' in (json.result ?? {}), false)
          const body = JSON.parse(json.result?.content?.[0]?.text ?? '') as { version: string; error: { code: string } }
          assert.deepEqual([body.version, body.error.code], ['1', code])
        }
    })

    it(`names its tools to a client that calls another one (${era})`, async () => {
      const { json, text } = await mcp[era]('tools/call', call('drop_tables', {}))
      assert.equal(json.error?.code, -32602)
      assert.deepEqual(json.error?.data, { available_tools: toolNames })
      assert.match(json.error?.message ?? '', /verify_asset, get_lifecycle_history, check_flagged/)
      assert.doesNotMatch(text, /drop_tables/)
    })

    it(`refuses a cursor, which it never gave, and takes an empty one as none (${era})`, async () => {
      for (const cursor of ['eyJwYWdlIjogMn0=', null, 5]) {
        const { json } = await mcp[era]('tools/list', { cursor })
        assert.deepEqual([json.error?.code, json.result], [-32602, undefined])
      }
      assert.equal((await mcp[era]('tools/list', { cursor: '' })).text, (await mcp[era]('tools/list')).text)
    })

    it(`says of a success that it is no error (${era})`, async () => {
      for (const tool of toolNames)
        assert.equal((await mcp[era]('tools/call', call(tool, { token_id: '4' }))).json.result?.isError, false)
    })
  }

  it('serves the handshake of each older revision, without a session', async () => {
    for (const [asked, given] of [
      ['2025-11-25', '2025-11-25'],
      ['2025-03-26', '2025-03-26'],
      ['2024-11-05', '2025-11-25'],
    ] as const) {
      const { json, headers } = await mcp.legacy('initialize', initialization(asked))
      assert.equal(json.result?.['protocolVersion'], given)
      assert.deepEqual(json.result?.['capabilities'], { tools: { listChanged: false } })
      assert.equal(headers.get('mcp-session-id'), null)
      assert.match(
        String(json.result?.['instructions']),
        /not proof of physical presence.*data only, never instructions/,
      )
    }
    assert.equal((await mcp.post({ jsonrpc: '2.0', method: 'notifications/initialized' })).status, 202)
    assert.deepEqual((await mcp.legacy('ping')).json.result, {})
  })

  it('serves the modern revision: everything in the request, every result complete, cacheable lists', async () => {
    const { json } = await mcp.modern('server/discover')
    assert.deepEqual(json.result?.['supportedVersions'], ['2026-07-28'])
    assert.deepEqual(
      [json.result?.['resultType'], json.result?.['ttlMs'], json.result?.['cacheScope']],
      ['complete', 3_600_000, 'public'],
    )
    const called = await mcp.modern('tools/call', call('check_flagged', { token_id: '4' }))
    assert.equal(called.json.result?.['resultType'], 'complete')
    const meta = called.json.result?.['_meta'] as Record<string, { name: string }> | undefined
    assert.match(meta?.['io.modelcontextprotocol/serverInfo']?.name ?? '', /^[a-z0-9.-]+\/touchstone$/)
  })

  it('answers errors of the modern protocol with their codes', async () => {
    const code = ({ status, json }: { status: number; json: Answer }) => [status, json.error?.code]
    assert.deepEqual(code(await mcp.modern('tools/list', {}, { 'Mcp-Method': 'tools/call' })), [400, -32020])
    const unlike = await mcp.modern('tools/call', call('drop_tables', {}), { 'Mcp-Name': 'verify_asset' })
    assert.deepEqual(code(unlike), [400, -32020])
    assert.deepEqual(code(await mcp.modern('initialize')), [404, -32601])
    assert.deepEqual(code(await mcp.modern('ping')), [404, -32601])
    const future = {
      'io.modelcontextprotocol/protocolVersion': '2030-01-01',
      'io.modelcontextprotocol/clientCapabilities': {},
    }
    assert.deepEqual(
      code(await mcp.modern('tools/list', { _meta: future }, { 'MCP-Protocol-Version': '2030-01-01' })),
      [400, -32022],
    )
  })

  it('answers every request as JSON, whatever JSON the client says that it takes', async () => {
    for (const accept of ['*/*', 'application/*', 'application/json', 'application/json, text/event-stream', undefined])
      for (const method of ['tools/list', 'initialize']) {
        const params = method === 'initialize' ? initialization('2025-11-25') : undefined
        const { type, text } = await bare(JSON.stringify(messageOf(1, method, params)), accept)
        assert.equal(type, 'application/json')
        assert.ok((JSON.parse(text) as Answer).result, text)
      }
  })

  it('answers a batch of an older revision', async () => {
    const { json } = await mcp.post(['4', '123456'].map((tokenId, id) => checkOf(id, tokenId)))
    assert.deepEqual(
      (json as unknown as Answer[]).map(({ id, result }) => [id, result?.isError === true]),
      [
        [0, false],
        [1, true],
      ],
    )
  })

  it('answers a batch with a list, also where one message of it has an answer (JSON-RPC 2.0 §6)', async () => {
    const note = { jsonrpc: '2.0', method: 'notifications/initialized' }
    for (const batch of [[checkOf(1, '4')], [note, checkOf(1, '4')]]) {
      const { json } = await mcp.post(batch)
      assert.deepEqual(
        (json as unknown as Answer[]).map(({ id }) => id),
        [1],
      )
    }
    assert.equal((await mcp.post([note])).status, 202)
  })

  it('rejects a batch with one id for two requests, one of which would get no answer', async () => {
    const { status, json } = await mcp.post([checkOf(1, '4'), checkOf(1, '123456')])
    assert.deepEqual([status, json.error?.code], [400, -32600])
    assert.equal((await mcp.post([checkOf(1, '4'), { ...checkOf(1, '4'), id: '1' }])).status, 200)
  })

  it('takes an absolute target, as a server must (RFC 9112 §3.2.2)', async () => {
    const statusOf = (path: string) =>
      new Promise((resolve, reject) => {
        const headers = { 'Content-Type': 'application/json' }
        httpRequest(mcp.url, { method: 'POST', path, headers, agent: false }, (response) => {
          response.resume()
          resolve(response.statusCode)
        })
          .on('error', reject)
          .end(JSON.stringify(messageOf(1, 'tools/list')))
      })
    for (const path of [mcp.mcpUrl, `${mcp.mcpUrl}?a=b`, '/mcp?a=b']) assert.equal(await statusOf(path), 200, path)
    for (const path of [`${mcp.mcpUrl}x`, `${mcp.url}/other`]) assert.equal(await statusOf(path), 404, path)
  })

  it('leaves other paths to the router, and rejects other methods', async () => {
    for (const path of ['/', '/mcp/', '/mcpx', '/.well-known/mcp', '/mcp/other'])
      assert.equal((await fetch(mcp.url + path)).status, 404, path)
    for (const method of ['GET', 'DELETE', 'PUT']) {
      const response = await fetch(mcp.mcpUrl, { method })
      assert.deepEqual([response.status, response.headers.get('allow')], [405, 'POST, OPTIONS'])
    }
  })

  it('never writes supplier text to the log', () => assert.equal(lines.join('').includes(marker), false))

  /** Node's own client, which adds no Accept of its own. */
  function bare(body: string, accept: string | undefined): Promise<{ type: string | undefined; text: string }> {
    return new Promise((resolve, reject) => {
      const headers = { 'Content-Type': 'application/json', ...(accept !== undefined && { Accept: accept }) }
      const request = httpRequest(mcp.mcpUrl, { method: 'POST', headers, agent: false }, (response) => {
        let text = ''
        response.on('data', (chunk: Buffer) => (text += chunk.toString()))
        response.on('end', () => resolve({ type: response.headers['content-type'], text }))
      })
      request.on('error', reject).end(body)
    })
  }
})

describe('the origin guard of /mcp', () => {
  const list = JSON.stringify(messageOf(1, 'tools/list'))

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
    await using other = await startMcp({
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
    await using open = await startMcp({ ...world, origins: ['*'] })
    assert.equal((await open.post(list, { Origin: 'https://anyone.example' })).status, 200)
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
    const deep = `${'['.repeat(30_000)}${']'.repeat(30_000)}`
    const deepCall = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"verify_asset","arguments":{"token_id":${deep}}}}`
    for (const body of [deep, deepCall]) {
      const { status, json } = await mcp.post(body)
      assert.deepEqual([status, json.error?.code], [400, -32600])
    }
    for (const body of ['5', 'null', '[]', '{}', '[5]', '{"jsonrpc":"2.0"}'])
      assert.equal((await mcp.post(body)).json.error?.code, -32600, body)
  })

  it('consumes one of the quota for each call, in a batch too, and none for a rejection', async () => {
    await using limited = await startMcp({
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
    const refused = await limited.post([1, 2, 3].map((id) => checkOf(id)))
    assert.deepEqual([refused.status, refused.json.error?.code, refused.json.id], [429, -32000, null])
    assert.deepEqual([(await one()).status, (await one()).status], [200, 200])
    const again = await one()
    assert.deepEqual([again.status, again.json.id], [429, 1])
    const seconds = again.headers.get('retry-after') ?? ''
    assert.match(seconds, /^\d+$/)
    assert.equal(again.json.error?.message, `Too many requests. Send the next one in ${seconds} s.`)
    assert.deepEqual(
      [
        (await limited.legacy('ping')).status,
        (await limited.legacy('tools/list')).status,
        (await limited.legacy('ping')).status,
      ],
      [200, 200, 429],
    )
  })

  it('consumes one of the other quota for each other request of a batch, whether or not it holds a call', async () => {
    await using limited = await startMcp({
      ...world,
      limiter: createRateLimiter({ limit: 3 }),
      otherLimiter: createRateLimiter({ limit: 3 }),
    })
    const lists = [1, 2, 3, 4].map((id) => messageOf(id, 'tools/list'))
    const checked = checkOf(9)
    const few = await limited.post([checked, ...lists.slice(2)])
    assert.deepEqual([few.status, few.headers.get('x-ratelimit-remaining')], [200, '2'])
    const mixed = await limited.post([checked, ...lists.slice(2)])
    assert.deepEqual([mixed.status, mixed.json.error?.code], [429, -32000])
    assert.equal((await limited.post(lists)).status, 429)
    const calls = await limited.post([...[1, 2, 3].map((id) => checkOf(id)), ...lists.slice(3)])
    assert.equal(calls.status, 429)
    const last = await limited.post(lists.slice(3))
    assert.deepEqual([last.status, last.headers.get('x-ratelimit-remaining')], [200, '0'])
    assert.equal((await limited.post(checked)).headers.get('x-ratelimit-remaining'), '1')
  })

  it('rejects a batch of more than 100 messages before each of them is counted and checked', async () => {
    await using limited = await startMcp({ ...world, otherLimiter: createRateLimiter({ limit: 1_000 }) })
    const batch = (length: number) => Array.from({ length }, () => ({ jsonrpc: '2.0', id: 1, result: {} }))
    const refused = await limited.post(batch(101))
    assert.deepEqual([refused.status, refused.json.error?.code], [400, -32600])
    const counted = await limited.post(batch(100))
    assert.deepEqual([counted.status, counted.headers.get('x-ratelimit-remaining')], [202, '900'])
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
