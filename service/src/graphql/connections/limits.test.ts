/** Clients of WebSockets and event streams that do not answer, do not read, or send too much cost others nothing. */
import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import type { ClientRequest, IncomingMessage } from 'node:http'
import { connect, type Socket } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { WebSocket } from 'ws'
import { openOwnDatabase, noPostgres } from '../../../test/support/database/databases.ts'
import { subscribe, startSockets, type SocketWorld } from '../../../test/support/graphql/socket.ts'
import { insertAsset } from '../../../test/support/index/rows.ts'
import type { Database } from '../../db/database.ts'
import { until } from '../../../test/support/wait.ts'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

const verified =
  'subscription { productVerified { verifiedAt product { id name description: metadata { description } } } }'
/** Makes a message of 300 bytes. */
const name = 'x'.repeat(200)

describe('a client', { skip: noPostgres }, () => {
  let database: Database
  let world: SocketWorld
  const opened: Socket[] = []
  before(async () => {
    database = await openOwnDatabase('migrated')
    await insertAsset(database, { tokenId: 1, name, tagHash: `0x${'09'.repeat(32)}`, state: 2 })
    world = await startSockets(database, { maxUnauthenticated: 5 })
  })
  after(async () => {
    for (const socket of opened) socket.destroy()
    await world.end()
    await database.close()
  })

  const tap = (count: number) =>
    database.query(
      `insert into outbox (topic, token_id, payload) select 'tap', 1, '{"at":"2026-01-01T00:00:00Z"}' from generate_series(1, $1::int)`,
      [count],
    )

  /** Connects over TCP: the client sends these messages, and reads nothing while it is paused. */
  async function byHand(messages: readonly object[], { url } = world): Promise<Socket> {
    const { port } = new URL(url)
    const socket = connect(Number(port), '127.0.0.1')
    opened.push(socket)
    socket.on('error', () => {})
    socket.write(
      `GET /graphql HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n` +
        `Sec-WebSocket-Key: ${randomBytes(16).toString('base64')}\r\nSec-WebSocket-Protocol: graphql-transport-ws\r\n\r\n`,
    )
    await once(socket, 'data')
    for (const message of messages) socket.write(frame(0x1, JSON.stringify(message)))
    return socket
  }
  const init = ({ key } = world) => ({ type: 'connection_init', payload: { authorization: `Bearer ${key}` } })
  const subscription = (id: number) => ({ id: String(id), type: 'subscribe', payload: { query: verified } })
  const dropped = () => world.lines.filter((line) => line.includes('"it does not read"')).length

  it('that is refused is not kept open by its client', async () => {
    const socket = connect({ port: Number(new URL(world.url).port), host: '127.0.0.1', allowHalfOpen: true })
    opened.push(socket)
    socket
      .on('error', () => {})
      .write('GET /other HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
    assert.match(String(await once(socket, 'data')), /^HTTP\/1\.1 404 /)
    await until(() => {
      socket.write('more')
      return socket.destroyed
    })
  })

  it('that answers no ping is dropped after two, and its subscription ended', async (t) => {
    await using own = await startSockets(database, { keepAliveMs: 1_500 })
    let socket: Socket | undefined
    const ponging = setInterval(() => socket?.write(frame(0xa, '')), 20)
    t.after(() => clearInterval(ponging))
    // A machine that is busy for seconds may lose the connection before it is set up.
    await until(async () => {
      if (socket === undefined || socket.destroyed) socket = await byHand([init(own), subscription(1)], own)
      return own.subscriptions() === 1
    })
    clearInterval(ponging)
    await until(() => own.subscriptions() === 0) // it reads on, but sends no pong
    assert.match(own.lines.join('\n'), /"no answer"/)
  })

  it('that does not read is dropped, does not grow memory and costs others nothing', async (t) => {
    await using own = await startSockets(database, { keepAliveMs: 2_000 })
    const other = subscribe(own.connect(), verified)
    await until(() => own.subscriptions() === 1)
    let stuck: Socket | undefined
    const ponging = setInterval(() => stuck?.write(frame(0xa, '')), 100) // answers pings without having read
    t.after(() => clearInterval(ponging))
    // A machine that is busy for seconds may lose the connection before it is set up.
    await until(async () => {
      if (stuck === undefined || stuck.destroyed)
        stuck = await byHand([init(own), ...Array.from({ length: 49 }, (_, id) => subscription(id))], own)
      return own.subscriptions() === 50
    })
    stuck?.pause()
    const before = memory()
    let most = 0
    for (let round = 0; round < 10; round += 1) {
      await tap(1_000)
      most = Math.max(most, memory() - before)
      await until(() => other.events.length >= (round + 1) * 1_000 - 256)
    }
    await until(() => other.events.length === 10_000)
    await until(() => own.subscriptions() === 1)
    clearInterval(ponging)
    assert.match(own.lines.join('\n'), /"it does not read"/)
    assert.ok(most < 25_000_000, `${Math.round(most / 1e6)} MB while 490,000 messages of 300 bytes could not be sent`)
    other.stop()
    stuck?.destroy()
  })

  it('that does not read its event stream is dropped, does not grow memory and costs others nothing', async () => {
    await using own = await startSockets(database, { stuckMs: 4_000 })
    const other = subscribe(own.connect(), verified)
    await until(() => own.subscriptions() === 1)
    const { hostname, port } = new URL(own.httpUrl)
    const stuck = connect(Number(port), hostname)
    opened.push(stuck)
    const names = Array.from({ length: 28 }, (_, n) => `name${n}: name`).join(' ') // 6 kB an event
    const query = encodeURIComponent(`subscription { productVerified { product { ${names} } } }`)
    stuck.write(
      `GET /graphql?query=${query} HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\nAuthorization: Bearer ${own.key}\r\n\r\n`,
    )
    await once(stuck, 'data')
    await until(() => own.subscriptions() === 2)
    stuck.pause()
    const before = memory()
    let most = 0
    for (let round = 1; round <= 3; round += 1) {
      await tap(2_500)
      await until(() => other.events.length === round * 2_500)
      most = Math.max(most, memory() - before)
    }
    await until(() => own.subscriptions() === 1)
    assert.match(own.httpLines.join('\n'), /"it does not read"/)
    assert.ok(most < 25_000_000, `${Math.round(most / 1e6)} MB while 45 MB could not be sent`)
    other.stop()
  })

  it('that floods with pings without reading the answers is dropped', async () => {
    const before = dropped()
    const socket = await byHand([init()])
    socket.pause()
    const flood = Buffer.concat(Array.from({ length: 500 }, () => frame(0x9, 'p'.repeat(125))))
    for (let round = 0; round < 2_000 && !socket.destroyed && socket.writable; round += 1) {
      if (!socket.write(flood)) await Promise.race([once(socket, 'drain').catch(() => {}), delay(500)])
      if (dropped() > before) break
    }
    await until(() => dropped() > before)
    socket.destroy()
  })

  it('may send 64 kB, not more', async () => {
    const socket = new WebSocket(world.url, 'graphql-transport-ws')
    await once(socket, 'open')
    socket.send(JSON.stringify(init()))
    await once(socket, 'message')
    socket.send(
      JSON.stringify({ id: '1', type: 'subscribe', payload: { query: `{ __typename } #${'x'.repeat(60_000)}` } }),
    )
    assert.match(String((await once(socket, 'message'))[0]), /"next"/)
    socket.send('x'.repeat(65_537))
    assert.equal((await once(socket, 'close'))[0], 1009)
  })

  it('may send a message in a thousand frames, not in more: one of a single byte takes a hundred times its memory', async () => {
    const socket = new WebSocket(world.url, 'graphql-transport-ws')
    await once(socket, 'open')
    const sendInPieces = (text: string) => {
      for (const sign of text) socket.send(sign, { fin: false })
      socket.send('', { fin: true })
    }
    sendInPieces(JSON.stringify(init()))
    assert.match(String((await once(socket, 'message'))[0]), /"connection_ack"/)
    sendInPieces('x'.repeat(1_001))
    assert.equal((await once(socket, 'close'))[0], 1008)
  })

  it('may send a frame in a thousand packets, not in more', async () => {
    const socket = await byHand([init()])
    const received: Buffer[] = []
    socket.setNoDelay().on('data', (data: Buffer) => received.push(data))
    socket.write(frame(0x1, 'x'.repeat(60_000)).subarray(0, 8))
    const policyViolation = Buffer.from([0x88, 0x02, 1_008 >> 8, 1_008 & 255])
    const isClosed = () => Buffer.concat(received).includes(policyViolation)
    // The kernel may join packets, so that more than a thousand are sent.
    for (let sent = 0; sent < 50_000 && !isClosed(); sent += 1) {
      socket.write('x')
      await new Promise(setImmediate)
    }
    await until(isClosed)
  })

  it('that uses an id twice is closed with 4409, however long the id is', async () => {
    const socket = new WebSocket(world.url, 'graphql-transport-ws')
    await once(socket, 'open')
    const closed = once(socket, 'close')
    const begun = { ...subscription(1), id: '\u{1f4a5}'.repeat(100) }
    for (const message of [init(), begun, begun]) {
      socket.send(JSON.stringify(message))
      if (message.type === 'connection_init') await once(socket, 'message')
    }
    assert.equal((await closed)[0], 4409)
  })

  describe('that begins an operation under an id that it has just completed', () => {
    const again = [{ id: '1', type: 'complete' }, subscription(1)]
    const query = { id: '2', type: 'subscribe', payload: { query: '{ __typename }' } }

    /** Sends messages in one packet, `first` as soon as the connection is there. Returns what the client receives. */
    async function send(first: readonly object[], messages: readonly object[]) {
      const socket = await byHand([init(), ...first])
      const packets: Buffer[] = []
      socket.on('data', (data: Buffer) => packets.push(data))
      const received = () => Buffer.concat(packets)
      await until(() => received().includes('connection_ack'))
      if (first.length > 0) await until(() => world.subscriptions() === 1)
      socket.write(Buffer.concat(messages.map((message) => frame(0x1, JSON.stringify(message)))))
      return { socket, received }
    }
    const isAnswered = (received: () => Buffer) => received().includes('"id":"2","type":"complete"')
    const isOver = () => world.connections.count() === 0 && world.subscriptions() === 0

    for (const [what, first, messages] of [
      ['and that runs', [subscription(1)], [...again, query]],
      ['and that has not begun', [], [subscription(1), ...again, query]],
    ] as const)
      it(`${what}, gets each event once, and leaves nothing behind`, async () => {
        const { socket, received } = await send(first, messages)
        await until(() => isAnswered(received) && world.subscriptions() === 1)
        for (let taps = 1; taps <= 3; taps += 1) {
          await tap(1)
          await until(() => received().toString('latin1').split('"type":"next"').length - 2 === taps) // one is the query's
        }
        socket.destroy()
        await until(isOver)
      })

    it('and completes it again gets nothing, and leaves nothing behind', async () => {
      const { socket, received } = await send([subscription(1)], [...again, ...again.slice(0, 1), query])
      await until(() => isAnswered(received) && world.subscriptions() === 0)
      socket.destroy()
      await until(isOver)
    })

    it('and a third one is closed with 4409, and leaves nothing behind', async () => {
      const { socket, received } = await send([subscription(1)], [...again, subscription(1)])
      await once(socket, 'close')
      assert.ok(received().includes(Buffer.from([4_409 >> 8, 4_409 & 255])))
      await until(isOver)
    })
  })

  it('may be one of a limited number that have sent no key yet', async () => {
    const unauthenticated = await Promise.all(
      Array.from({ length: 5 }, async () => {
        const socket = new WebSocket(world.url, 'graphql-transport-ws')
        await once(socket, 'open')
        return socket
      }),
    )
    const sixth = new WebSocket(world.url, 'graphql-transport-ws')
    const [request, refused] = (await once(sixth, 'unexpected-response')) as [ClientRequest, IncomingMessage]
    assert.deepEqual([refused.statusCode, refused.headers['retry-after']], [429, '5'])
    request.destroy()
    const [first, ...others] = unauthenticated
    first?.send(JSON.stringify(init()))
    await once(first as WebSocket, 'message')
    const seventh = new WebSocket(world.url, 'graphql-transport-ws')
    await once(seventh, 'open') // an authenticated connection does not count
    for (const socket of [first, seventh, ...others]) socket?.close()
  })

  it('gets 1001 when the server stops, and is dropped when it does not answer', { timeout: 240_000 }, async () => {
    await using own = await startSockets(database)
    const polite = new WebSocket(own.url, 'graphql-transport-ws')
    await once(polite, 'open')
    const { port } = new URL(own.url)
    const silent = connect(Number(port), '127.0.0.1')
    opened.push(silent)
    silent.write(
      `GET /graphql HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${createHash('sha256').digest('base64').slice(0, 22)}==\r\n\r\n`,
    )
    await once(silent, 'data')
    const goodbye = once(polite, 'close')
    await own.end()
    assert.equal((await goodbye)[0], 1001)
  })
})

/** A masked frame of a client (RFC 6455 §5.2) with a mask of zeros. */
function frame(opcode: number, text: string): Buffer {
  const body = Buffer.from(text)
  const head =
    body.length < 126 ? [0x80 | opcode, 0x80 | body.length] : [0x80 | opcode, 0xfe, body.length >> 8, body.length & 255]
  return Buffer.concat([Buffer.from(head), Buffer.alloc(4), body])
}

/** Bytes in use, without garbage. */
function memory(): number {
  collectGarbage()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}
