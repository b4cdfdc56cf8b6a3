import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { RpcFailure } from './rpc-answer.ts'
import { createRpcConnection } from './rpc-connection.ts'
import type { RpcConnection } from './rpc-connection.ts'

describe('a connection to a provider', () => {
  let answer: (request: IncomingMessage, response: ServerResponse, id: number) => void
  let connection: RpcConnection
  const server = createServer((request, response) => {
    request.setEncoding('utf8').on('data', (body: string) => answer(request, response, JSON.parse(body).id))
  })
  const soon = () => performance.now() + 200

  before(async () => {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    connection = createRpcConnection(new URL(`http://us%20er:pass@127.0.0.1:${port}/v2/key?a=b`), 200)
  })
  after(async () => {
    await connection.close()
    server.close()
    server.closeAllConnections()
  })

  const send = (until = soon()) => connection.send([['eth_chainId', []]], until)
  const failsWith = (message: RegExp, sending = send()) =>
    assert.rejects(sending, (error) => error instanceof RpcFailure && message.test(error.message))

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
    assert.equal((await send(performance.now() + 2000)).length, 1)
    answer = sized(8 * 1024 * 1024 + 1)
    await failsWith(/larger than 8 MiB/, send(performance.now() + 2000))
  })

  it('ends at its deadline while the body still drips, and lets go of the socket', async () => {
    let closed: Promise<unknown> | undefined
    answer = (_request, response) => {
      const timer = setInterval(() => response.write(' '), 10)
      closed = new Promise((resolve) => response.on('close', resolve)).finally(() => clearInterval(timer))
    }
    const begun = performance.now()
    await failsWith(/no answer in time/)
    assert.ok(performance.now() - begun < 400)
    await closed
  })

  it('ends at its deadline when nothing comes at all, or it has passed already', async () => {
    answer = () => {}
    await failsWith(/no answer in time/)
    await failsWith(/no answer in time/, send(performance.now() - 1))
  })

  it('does not send what ended while it waited for a socket', async () => {
    let seen = 0
    answer = () => seen++
    const until = performance.now() + 150
    const waiting = Array.from({ length: 16 }, () => failsWith(/no answer in time/, send(until)))
    await Promise.all([...waiting, failsWith(/no answer in time/, send(until - 100))])
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

  it('tells a broken socket from other faults', async () => {
    answer = (_request, response) => response.destroy()
    await assert.rejects(send(), { kind: 'reset' })
    answer = (_request, response) =>
      void response.writeHead(200, { 'content-length': 50 }).write('{', () => response.destroy())
    await assert.rejects(send(), RpcFailure)
    const nobody = createRpcConnection(new URL('http://127.0.0.1:9/'), 200)
    await assert.rejects(nobody.send([['eth_chainId', []]], soon()), { kind: 'fault' })
    await nobody.close()
  })
})
