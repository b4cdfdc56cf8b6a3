/** What the A2A agent does with requests that are not of the protocol, and with its version (A2A 1.0 §3.6, §9, §11). */
import assert from 'node:assert/strict'
import { request } from 'node:http'
import { after, before, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { scriptedTools } from '../../support/agents/tools.ts'
import { said, startA2a, type Json } from '../../support/agents/a2a.ts'

const user = { messageId: 'm', role: 'ROLE_USER', parts: [{ text: '42' }] }
const unknown = '00000000-0000-4000-8000-000000000000'

describe('a request to the A2A agent', () => {
  let a2a: Awaited<ReturnType<typeof startA2a>>
  before(async () => {
    a2a = await startA2a(scriptedTools())
  })
  after(() => a2a.close())

  for (const version of ['', '0.3', '1.1', '1', '10.0', '1.0.x'])
    it(`of version ${JSON.stringify(version)} is rejected`, async () => {
      const byRpc = await a2a.rpc('SendMessage', said('42'), { 'A2A-Version': version })
      assert.deepEqual(
        [byRpc.status, byRpc.error.code, byRpc.error.data[0].reason],
        [200, -32009, 'VERSION_NOT_SUPPORTED'],
      )
      const byRest = await a2a.post('/a2a/v1/message:send', said('42'), { 'A2A-Version': version })
      assert.equal(byRest.status, 400)
      assert.equal(((await byRest.json()) as Json).error.status, 'FAILED_PRECONDITION')
    })

  it('is of version 1.0, of one of its patches, or says so in the query', async () => {
    assert.ok((await a2a.rpc('SendMessage', said('42'), { 'A2A-Version': '1.0.1' })).result)
    const response = await fetch(`${a2a.url}/a2a/v1/tasks?A2A-Version=1.0`)
    assert.equal(response.status, 200)
  })

  it('that is none of JSON-RPC gets the error of its kind', async () => {
    const error = async (body: unknown) => ((await (await a2a.post('/a2a', body)).json()) as Json).error.code
    assert.equal(await error('{'), -32700)
    assert.equal(await error(''), -32700)
    assert.equal(await error([]), -32600)
    assert.equal(await error({ id: 1, method: 'GetTask' }), -32600)
    assert.equal(await error({ jsonrpc: '2.0', method: 'GetTask' }), -32600)
    assert.equal(await error({ jsonrpc: '2.0', id: {}, method: 'GetTask' }), -32600)
    assert.equal(await error({ jsonrpc: '2.0', id: 1, method: 'message/send' }), -32601)
    assert.equal(await error({ jsonrpc: '2.0', id: 1, method: 'constructor' }), -32601)
    assert.equal(await error({ jsonrpc: '2.0', id: 1, method: 'GetTask', params: [] }), -32602)
    const deep = `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"a":${'['.repeat(30_000)}${']'.repeat(30_000)}}}`
    assert.equal(await error(deep), -32602)
  })

  it('that is none of HTTP+JSON gets the status of its kind', async () => {
    assert.equal((await a2a.rest('GET', '/nothing')).status, 404)
    assert.equal((await a2a.rest('GET', '/tenant/tasks')).status, 404)
    assert.equal((await a2a.post('/a2a/v1/message:send', '{')).status, 400)
    assert.equal((await a2a.post('/a2a/v1/message:send', '[]')).status, 400)
    assert.equal((await a2a.post('/a2a/v1/message:send', 'x', { 'Content-Type': 'text/plain' })).status, 400)
    const method = await a2a.get('/a2a/v1/message:send')
    assert.deepEqual([method.status, method.headers.get('allow')], [405, 'POST, OPTIONS'])
    assert.equal((await a2a.get('/a2a')).status, 405)
  })

  it('gets the protocol’s media type only when it names it', async () => {
    const typeOf = async (accept: string) =>
      (await a2a.get('/a2a/v1/tasks', { Accept: accept })).headers.get('content-type')
    assert.equal(await typeOf('*/*'), 'application/json')
    assert.equal(await typeOf('application/a2a+json, application/json'), 'application/a2a+json')
    const unknownTask = await a2a.get(`/a2a/v1/tasks/${unknown}`, { Accept: 'application/a2a+json' })
    assert.equal(unknownTask.headers.get('content-type'), 'application/a2a+json')
  })

  it('never gets its own words back in an error', async () => {
    const marker = 'MARKER-7F3A'
    const answers = await Promise.all([
      a2a.rpc(marker, {}),
      a2a.rpc('GetTask', { id: marker }),
      a2a.rpc('SendMessage', { message: { ...user, role: marker } }),
      a2a.rpc('ListTasks', { status: marker, contextId: marker }),
      a2a.rest('GET', `/${marker}`),
      a2a.rest('GET', `/tasks/${marker}`),
    ])
    assert.doesNotMatch(JSON.stringify(answers), new RegExp(marker))
  })

  it('over 64 KiB gets 413, with or without a Content-Length', async () => {
    const large = said('4'.repeat(70_000))
    assert.equal((await a2a.post('/a2a/v1/message:send', large)).status, 413)
    const chunked = await new Promise<number>((resolve, reject) => {
      const headers = { 'A2A-Version': '1.0', 'Content-Type': 'application/json', 'Transfer-Encoding': 'chunked' }
      const sending = request(`${a2a.url}/a2a`, { method: 'POST', headers }, (answer) => {
        resolve(answer.statusCode ?? 0)
        answer.resume()
      })
      sending.on('error', reject)
      sending.write('x'.repeat(40_000))
      void delay(20).then(() => sending.end('x'.repeat(40_000)))
    })
    assert.equal(chunked, 413)
  })

  it('may come from a page of any origin, with the headers of the protocol', async () => {
    for (const path of ['/a2a', '/a2a/v1/message:send']) {
      const preflight = await fetch(a2a.url + path, { method: 'OPTIONS', headers: { Origin: 'https://page.example' } })
      assert.equal(preflight.status, 204)
      assert.equal(preflight.headers.get('access-control-allow-origin'), '*')
      assert.match(preflight.headers.get('access-control-allow-headers') ?? '', /A2A-Version/)
    }
    assert.equal((await a2a.get('/a2a/v1/tasks')).headers.get('access-control-allow-origin'), '*')
  })
})
