/** The strict JSON-RPC client, against an endpoint with scripted answers (spec §2.5). */
import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { after, describe, it } from 'node:test'
import { createRpc, getAssetCall, VerdictError } from '../src/index.ts'
import { serve } from './_server.ts'

type Request = { jsonrpc: string; id: number; method: string; params: unknown[] }
let answer: (request: Request, response: ServerResponse) => void = () => {}

const server = await serve((request, response) => {
  let body = ''
  request.on('data', (part: Buffer) => (body += part.toString()))
  request.on('end', () => answer(JSON.parse(body) as Request, response))
})
after(() => server[Symbol.asyncDispose]())
const url = `${server.url}/v2/secret-key`
const rpc = createRpc({ url, timeoutMs: 60_000 })
const hasty = createRpc({ url, timeoutMs: 300 })

/** Asks an RPC that answers every request with this JSON. */
async function asked(make: (request: Request) => unknown, status = 200): Promise<unknown> {
  answer = (request, response) => {
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(make(request)))
  }
  return rpc('eth_chainId', [])
}

const failsWith = (code: string) => (error: unknown) =>
  error instanceof VerdictError && error.code === code && !`${error.message} ${String(error.cause)}`.includes('secret')

describe('getAssetCall', () => {
  it('is the selector and one word', () => {
    assert.equal(getAssetCall(255n), `0xeac8f5b8${'0'.repeat(62)}ff`)
    assert.equal(getAssetCall(2n ** 256n - 1n), `0xeac8f5b8${'f'.repeat(64)}`)
  })
})

describe('createRpc', () => {
  it('sends JSON-RPC 2.0 with a new id each time, and gives back the result', async () => {
    const seen: Request[] = []
    const echo = (request: Request) => {
      seen.push(request)
      return { jsonrpc: '2.0', id: request.id, result: request.method }
    }
    assert.equal(await asked(echo), 'eth_chainId')
    assert.equal(await asked(echo), 'eth_chainId')
    assert.deepEqual(seen[0], { jsonrpc: '2.0', id: seen[0]?.id, method: 'eth_chainId', params: [] })
    assert.notEqual(seen[0]?.id, seen[1]?.id)
    assert.equal(await asked(({ id }) => ({ jsonrpc: '2.0', id, result: null, error: null })), null)
  })

  it('says that the RPC refused, with the reason as the cause', async () => {
    const refusal = asked(({ id }) => ({ jsonrpc: '2.0', id, error: { code: -32000, message: 'no' } }))
    await assert.rejects(refusal, {
      code: 'RPC_REFUSED',
      message: 'The RPC refused eth_chainId (code -32000).',
      cause: { code: -32000, message: 'no' },
    })
    await assert.rejects(
      asked(({ id }) => ({ jsonrpc: '2.0', id, error: { code: -32000, message: 'no' } }), 400),
      failsWith('RPC_REFUSED'),
    )
  })

  const useless: [name: string, make: (request: Request) => unknown, status?: number][] = [
    ['another id', ({ id }) => ({ jsonrpc: '2.0', id: id + 1, result: '0x1' })],
    ['the id as a text', ({ id }) => ({ jsonrpc: '2.0', id: String(id), result: '0x1' })],
    ['no version', ({ id }) => ({ id, result: '0x1' })],
    ['neither result nor error', ({ id }) => ({ jsonrpc: '2.0', id })],
    ['both result and error', ({ id }) => ({ jsonrpc: '2.0', id, result: '0x1', error: { code: 1, message: 'x' } })],
    ['a batch', ({ id }) => [{ jsonrpc: '2.0', id, result: '0x1' }]],
    ['null', () => null],
    ['status 500', ({ id }) => ({ jsonrpc: '2.0', id, result: '0x1' }), 500],
    ['status 429', () => ({ error: 'slow down' }), 429],
  ]
  for (const [name, make, status] of useless) {
    it(`does not take ${name} for an answer`, async () =>
      assert.rejects(asked(make, status), failsWith('RPC_UNAVAILABLE')))
  }

  const bodies: [name: string, send: (response: ServerResponse) => void][] = [
    ['text that is no JSON', (response) => response.end('<html>')],
    ['an empty body', (response) => response.end()],
    ['bytes that are no UTF-8', (response) => response.end(Buffer.from([0x22, 0xff, 0x22]))],
    ['a body over 8 MiB', (response) => response.end(`"${'x'.repeat(9 * 1024 * 1024)}"`)],
    ['a redirect', (response) => response.writeHead(307, { location: '/elsewhere' }).end()],
    ['a connection that breaks', (response) => response.destroy()],
    ['headers that never come', () => {}],
    ['a body that never ends', (response) => response.writeHead(200).write('{"jsonrpc"')],
  ]
  for (const [name, send] of bodies) {
    it(`gives up on ${name}`, async () => {
      answer = (_, response) => send(response)
      await assert.rejects(hasty('eth_chainId', []), failsWith('RPC_UNAVAILABLE'))
    })
  }

  it('gives up in time on a body that drips, and on a fetch that ignores its signal', async () => {
    answer = (_, response) => {
      const drip = setInterval(() => response.write(' '), 20)
      response.once('close', () => clearInterval(drip))
    }
    await assert.rejects(hasty('eth_chainId', []), failsWith('RPC_UNAVAILABLE'))
    const deaf = createRpc({ url: 'http://rpc.example', timeoutMs: 50, fetch: () => new Promise(() => {}) })
    await assert.rejects(deaf('eth_chainId', []), failsWith('RPC_UNAVAILABLE'))
  })

  for (const url of [
    '',
    'rpc',
    'ftp://rpc.example',
    'http://user:secret@rpc.example',
    'http://secret@rpc.example',
    'file:///secret',
  ]) {
    it(`refuses the URL ${JSON.stringify(url)}`, async () => {
      await assert.rejects(createRpc({ url })('eth_chainId', []), failsWith('RPC_UNAVAILABLE'))
    })
  }
})
