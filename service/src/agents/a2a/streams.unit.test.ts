import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setImmediate as tick } from 'node:timers/promises'
import type { TaskListener } from './tasks.ts'
import { createEventStreams } from './streams.ts'

const plain = (event: object) => event

describe('a stream of events', () => {
  it('writes each event in its envelope, and closes at the end', async () => {
    let listener: TaskListener | undefined
    const body = createEventStreams().open(
      'client',
      (receiver) => {
        listener = receiver
        return () => {}
      },
      (event) => ({ wrapped: event }),
    )
    listener?.event({ task: { id: 'a' } } as never)
    listener?.end()
    listener?.end()
    listener?.event({ task: { id: 'late' } } as never)
    assert.equal(await new Response(body).text(), 'data: {"wrapped":{"task":{"id":"a"}}}\n\n')
  })

  it('removes its listener when the client leaves, and when all events came at once', async () => {
    let stops = 0
    const streams = createEventStreams()
    const stop = () => void (stops += 1)
    const left = streams.open('client', () => stop, plain)
    await left?.cancel()
    assert.equal(stops, 1)
    const atOnce = streams.open(
      'client',
      (receiver) => {
        receiver.end()
        return stop
      },
      plain,
    )
    assert.equal(await new Response(atOnce).text(), '')
    assert.equal(stops, 2)
  })

  it('has a comment every 15 seconds, so that proxies keep it open, until it ends', async ({ mock }) => {
    mock.timers.enable({ apis: ['setInterval'] })
    const reader = createEventStreams()
      .open('client', () => () => {}, plain)
      ?.getReader()
    mock.timers.tick(15_000)
    assert.equal(new TextDecoder().decode((await reader?.read())?.value), ':\n\n')
    const clear = mock.method(globalThis, 'clearInterval')
    await reader?.cancel()
    assert.equal(clear.mock.callCount(), 1)
  })

  it('is rejected when too many are open, and accepted after one has ended', async () => {
    const streams = createEventStreams({ maxStreams: 2 })
    const open = () => streams.open('client', () => () => {}, plain)
    const [first] = [open(), open()]
    assert.equal(open(), null)
    await first?.cancel()
    await first?.cancel()
    await tick()
    assert.notEqual(open(), null)
    assert.equal(open(), null)
  })

  it('is rejected when its client has too many open, while other clients have room', async () => {
    const streams = createEventStreams({ maxStreams: 5, maxPerClient: 2 })
    const open = (client: string) => streams.open(client, () => () => {}, plain)
    const [first] = [open('a'), open('a')]
    assert.equal(open('a'), null)
    const others = ['b', 'b', 'c'].map(open)
    assert.ok(!others.includes(null))
    assert.equal(open('d'), null)
    await first?.cancel()
    await first?.cancel()
    await tick()
    assert.notEqual(open('a'), null)
    assert.equal(open('a'), null)
  })
})
