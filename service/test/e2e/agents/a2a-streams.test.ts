/** Streams and budgets of the A2A agent: what comes in which order, and how much at once (A2A 1.0 §3.1.2, §3.1.6, §3.5.2). */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { scriptedTools } from '../../support/agents/tools.ts'
import { createRateLimiter } from '../../../src/http/rate-limit/limiter.ts'
import { eventsOf, said, shapesOf, startA2a, type Json } from '../../support/agents/a2a.ts'
import { until } from '../../support/wait.ts'

type A2a = Awaited<ReturnType<typeof startA2a>>

describe('a stream of the A2A agent', () => {
  let a2a: A2a
  let scripted: ReturnType<typeof scriptedTools>
  before(async () => {
    scripted = scriptedTools()
    a2a = await startA2a(scripted)
  })
  after(() => a2a.close())

  const stream = async (content: string | object) => {
    const response = await a2a.post('/a2a/v1/message:stream', said(content))
    assert.equal(response.headers.get('content-type'), 'text/event-stream')
    return eventsOf(response)
  }

  it('is submitted, working, artifact, completed, in this order', async () => {
    const events = await stream('verify 42')
    assert.deepEqual(shapesOf(events), [
      'task TASK_STATE_SUBMITTED',
      'TASK_STATE_WORKING',
      'artifact verify_asset',
      'TASK_STATE_COMPLETED',
    ])
    assert.equal(events[2]?.artifactUpdate.lastChunk, true)
    assert.equal(new Set(events.map((event) => (Object.values(event)[0] as Json).contextId)).size, 1)
  })

  it('has the same events over JSON-RPC, each in an envelope with the id of the request', async () => {
    const body = { jsonrpc: '2.0', id: 7, method: 'SendStreamingMessage', params: said('history of 42') }
    const events = await eventsOf(await a2a.post('/a2a/', body))
    assert.ok(events.every(({ jsonrpc, id }) => jsonrpc === '2.0' && id === 7))
    assert.deepEqual(shapesOf(events.map(({ result }) => result)).slice(1), [
      'TASK_STATE_WORKING',
      'artifact get_lifecycle_history',
      'TASK_STATE_COMPLETED',
    ])
  })

  it('ends with failed, rejected or input required where there is nothing to give', async () => {
    assert.deepEqual(shapesOf(await stream('verify 1')).slice(1), ['TASK_STATE_WORKING', 'TASK_STATE_FAILED'])
    assert.deepEqual(shapesOf(await stream({ skill: 'x', token_id: '1' })).slice(1), ['TASK_STATE_REJECTED'])
    assert.deepEqual(shapesOf(await stream('verify')).slice(1), ['TASK_STATE_INPUT_REQUIRED'])
  })

  it('of a subscription begins with the task and holds until it has ended', async () => {
    const params = { ...said({ token_id: '2' }), configuration: { returnImmediately: true } }
    const { task } = (await a2a.rpc('SendMessage', params)).result
    const subscribed = await a2a.post(`/a2a/v1/tasks/${task.id}:subscribe`, '')
    const other = await a2a.get(`/a2a/v1/tasks/${task.id}:subscribe`)
    setTimeout(scripted.release, 50)
    const events = shapesOf(await eventsOf(subscribed))
    assert.deepEqual(events, ['task TASK_STATE_WORKING', 'artifact verify_asset', 'TASK_STATE_COMPLETED'])
    assert.deepEqual(shapesOf(await eventsOf(other)), events)
    const late = await a2a.rest('POST', `/tasks/${task.id}:subscribe`)
    assert.equal(late.error.details[0].reason, 'UNSUPPORTED_OPERATION')
  })

  it('of a subscription to a task that waits for input ends after its time', async () => {
    const { task } = (await a2a.rpc('SendMessage', said('verify'))).result
    const began = performance.now()
    const events = await eventsOf(await a2a.post(`/a2a/v1/tasks/${task.id}:subscribe`, ''))
    assert.deepEqual(shapesOf(events), ['task TASK_STATE_INPUT_REQUIRED'])
    assert.ok(performance.now() - began > 200)
  })
})

describe('the streams of the A2A agent', () => {
  it('are limited in number, and one that its client has left makes room', async () => {
    const a2a = await startA2a({ ...scriptedTools(), maxStreams: 1, subscriptionMs: 60_000 })
    try {
      const { task } = (await a2a.rpc('SendMessage', said('verify'))).result
      const leaving = new AbortController()
      const subscribe = (signal?: AbortSignal) =>
        fetch(`${a2a.url}/a2a/v1/tasks/${task.id}:subscribe`, {
          headers: { 'A2A-Version': '1.0' },
          signal: signal ?? null,
        })
      const first = await subscribe(leaving.signal)
      const reader = first.body?.getReader()
      await reader?.read()
      const second = await subscribe()
      assert.deepEqual([second.status, ((await second.json()) as Json).error.status], [429, 'RESOURCE_EXHAUSTED'])
      leaving.abort()
      await until(async () => (await statusOf(subscribe())) === 200)
    } finally {
      await a2a.close()
    }
  })

  async function statusOf(answer: Promise<Response>): Promise<number> {
    const response = await answer
    await response.body?.cancel()
    return response.status
  }
})

describe('the quota of the A2A agent', () => {
  it('answers 429 in the encoding of each binding, with Retry-After', async () => {
    const a2a = await startA2a({ ...scriptedTools(), limiter: createRateLimiter({ limit: 1 }) })
    try {
      assert.equal((await a2a.rpc('SendMessage', said('42'))).status, 200)
      const rpc = await a2a.rpc('SendMessage', said('42'))
      assert.deepEqual([rpc.status, rpc.error.code], [429, -32000])
      const response = await a2a.post('/a2a/v1/message:send', said('42'))
      assert.equal(response.status, 429)
      assert.match(response.headers.get('retry-after') ?? '', /^\d+$/)
      assert.equal(((await response.json()) as Json).error.status, 'RESOURCE_EXHAUSTED')
    } finally {
      await a2a.close()
    }
  })
})
