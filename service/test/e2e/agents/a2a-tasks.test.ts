/**
 * The A2A agent (A2A 1.0 §3, §9, §11): tasks in every state and who may see which. Streams, and how much at once; requests that are not of
 * the protocol, and its version.
 */
import assert from 'node:assert/strict'
import { request } from 'node:http'
import { after, before, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { clientKeys } from '../../../src/http/client-ip.ts'
import { createRateLimiter } from '../../../src/http/rate-limit/limiter.ts'
import { eventsOf, said, shapesOf, startA2a, type Json } from '../../support/agents/a2a.ts'
import { noAsset, scriptedTools, verdict } from '../../support/agents/tools.ts'
import { until } from '../../support/wait.ts'

const scripted = scriptedTools()
const a2a = await startA2a(scripted)
after(() => a2a.close())

describe('a task of the A2A agent', () => {
  const send = async (...args: Parameters<typeof said>) =>
    (await a2a.rpc('SendMessage', said(...args))).result.task as Json

  it('is completed with the tool’s result as the data of its one artifact', async () => {
    const task = await send({ skill: 'verify_asset', token_id: '42' })
    assert.equal(task.status.state, 'TASK_STATE_COMPLETED')
    assert.match(task.status.timestamp, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    assert.equal(task.artifacts.length, 1)
    assert.deepEqual(task.artifacts[0].parts, [{ data: verdict, mediaType: 'application/json' }])
    assert.equal(task.artifacts[0].name, 'verify_asset')
    assert.match(task.id, /^[\da-f]{8}-/)
    assert.match(task.contextId, /^[\da-f]{8}-/)
    assert.equal(task.history[0].role, 'ROLE_USER')
  })

  it('is failed with the fixed body of the error', async () => {
    const task = await send('verify 1')
    assert.equal(task.status.state, 'TASK_STATE_FAILED')
    assert.ok(!noAsset.ok)
    assert.deepEqual(task.status.message.parts, [{ data: noAsset.error, mediaType: 'application/json' }])
    assert.equal(task.status.message.role, 'ROLE_AGENT')
    assert.ok(!('artifacts' in task))
  })

  it('is failed, and ends, where the tool throws', async () => {
    const task = await send('verify 3')
    assert.equal(task.status.state, 'TASK_STATE_FAILED')
    assert.equal(task.status.message.parts[0].data.error.code, 'INTERNAL')
  })

  it('is rejected for a skill that the agent has not', async () => {
    const task = await send({ skill: 'transfer_asset', token_id: '42' })
    assert.equal(task.status.state, 'TASK_STATE_REJECTED')
  })

  it('waits for a token id, keeps the skill, and goes on with the next message', async () => {
    const waiting = await send('Is my bag flagged?')
    assert.equal(waiting.status.state, 'TASK_STATE_INPUT_REQUIRED')
    assert.match(waiting.status.message.parts[0].text, /token id/)
    const task = await send('42', { taskId: waiting.id })
    assert.equal(task.id, waiting.id)
    assert.equal(task.contextId, waiting.contextId)
    assert.equal(task.status.state, 'TASK_STATE_COMPLETED')
    assert.equal(task.artifacts[0].name, 'check_flagged')
    assert.deepEqual(
      task.history.map(({ role }: Json) => role),
      ['ROLE_USER', 'ROLE_AGENT', 'ROLE_USER'],
    )
  })

  it('is submitted when the client does not wait, working until the tool answers, and cancelled if it says so', async () => {
    const params = { ...said({ token_id: '2' }), configuration: { returnImmediately: true } }
    const { task } = (await a2a.rpc('SendMessage', params)).result
    assert.equal(task.status.state, 'TASK_STATE_SUBMITTED')
    const { result: now } = await a2a.rpc('GetTask', { id: task.id })
    assert.equal(now.status.state, 'TASK_STATE_WORKING')
    const busy = await a2a.rpc('SendMessage', said('42', { taskId: task.id }))
    assert.equal(busy.error.code, -32004)
    const { result: cancelled } = await a2a.rpc('CancelTask', { id: task.id })
    assert.equal(cancelled.status.state, 'TASK_STATE_CANCELED')
    scripted.release()
    await delay(10)
    assert.equal((await a2a.rpc('GetTask', { id: task.id })).result.status.state, 'TASK_STATE_CANCELED')
  })

  it('keeps the latest messages of its history, and little of long ones', async () => {
    const long = `verify ${'x'.repeat(50_000)}`
    let task = await send(long)
    for (const word of ['a', 'b', 'c', 'd', 'last']) task = await send(`${long} ${word}`, { taskId: task.id })
    assert.equal(task.status.state, 'TASK_STATE_INPUT_REQUIRED')
    const { result, length } = await a2a
      .rpc('GetTask', { id: task.id })
      .then((answer) => ({ ...answer, length: JSON.stringify(answer).length }) as Json)
    assert.ok(length < 110_000, `${length} characters`)
    assert.match(result.history.at(-1).parts[0].text, /x last$/)
  })

  it('takes the names of its parameters in snake case and a role by its number too, and leaves data as it is', async () => {
    const message = { message_id: 'm', role: 1, parts: [{ data: { token_id: '42', snake_case: 1 } }] }
    scripted.calls.length = 0
    const { result } = await a2a.rpc('SendMessage', { message, configuration: { history_length: 0 } })
    assert.ok(!('history' in result.task))
    assert.deepEqual(scripted.calls, [['verify_asset', { token_id: '42', snake_case: 1 }]])
  })

  it('is the one that the path of HTTP+JSON names, whatever the body names and however the path is encoded', async () => {
    const { id } = await send('verify')
    const path = `/tasks/%${id.charCodeAt(0).toString(16)}${id.slice(1)}`
    assert.equal((await a2a.rest('POST', `/tasks/${unknown}:cancel`, { id })).status, 404)
    assert.equal((await a2a.rest('POST', `${path}:cancel`, { id: unknown })).id, id)
  })

  it('takes null for a parameter that is left out, as JSON of protocol buffers has it', async () => {
    const message = { ...user, contextId: null, metadata: null, parts: [{ text: '42', data: null, mediaType: null }] }
    const part = (await a2a.rpc('SendMessage', { message })).error
    assert.match(part.message, /exactly one of text, data/) // null is a value of data
    const configuration = { historyLength: 0, returnImmediately: null, taskPushNotificationConfig: null }
    for (const sent of [null, configuration])
      assert.ok((await a2a.rpc('SendMessage', { message: user, configuration: sent })).result.task)
    const page = { contextId: null, pageSize: null, pageToken: null, includeArtifacts: null, status: null }
    const { result } = await a2a.rpc('ListTasks', { ...page, historyLength: null, statusTimestampAfter: null })
    assert.deepEqual(result.tasks, [])
  })

  it('runs its tool once, whatever the binding', async () => {
    scripted.calls.length = 0
    await send('42')
    await a2a.rest('POST', '/message:send', said('42'))
    await eventsOf(await a2a.post('/a2a/v1/message:stream', said('42')))
    assert.equal(scripted.calls.length, 3)
  })
})

describe('the list of tasks', () => {
  let contextId: string
  const ids: string[] = []
  before(async () => {
    for (const text of ['42', '1', 'verify', '7']) {
      const { task } = (await a2a.rpc('SendMessage', said(text, contextId ? { contextId } : {}))).result
      contextId ??= task.contextId
      assert.equal(task.contextId, contextId)
      ids.unshift(task.id)
    }
  })

  const list = async (params: object) => (await a2a.rpc('ListTasks', params)).result as Json
  const idsOf = ({ tasks }: Json) => tasks.map(({ id }: Json) => id)

  it('is empty without a context: callers are anonymous', async () => {
    assert.deepEqual(await list({}), { tasks: [], nextPageToken: '', pageSize: 50, totalSize: 0 })
    assert.deepEqual((await a2a.rest('GET', '/tasks')).tasks, [])
    assert.deepEqual((await list({ contextId: 'another' })).tasks, [])
  })

  it('of a context that a client named needs a name that cannot be guessed', async () => {
    for (const [name, listed] of [
      ['session-1', 0],
      ['00000000-0000-0000-0000-000000000000', 0],
      ['FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF', 0],
      [`my session ${crypto.randomUUID().toUpperCase()}`, 1],
    ] as const) {
      const { task } = (await a2a.rpc('SendMessage', said('for Alice', { contextId: name }))).result
      assert.deepEqual([task.contextId, task.status.state], [name, 'TASK_STATE_INPUT_REQUIRED'])
      const { tasks, totalSize } = await list({ contextId: name })
      assert.deepEqual([tasks.length, totalSize], [listed, listed])
      assert.equal((await a2a.rpc('GetTask', { id: task.id })).result.id, task.id)
    }
  })

  it('has the tasks of one context, the last changed first, without artifacts unless asked for', async () => {
    const all = await list({ contextId })
    assert.deepEqual(idsOf(all), ids)
    assert.equal(all.totalSize, 4)
    assert.ok(all.tasks.every((task: Json) => !('artifacts' in task)))
    const whole = await a2a.rest('GET', `/tasks?contextId=${contextId}&includeArtifacts=true&historyLength=0`)
    assert.deepEqual(
      whole.tasks.map(({ artifacts, history }: Json) => [artifacts.length, history]),
      [
        [1, undefined],
        [0, undefined],
        [0, undefined],
        [1, undefined],
      ],
    )
  })

  it('comes in pages that neither repeat nor lose a task', async () => {
    const first = await list({ contextId, pageSize: 3 })
    assert.deepEqual(idsOf(first), ids.slice(0, 3))
    const second = await a2a.rest('GET', `/tasks?context_id=${contextId}&page_size=3&page_token=${first.nextPageToken}`)
    assert.deepEqual(idsOf(second), ids.slice(3))
    assert.equal(second.nextPageToken, '')
    assert.equal(second.totalSize, 4)
  })

  it('can be narrowed to a state and to a time', async () => {
    assert.deepEqual(idsOf(await list({ contextId, status: 'TASK_STATE_FAILED' })), [ids[2]])
    assert.deepEqual(idsOf(await list({ contextId, status: 'TASK_STATE_AUTH_REQUIRED' })), [])
    const future = new Date(Date.now() + 60_000).toISOString()
    assert.deepEqual(idsOf(await list({ contextId, statusTimestampAfter: future })), [])
  })
})

describe('a stream of the A2A agent', () => {
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

  it('begins with as much of the history as the client wants', async () => {
    const params = { ...said('42'), configuration: { historyLength: 0 } }
    const [first] = await eventsOf(await a2a.post('/a2a/v1/message:stream', params))
    assert.ok(first?.task && !('history' in first.task))
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
    await using a2a = await startA2a({ ...scriptedTools(), maxStreams: 1, subscriptionMs: 60_000 })
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
    const byRpc = await a2a.rpc('SubscribeToTask', { id: task.id })
    assert.deepEqual([byRpc.status, byRpc.error.code], [429, -32000])
    leaving.abort()
    await until(async () => (await statusOf(subscribe())) === 200)
  })

  it('are limited for each client, IPv6 by its /64, and other clients have room', async () => {
    // The peer of every connection is this machine: a proxy in front names the clients.
    const clientKey = clientKeys(['127.0.0.0/8', '::1'])
    await using a2a = await startA2a({ ...scriptedTools(), maxPerClient: 1, subscriptionMs: 60_000, clientKey })
    const { task } = (await a2a.rpc('SendMessage', said('verify'))).result
    const subscribe = (client: string) =>
      fetch(`${a2a.url}/a2a/v1/tasks/${task.id}:subscribe`, {
        headers: { 'A2A-Version': '1.0', 'X-Forwarded-For': client },
      })
    const first = await subscribe('2001:db8:1:2::1')
    const refused = await subscribe('2001:db8:1:2:ffff::2')
    assert.deepEqual([first.status, refused.status], [200, 429])
    assert.match(refused.headers.get('retry-after') ?? '', /^[1-9]\d*$/)
    assert.equal((await subscribe('2001:db8:1:3::1')).status, 200)
  })

  it('that is one too many leaves no task behind that waits for ever', async () => {
    await using a2a = await startA2a({ ...scriptedTools(), maxStreams: 0 })
    const { task } = (await a2a.rpc('SendMessage', said('verify'))).result
    const refused = await a2a.post('/a2a/v1/message:stream', said('42', { taskId: task.id }))
    assert.equal(refused.status, 429)
    const stateOf = async () => (await a2a.rest('GET', `/tasks/${task.id}`))['status'].state as string
    await until(async () => (await stateOf()) === 'TASK_STATE_COMPLETED')
  })

  async function statusOf(answer: Promise<Response>): Promise<number> {
    const response = await answer
    await response.body?.cancel()
    return response.status
  }
})

describe('the quota of the A2A agent', () => {
  it('answers 429 in the encoding of each binding, with Retry-After', async () => {
    await using a2a = await startA2a({ ...scriptedTools(), limiter: createRateLimiter({ limit: 1 }) })
    assert.equal((await a2a.rpc('SendMessage', said('42'))).status, 200)
    const rpc = await a2a.rpc('SendMessage', said('42'))
    assert.deepEqual([rpc.status, rpc.error.code], [429, -32000])
    const response = await a2a.post('/a2a/v1/message:send', said('42'))
    assert.equal(response.status, 429)
    assert.match(response.headers.get('retry-after') ?? '', /^\d+$/)
    assert.equal(((await response.json()) as Json).error.status, 'RESOURCE_EXHAUSTED')
  })
})

const user = { messageId: 'm', role: 'ROLE_USER', parts: [{ text: '42' }] }
const unknown = '00000000-0000-4000-8000-000000000000'

describe('a request to the A2A agent', () => {
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
    assert.equal(await error({ jsonrpc: '2.0', id: 1, method: 'GetTask', params: {} }), -32602)
    const deep = `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"a":${'['.repeat(30_000)}${']'.repeat(30_000)}}}`
    assert.equal(await error(deep), -32602)
  })

  it('that is none of HTTP+JSON gets the status of its kind', async () => {
    assert.equal((await a2a.rest('GET', '/nothing')).status, 404)
    assert.equal((await a2a.rest('GET', '/tenant/tasks')).status, 404)
    assert.equal((await a2a.post('/a2a/v1/message:send', '{')).status, 400)
    assert.equal((await a2a.post('/a2a/v1/message:send', '[]')).status, 400)
    assert.equal(
      (await a2a.post('/a2a/v1/message:send', `{"a":${'['.repeat(30_000)}${']'.repeat(30_000)}}`)).status,
      400,
    )
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
