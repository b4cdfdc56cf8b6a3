/** Tasks of the A2A agent: every state, and who may see which (A2A 1.0 §3). */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { noAsset, scriptedTools, verdict } from '../../support/agents/tools.ts'
import { eventsOf, said, startA2a, type Json } from '../../support/agents/a2a.ts'

type A2a = Awaited<ReturnType<typeof startA2a>>

describe('a task of the A2A agent', () => {
  let a2a: A2a
  let scripted: ReturnType<typeof scriptedTools>
  before(async () => {
    scripted = scriptedTools()
    a2a = await startA2a(scripted)
  })
  after(() => a2a.close())

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

  it('takes the names of its parameters in snake case too, and leaves data as it is', async () => {
    const message = { message_id: 'm', role: 'ROLE_USER', parts: [{ data: { token_id: '42', snake_case: 1 } }] }
    scripted.calls.length = 0
    const { result } = await a2a.rpc('SendMessage', { message, configuration: { history_length: 0 } })
    assert.ok(!('history' in result.task))
    assert.deepEqual(scripted.calls, [['verify_asset', { token_id: '42', snake_case: 1 }]])
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
  let a2a: A2a
  let contextId: string
  const ids: string[] = []
  before(async () => {
    a2a = await startA2a(scriptedTools())
    for (const text of ['42', '1', 'verify', '7']) {
      const { task } = (await a2a.rpc('SendMessage', said(text, contextId ? { contextId } : {}))).result
      contextId ??= task.contextId
      assert.equal(task.contextId, contextId)
      ids.unshift(task.id)
    }
  })
  after(() => a2a.close())

  const list = async (params: object) => (await a2a.rpc('ListTasks', params)).result as Json
  const idsOf = ({ tasks }: Json) => tasks.map(({ id }: Json) => id)

  it('is empty without a context: callers are anonymous', async () => {
    assert.deepEqual(await list({}), { tasks: [], nextPageToken: '', pageSize: 50, totalSize: 0 })
    assert.deepEqual((await a2a.rest('GET', '/tasks')).tasks, [])
    assert.deepEqual((await list({ contextId: 'another' })).tasks, [])
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
