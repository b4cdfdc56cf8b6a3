import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { connect, type Socket } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { serve, type Served } from '../../test/support/http.ts'
import { readBody, readWebBody, type Body, type BodyLimits } from './body.ts'

const limits: BodyLimits = { maxBytes: 10 }

describe('the body of a Node request', () => {
  let served: Served
  const sockets: Socket[] = []
  before(async () => void (served = await serve()))
  after(async () => {
    for (const socket of sockets) socket.destroy()
    await served.close()
  })

  /** Sends raw bytes and reads the body of the request that they are. `onRequest` runs while the body is read. */
  async function bodyOf(
    sent: readonly (string | Uint8Array)[],
    of: BodyLimits = limits,
    onRequest: (socket: Socket, request: IncomingMessage) => void = () => {},
  ): Promise<Body> {
    const socket = connect(served.port, '127.0.0.1')
    socket.on('error', () => {})
    sockets.push(socket)
    const arrived = once(served.server, 'request') as Promise<[IncomingMessage]>
    for (const part of sent) socket.write(part)
    const [request] = await arrived
    const body = readBody(request, of)
    onRequest(socket, request)
    return body
  }
  const head = (...fields: readonly string[]) => ['POST / HTTP/1.1', 'Host: a', ...fields, '', ''].join('\r\n')

  it('is read as text, with and without a length', async () => {
    assert.deepEqual(await bodyOf([head('Content-Length: 5'), 'grüß'.slice(0, 3), Buffer.of(0x21)]), {
      ok: true,
      text: 'grü!',
    })
    const chunked = bodyOf([head('Transfer-Encoding: chunked'), '2\r\nab\r\n', '1\r\nc\r\n0\r\n\r\n'])
    assert.deepEqual(await chunked, { ok: true, text: 'abc' })
    assert.deepEqual(await bodyOf([head('Content-Length: 0')]), { ok: true, text: '' })
  })

  it('is rejected when it is too large, declared or not', async () => {
    const large = { ok: false, because: 'too-large' }
    assert.deepEqual(await bodyOf([head('Content-Length: 11')]), large)
    assert.deepEqual(await bodyOf([head('Content-Length: 10'), '0123456789']), { ok: true, text: '0123456789' })
  })

  it('is drained before it is rejected, up to a limit', async () => {
    const drained = { maxBytes: 2, drainBytes: 10 }
    const complete = { is: false }
    const onRequest = (_socket: Socket, request: IncomingMessage) => request.on('end', () => (complete.is = true))
    assert.deepEqual(await bodyOf([head('Content-Length: 6'), '012345'], drained, onRequest), {
      ok: false,
      because: 'too-large',
    })
    assert.ok(complete.is)
    complete.is = false
    const undeclared = [head('Transfer-Encoding: chunked'), 'b\r\n01234567890\r\n', '0\r\n\r\n']
    assert.deepEqual(await bodyOf(undeclared, limits, onRequest), { ok: false, because: 'too-large' })
    assert.ok(complete.is)
    const more = bodyOf([head('Transfer-Encoding: chunked'), 'b\r\n01234567890\r\n'], drained)
    assert.deepEqual(await more, { ok: false, because: 'too-large' })
  })

  it('is read no further than that from a client that goes on, whose connection may fail later', async () => {
    let dripping: NodeJS.Timeout | undefined
    let request: IncomingMessage | undefined
    const drip = (socket: Socket, arrived: IncomingMessage) => {
      request = arrived
      dripping = setInterval(() => socket.write('1\r\n0\r\n'), 20)
    }
    const endless = [head('Transfer-Encoding: chunked'), 'b\r\n01234567890\r\n']
    const body = await bodyOf(endless, { maxBytes: 2, drainBytes: 10 }, drip)
    clearInterval(dripping)
    assert.deepEqual(body, { ok: false, because: 'too-large' })
    assert.equal(request?.isPaused(), true)
    const closed = new Promise((resolve) => request?.once('close', resolve))
    request.destroy(new Error('the connection was reset'))
    await closed
  })

  it('is rejected at its deadline, also while it is drained', async () => {
    let dripping: NodeJS.Timeout | undefined
    const drip = (socket: Socket) => void (dripping = setInterval(() => socket.write('1\r\n0\r\n'), 20))
    const endless = [head('Transfer-Encoding: chunked'), 'b\r\n01234567890\r\n']
    assert.equal((await bodyOf(endless, { ...limits, timeoutMs: 200 }, drip)).ok, false)
    clearInterval(dripping)
  })

  it('is rejected when it is slow, compressed or not UTF-8', async () => {
    const slow = bodyOf([head('Content-Length: 5'), 'ab'], { ...limits, timeoutMs: 1 })
    assert.deepEqual(await slow, { ok: false, because: 'too-slow' })
    const encoded = bodyOf([head('Content-Length: 2', 'Content-Encoding: gzip'), 'ab'])
    assert.deepEqual(await encoded, { ok: false, because: 'encoded' })
    const latin1 = bodyOf([head('Content-Length: 1'), Buffer.of(0xe9)])
    assert.deepEqual(await latin1, { ok: false, because: 'not-utf8' })
  })

  it('is aborted when the client closes the connection, before or during the read', async () => {
    const during = bodyOf([head('Content-Length: 5'), 'ab'], limits, (socket) => socket.destroy())
    assert.deepEqual(await during, { ok: false, because: 'aborted' })
    let request: IncomingMessage | undefined
    await bodyOf([head('Content-Length: 5'), 'ab'], limits, (socket, arrived) => {
      request = arrived
      socket.destroy()
    })
    assert.ok(request?.destroyed)
    assert.deepEqual(await readBody(request, limits), { ok: false, because: 'aborted' })
  })
})

