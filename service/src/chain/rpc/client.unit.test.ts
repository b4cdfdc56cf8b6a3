import assert from 'node:assert/strict'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { describe, it } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { serve } from '../../../test/support/http.ts'
import { useOpened } from '../../../test/support/opened.ts'
import { RpcError } from './answer.ts'
import { createRpcClient, createRpcConnection, isKnownTransaction, isRefusal, isRevert } from './client.ts'

describe('a connection to a provider', () => {
  let answer: (request: IncomingMessage, response: ServerResponse, id: number) => void
  const server = useOpened(() =>
    serve((request, response) => {
      request.setEncoding('utf8').on('data', (body: string) => answer(request, response, JSON.parse(body).id))
    }),
  )
  const connection = useOpened(async () =>
    createRpcConnection(new URL(`http://us%20er:pass@127.0.0.1:${server.port}/v2/key?a=b`), {
      connectTimeoutMs: 60_000,
      connections: 16,
    }),
  )
  const later = () => performance.now() + 600_000
  const soon = () => performance.now() + 200

  const send = (until = later()) => connection.send([['eth_chainId', []]], until)
  const failsWith = (message: RegExp, sending = send()) =>
    assert.rejects(sending, (error) => error instanceof RpcError && message.test(error.message))

  it('posts to the whole path, with the user of the URL as a header', async () => {
    let seen: IncomingMessage | undefined
    answer = (request, response, id) => {
      seen = request
      response.end(JSON.stringify({ jsonrpc: '2.0', id, result: '0x1' }))
    }
    assert.deepEqual(await send(), ['0x1'])
    assert.deepEqual([seen?.method, seen?.url], ['POST', '/v2/key?a=b'])
    assert.equal(seen?.headers.authorization, `Basic ${Buffer.from('us er:pass').toString('base64')}`)
  })

  it('reads 8 MiB and not a byte more', async () => {
    const sized = (bytes: number) => (_: unknown, response: ServerResponse, id: number) => {
      const frame = JSON.stringify({ jsonrpc: '2.0', id, result: '' })
      response.end(JSON.stringify({ jsonrpc: '2.0', id, result: 'x'.repeat(bytes - frame.length) }))
    }
    answer = sized(8 * 1024 * 1024)
    assert.equal((await send()).length, 1)
    answer = sized(8 * 1024 * 1024 + 1)
    await failsWith(/larger than 8 MiB/)
  })

  it('ends at its deadline while the body still drips, and closes the socket', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const dripping = Promise.withResolvers<void>()
    const closed = Promise.withResolvers<void>()
    answer = (_request, response) => {
      const timer = setInterval(() => response.write(' ', () => dripping.resolve()), 10)
      response.on('close', () => (clearInterval(timer), closed.resolve()))
    }
    let failed = false
    const failing = failsWith(/no answer in time/).then(() => (failed = true))
    await dripping.promise
    t.mock.timers.tick(300_000)
    await turn()
    assert.equal(failed, false)
    t.mock.timers.tick(300_000)
    await failing
    await closed.promise
  })

  it('ends at its deadline when nothing comes at all, or it has passed already', async () => {
    answer = () => {}
    await failsWith(/no answer in time/, send(soon()))
    await failsWith(/no answer in time/, send(performance.now() - 1))
  })

  it('does not send what ended while it waited for a socket', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    let seen = 0
    const all = Promise.withResolvers<void>()
    answer = () => ++seen === 16 && all.resolve()
    const until = later()
    const waiting = Array.from({ length: 16 }, () => failsWith(/no answer in time/, send(until)))
    await all.promise
    const seventeenth = failsWith(/no answer in time/, send(until - 300_000))
    t.mock.timers.tick(300_000)
    await seventeenth
    t.mock.timers.tick(300_000)
    await Promise.all(waiting)
    answer = (_request, response, id) =>
      void (seen++, response.end(JSON.stringify({ jsonrpc: '2.0', id, result: '0x1' })))
    await send()
    assert.equal(seen, 17)
  })

  it('takes no other status than 200, not even one with a good body', async () => {
    for (const status of [201, 204, 301, 400, 429, 502]) {
      answer = (_request, response, id) => {
        response.writeHead(status, { location: '/' }).end(JSON.stringify({ jsonrpc: '2.0', id, result: '0x1' }))
      }
      await failsWith(new RegExp(`status ${status}`))
    }
  })

  const refuse = (status: number, code: number, message: string) => {
    answer = (_request, response, id) =>
      response.writeHead(status).end(JSON.stringify({ jsonrpc: '2.0', id, error: { code, message } }))
  }

  it('takes an error of JSON-RPC under another status for what it says', async () => {
    for (const status of [400, 404, 413, 500, 503]) {
      refuse(status, -32000, 'header not found')
      await assert.rejects(send(), { kind: 'non-canonical', answered: true })
      refuse(status, -32602, 'invalid params')
      await assert.rejects(send(), { kind: 'rejected', answered: true })
    }
  })

  it('takes a limit, a refused account and a fault for no answer, and quotes them without a key', async () => {
    const key = 'k'.repeat(32)
    for (const [status, code, kind] of [
      [429, -32602, 'busy'],
      [401, -32602, 'fault'],
      [403, -32001, 'fault'],
      [500, -32603, 'fault'],
      [400, -32005, 'busy'],
    ] as const) {
      refuse(status, code, `no answer for ${key}`)
      const message = `status ${status}: error ${code}: no answer for …`
      await assert.rejects(send(), { kind, answered: false, message })
    }
  })

  it('reads from a limit when to ask again, 30 seconds at most', async () => {
    const limited = (header: string, length = 0) => {
      answer = (_request, response) => response.writeHead(429, { 'retry-after': header }).end('x'.repeat(length))
    }
    const at = (seconds: number) => new Date(Date.now() + 1_000 * seconds).toUTCString()
    for (const [header, retryAfterMs] of [
      ['2', 2_000],
      ['0', 0],
      ['86400', 30_000],
      [at(86_400), 30_000],
      [at(-86_400), 0],
      ['soon', undefined],
      ['-1', undefined],
      ['2026', 30_000],
    ] as const) {
      limited(header)
      await assert.rejects(send(), { kind: 'busy', retryAfterMs })
    }
    limited('3', 64 * 1024 + 1)
    await assert.rejects(send(), { kind: 'busy', retryAfterMs: 3_000 })
    answer = (_request, response, id) =>
      response
        .writeHead(200, { 'retry-after': '4' })
        .end(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32005, message: 'rate limit' } }))
    await assert.rejects(send(), { kind: 'busy', answered: true, retryAfterMs: 4_000 })
    answer = (_request, response) => response.writeHead(503, { 'retry-after': '4' }).end()
    await assert.rejects(send(), { kind: 'fault', retryAfterMs: undefined })
  })

  it('reads 64 KiB of another status, within the deadline', async () => {
    answer = (_request, response) => response.writeHead(500).end('x'.repeat(64 * 1024 + 1))
    await assert.rejects(send(), { kind: 'fault', message: 'status 500' })
    answer = (_request, response) => void response.writeHead(500).write('{')
    await failsWith(/no answer in time/, send(soon()))
  })

  it('distinguishes a broken socket from other faults', async () => {
    answer = (_request, response) => response.destroy()
    await assert.rejects(send(), { kind: 'reset' })
    answer = (_request, response) =>
      void response.writeHead(200, { 'content-length': 50 }).write('{', () => response.destroy())
    await assert.rejects(send(), RpcError)
    const unreachable = createRpcConnection(new URL('http://127.0.0.1:9/'), { connectTimeoutMs: 60_000 })
    await assert.rejects(unreachable.send([['eth_chainId', []]], later()), { kind: 'fault' })
    await unreachable.close()
  })

  it('lets a writer know the error of the node under any status, with the data of a revert', async () => {
    const rpc = createRpcClient({ url: `${server.url}/`, timeoutMs: 60_000 })
    const error = { code: 3, message: 'execution reverted', data: '0x08c379a0' }
    answer = (_request, response, id) => response.writeHead(400).end(JSON.stringify({ jsonrpc: '2.0', id, error }))
    await assert.rejects(rpc('eth_call'), (caught) => isRevert(caught) && caught.data === '0x08c379a0')
    answer = (_request, response) =>
      response.writeHead(429).end(JSON.stringify({ jsonrpc: '2.0', id: null, error: { code: 429, message: 'slow' } }))
    await assert.rejects(rpc('eth_call'), (caught) => isRefusal(caught) && !isRevert(caught))
    answer = (_request, response, id) => response.writeHead(429).end(JSON.stringify({ jsonrpc: '2.0', id, error }))
    await assert.rejects(rpc('eth_call'), (caught) => isRefusal(caught) && !isRevert(caught))
    answer = (_request, response) => response.writeHead(502).end('<html>')
    await assert.rejects(rpc('eth_call'), (caught) => !isRefusal(caught) && /status 502/.test(String(caught)))
  })
})

describe('a transaction that a node refuses', () => {
  it('is known to it only where the node says so', () => {
    const isKnown = (message: string) => isKnownTransaction(new RpcError('fault', message, {}))
    for (const message of ['already known', 'known transaction: 0xab', 'transaction already imported'])
      assert.ok(isKnown(message), message)
    for (const message of ['unknown transaction type', 'nonce too low']) assert.ok(!isKnown(message), message)
  })
})
