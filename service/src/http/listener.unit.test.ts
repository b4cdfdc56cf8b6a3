import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Agent, createServer, request as httpRequest, type RequestOptions, type ServerResponse } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { describe, it } from 'node:test'
import { listen } from './listener.ts'

const faults: string[] = []
const options = {
  name: 'test host',
  host: '127.0.0.1',
  port: 0,
  onFault: (error: unknown) => void faults.push((error as Error).message),
} as const

describe('a listener', () => {
  it('answers 500 where a route throws, notes it, and goes on', async () => {
    let fails = true
    const listener = await listen({
      ...options,
      onRequest: (_, response) => {
        if (fails) throw new Error('the route is broken')
        response.end('well')
      },
      onUpgrade: () => {
        throw new Error('the socket is broken')
      },
    })
    const url = `http://127.0.0.1:${listener.port}`
    const broken = await fetch(url)
    assert.deepEqual([broken.status, broken.headers.get('cache-control')], [500, 'no-store'])
    assert.match(((await broken.json()) as { error: string }).error, /unexpectedly/)
    const socket = connect(listener.port, '127.0.0.1')
    socket.write('GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
    await once(socket.resume(), 'close')
    assert.deepEqual(faults, ['the route is broken', 'the socket is broken'])
    fails = false
    assert.equal(await (await fetch(url)).text(), 'well')
    await listener.close(0)
  })

  it('says in one sentence that its port is in use', async () => {
    const first = await listen({ ...options, onRequest: (_, response) => response.end() })
    await assert.rejects(listen({ ...options, port: first.port, onRequest: () => {} }), {
      message: `Port ${first.port} for the test host is in use. Stop the program that listens there, or choose another port.`,
    })
    await first.close()
  })

  it('answers what is not HTTP, and headers over 16 kB, with JSON open to every origin', async () => {
    const listener = await listen({ ...options, onRequest: (_, response) => response.end() })
    for (const [text, status] of [
      ['nonsense\r\n\r\n', 400],
      ['GET / HTTP/1.1\r\nHost: a\r\nhost: b\r\nX-Request-Id: not plain\r\nConnection: close\r\n\r\n', 400],
      ['GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n', 400],
      ['GET / HTTP/1.1\r\nConnection: close\r\n\r\n', 400],
      ['GET / HTTP/1.1\r\nHost: a\r\nExpect: the unexpected\r\n\r\n', 417],
      [`GET / HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`, 431],
      [`GET /${'x'.repeat(16_379)} HTTP/1.1\r\nHost: a\r\n\r\n`, 431],
    ] as const) {
      const answer = await raw(listener.port, text)
      assert.match(answer, new RegExp(`^HTTP/1.1 ${status} `))
      for (const header of [
        /Cache-Control: no-store\r\n/,
        /Access-Control-Allow-Origin: \*\r\n/,
        /X-Request-Id: [a-z0-9]+-[a-z0-9]+\r\n/,
      ])
        assert.match(answer, header)
      assert.equal(typeof (JSON.parse(answer.split('\r\n\r\n')[1] ?? '') as { error: unknown }).error, 'string')
    }
    await listener.close()
  })

  it('answers a complete request although bytes follow that are no HTTP, and rejects a broken body', async () => {
    let begins = false
    const listener = await listen({
      ...options,
      onRequest: (request, response) => {
        if (begins) response.write('begun')
        request.resume().on('end', () => response.end('answered'))
      },
    })
    const ask = (rest: string) => raw(listener.port, `POST / HTTP/1.1\r\nHost: a\r\n${rest}`)
    for (begins of [false, true])
      assert.match(await ask('Content-Length: 2\r\n\r\n{}}'), /^HTTP\/1.1 200 OK\r\n[^]*answered(?!HTTP)/)
    begins = false
    const broken = 'Transfer-Encoding: chunked\r\n\r\nno size'
    assert.match(await ask(broken), /^HTTP\/1.1 400 /)
    begins = true
    assert.doesNotMatch(await ask(broken), /400/)
    await listener.close()
  })

  it('passes on HTTP/1.0 without a Host, as load balancers probe', async () => {
    const listener = await listen({ ...options, onRequest: (_, response) => response.end('probed') })
    assert.match(await raw(listener.port, 'GET /health HTTP/1.0\r\n\r\n'), /^HTTP\/1.1 200 [^]*probed$/)
    await listener.close()
  })

  it('refuses two Host fields of an upgrade, and answers an upgrade to another protocol as a request', async () => {
    const onUpgrade = () => assert.fail('the upgrade went through')
    const listener = await listen({ ...options, onRequest: (_, response) => response.end('as usual'), onUpgrade })
    const upgrade = 'Connection: Upgrade\r\nUpgrade: websocket\r\n'
    const url = `http://127.0.0.1:${listener.port}`
    const headers = { Connection: 'Upgrade, HTTP2-Settings', Upgrade: 'h2c', 'HTTP2-Settings': 'AAEAAEAAAAIAAAAB' }
    assert.equal(await get(url, { headers }), 'as usual') // Java's HttpClient, `curl --http2`
    assert.match(await raw(listener.port, `GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n${upgrade}\r\n`), /^HTTP\/1.1 400 /)
    await listener.close()
  })

  it('outlives the client of a refused upgrade that resets its connection, and keeps none that stays open', async () => {
    const listener = await listen({ ...options, onRequest: () => {}, onUpgrade: () => {} })
    const twoHosts = 'GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n'
    const open = () => {
      const socket = connect({ port: listener.port, host: '127.0.0.1', allowHalfOpen: true })
      return socket.on('error', () => {}).once('connect', () => socket.write(twoHosts))
    }
    const resets = open()
    await once(resets, 'data')
    await once(resets.resetAndDestroy(), 'close')
    const stays = open()
    await once(stays, 'data')
    const closed = await Promise.race([
      listener.close(200).then(() => true),
      new Promise((resolve) => setTimeout(resolve, 120_000, false).unref()),
    ])
    stays.destroy()
    assert.equal(closed, true)
  })

  for (const [what, text, early] of [
    ['headers', 'GET / HTTP/1.1\r\nHost: a\r\nX: ', { headersTimeoutMs: 100 }],
    ['a body', 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{', { requestTimeoutMs: 100 }],
  ] as const)
    it(
      `gives up on the rest of ${what} within two seconds of the deadline, where it does not arrive`,
      { timeout: 240_000 },
      async () => {
        const listener = await listen({ ...options, onRequest: () => {}, headersTimeoutMs: 100, ...early })
        const byDefault = createServer({ headersTimeout: 100, requestTimeout: 100 }).listen(0, '127.0.0.1') // looks every 30 s
        await once(byDefault, 'listening')
        const { port } = byDefault.address() as AddressInfo
        const asked = [listener.port, port].map((at) => raw(at, text).then((answer) => ({ at, answer })))
        const first = await Promise.race(asked)
        assert.equal(first.at, listener.port)
        assert.match(first.answer, /^HTTP\/1.1 408 /)
        byDefault.closeAllConnections()
        byDefault.close()
        await listener.close()
      },
    )

  it('drops a client that takes nothing of its answer', async () => {
    const { promise: answering, resolve: answer } = Promise.withResolvers<ServerResponse>()
    const listener = await listen({
      ...options,
      onRequest: (_, response) => {
        response.end(Buffer.alloc(64 * 1024 * 1024)) // more than the buffers of both ends
        answer(response)
      },
      stuckMs: 200,
    })
    const socket = connect(listener.port, '127.0.0.1', () => socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n'))
    socket.on('error', () => {}).pause()
    await once(await answering, 'close', { signal: AbortSignal.timeout(30_000) })
    socket.destroy()
    await listener.close()
  })

  it(
    'closes without failing a request: those under way finish, busy connections get `Connection: close`, new ones are refused',
    {
      timeout: 240_000,
    },
    async () => {
      const listener = await listen({
        ...options,
        onRequest: (_, response) => setTimeout(() => response.end('done'), 20),
      })
      const agent = new Agent({ keepAlive: true, maxSockets: 16 })
      let answered = 0
      let closed = false
      const failures: string[] = []
      const clients = Array.from({ length: 16 }, async () => {
        while (!closed) {
          const outcome = await get(`http://127.0.0.1:${listener.port}`, { agent })
          if (outcome === 'done') answered += 1
          else if (outcome === 'ECONNREFUSED') return
          else failures.push(outcome)
        }
      })
      while (answered < 64) await new Promise((resolve) => setTimeout(resolve, 5))
      await listener.close(600_000) // ends long before its bound
      closed = true
      await Promise.all(clients)
      agent.destroy()
      assert.deepEqual(failures, [])
    },
  )

  it('ends within its bound although a request never ends', { timeout: 240_000 }, async () => {
    const { promise: arrived, resolve: arrive } = Promise.withResolvers<unknown>()
    const listener = await listen({ ...options, onRequest: arrive })
    const hanging = get(`http://127.0.0.1:${listener.port}`, { agent: new Agent() })
    await arrived
    await listener.close(200)
    assert.equal(await hanging, 'ECONNRESET')
  })
})

function get(url: string, options: RequestOptions): Promise<string> {
  return new Promise((resolve) => {
    const request = httpRequest(url, options, (response) => {
      let text = ''
      response.on('data', (chunk: Buffer) => (text += chunk.toString()))
      response.on('end', () => resolve(text))
    })
    request.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? 'error'))
    request.end()
  })
}

function raw(port: number, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(text))
    let answer = ''
    socket.on('data', (chunk) => (answer += chunk.toString()))
    socket.on('close', () => resolve(answer))
    socket.on('error', reject)
  })
}
