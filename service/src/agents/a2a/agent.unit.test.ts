/** The A2A agent without its bindings: streams, the listeners that they leave, and the length of a history. */
import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { describe, it } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { said, shapesOf } from '../../../test/support/agents/a2a.ts'
import { scriptedTools } from '../../../test/support/agents/tools.ts'
import type { JsonObject } from '../../lib/json.ts'
import { createA2aAgent, type TaskOutcome } from './agent.ts'
import { createTaskStore, type TaskStore } from './tasks.ts'
import type { StreamEvent, Task } from './wire.ts'

function setUp({ maxTasks = 10, subscriptionMs = 60_000 } = {}) {
  const { tools, release } = scriptedTools()
  const store = createTaskStore({ maxTasks })
  const listening = new Set<object>()
  const listen: TaskStore['listen'] = (id, listener) => {
    const stop = store.listen(id, listener)
    listening.add(listener)
    return () => {
      stop()
      listening.delete(listener)
    }
  }
  const stopping = new AbortController()
  const { signal } = stopping
  const agent = createA2aAgent({ tools, tasks: { ...store, listen }, subscriptionMs, stopping: signal })

  async function send(...[content, ids, configuration = {}]: [...Parameters<typeof said>, object?]): Promise<Task> {
    const outcome = await agent.SendMessage({ ...said(content, ids), configuration } as JsonObject)
    assert.ok('result' in outcome)
    return (outcome.result as { task: Task }).task
  }
  const stateOf = (id: string) => {
    const outcome = agent.GetTask({ id })
    return 'result' in outcome ? (outcome.result as Task).status.state : outcome
  }
  const left = () => [listening.size, getEventListeners(signal, 'abort').length]
  return { agent, release, stopping, send, stateOf, left }
}

function open(outcome: TaskOutcome) {
  assert.ok('stream' in outcome)
  const events: StreamEvent[] = []
  const { promise: ended, resolve } = Promise.withResolvers<void>()
  let hasEnded = false
  const end = () => {
    hasEnded = true
    resolve()
  }
  const stop = outcome.stream({ event: (event) => events.push(event), end })
  return { shapes: () => shapesOf(events), stop, ended, hasEnded: () => hasEnded }
}

describe('a stream of the A2A agent that is opened late', () => {
  it('does not work on a task that was cancelled meanwhile', async () => {
    const { agent, send, stateOf } = setUp()
    const { id } = await send('verify')
    const outcome = agent.SendStreamingMessage(said('42', { taskId: id }) as JsonObject)
    agent.CancelTask({ id })
    const stream = open(outcome)
    await stream.ended
    assert.deepEqual([stream.shapes(), stateOf(id)], [['task TASK_STATE_CANCELED'], 'TASK_STATE_CANCELED'])
  })

  it('ends at once where its task has ended or was dropped meanwhile', async () => {
    const { agent, send, release } = setUp({ maxTasks: 1 })
    const { id } = await send({ token_id: '2' }, {}, { returnImmediately: true })
    const [late, later] = [agent.SubscribeToTask({ id }), agent.SubscribeToTask({ id })]
    release()
    await setImmediate()
    const ended = open(late)
    assert.deepEqual([ended.shapes(), ended.hasEnded()], [['task TASK_STATE_COMPLETED'], true])
    await send('42')
    assert.equal(open(later).hasEnded(), true)
  })
})

describe('a stream of the A2A agent', () => {
  it('leaves no listener behind, however it ends', async () => {
    const { agent, send, stopping, left } = setUp()
    const message = open(agent.SendStreamingMessage(said('42') as JsonObject))
    await message.ended
    await setImmediate()
    assert.deepEqual(left(), [0, 0])
    const { id } = await send('verify')
    open(agent.SubscribeToTask({ id })).stop()
    assert.deepEqual(left(), [0, 0])
    const stopped = open(agent.SubscribeToTask({ id }))
    assert.deepEqual(left(), [1, 1])
    stopping.abort()
    assert.deepEqual([stopped.hasEnded(), left()], [true, [0, 0]])
    assert.equal(open(agent.SubscribeToTask({ id })).hasEnded(), true)
    const short = setUp({ subscriptionMs: 1 })
    const late = open(short.agent.SubscribeToTask({ id: (await short.send('verify')).id }))
    await late.ended
    assert.deepEqual(short.left(), [0, 0])
  })
})

describe('the history of a task that goes on', () => {
  it('has the latest twenty messages', async () => {
    const { send } = setUp()
    const { id: taskId } = await send('verify')
    for (let more = 0; more < 14; more += 1) await send('verify', { taskId })
    const { history = [] } = await send({ skill: 'verify_asset', last: true }, { taskId })
    assert.equal(history.length, 20)
    assert.deepEqual(history.at(-1)?.parts, [
      { data: { skill: 'verify_asset', last: true }, mediaType: 'application/json' },
    ])
  })
})