describe('the body of a web request', () => {
  const post = (body: Exclude<RequestInit['body'], undefined>, headers: Record<string, string> = {}) =>
    new Request('http://a/', { method: 'POST', body, headers, ...({ duplex: 'half' } as object) })
  const streamed = (start: (controller: ReadableStreamDefaultController<Uint8Array>) => void, cancel = () => {}) =>
    post(new ReadableStream({ start, cancel }))

  it('is read as text', async () => {
    assert.deepEqual(await readWebBody(post('grüß'), limits), { ok: true, text: 'grüß' })
    assert.deepEqual(await readWebBody(new Request('http://a/'), limits), { ok: true, text: '' })
    assert.deepEqual(await readWebBody(post('0123456789'), limits), { ok: true, text: '0123456789' })
  })

  it('is rejected with the same reasons', async () => {
    const reasons = [
      [post('01234567890'), 'too-large'],
      [post('a', { 'Content-Length': '11' }), 'too-large'],
      [post('a', { 'Content-Encoding': 'br' }), 'encoded'],
      [post(Uint8Array.of(0xff)), 'not-utf8'],
      [streamed((controller) => controller.error(new Error('the connection is gone'))), 'aborted'],
    ] as const
    for (const [request, because] of reasons)
      assert.deepEqual(await readWebBody(request, limits), { ok: false, because })
  })

  for (const [name, size, pieces] of [
    ['without a length is drained before it is rejected', 9, 5],
    ['is drained up to 4 MB', 1_048_576, 20],
  ] as const)
    it(name, async () => {
      let taken = 0
      const pull = (controller: ReadableStreamDefaultController<Uint8Array>) => {
        taken += 1
        if (taken < pieces) controller.enqueue(new Uint8Array(size))
        else controller.close()
      }
      const request = post(new ReadableStream({ pull }, { highWaterMark: 0 }))
      assert.deepEqual(await readWebBody(request, limits), { ok: false, because: 'too-large' })
      assert.equal(taken, 5)
    })

  it('is cancelled when it is slow', async () => {
    const cancelled = Promise.withResolvers<void>()
    const request = streamed((controller) => controller.enqueue(Uint8Array.of(0x61)), cancelled.resolve)
    assert.deepEqual(await readWebBody(request, { ...limits, timeoutMs: 1 }), { ok: false, because: 'too-slow' })
    await cancelled.promise
  })
})
