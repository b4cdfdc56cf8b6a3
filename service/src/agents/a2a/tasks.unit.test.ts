import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { said } from '../../../test/support/agents/a2a.ts'
import { scriptedTools } from '../../../test/support/agents/tools.ts'
import type { JsonObject } from '../../lib/json.ts'
import { createA2aAgent } from './agent.ts'
import { createTaskStore, createStatus, listTasks, withHistory, type TaskPage } from './tasks.ts'
import type { StreamEvent, Task, TaskState } from './wire.ts'

function task(id: string, state: TaskState = 'TASK_STATE_WORKING', contextId = 'c'): Task {
  return { id, contextId, status: createStatus({ id, contextId }, state) }
}

describe('the store of tasks', () => {
  it('drops the least recently used task', () => {
    const store = createTaskStore({ maxTasks: 2 })
    store.put(task('a'), undefined)
    store.put(task('b'), undefined)
    assert.ok(store.get('a'))
    store.put(task('c'), undefined)
    assert.deepEqual(
      ['a', 'b', 'c'].map((id) => store.get(id) !== undefined),
      [true, false, true],
    )
  })

  it('keeps within its maximum of bytes', () => {
    const store = createTaskStore({ maxBytes: 2_000 })
    const long = (id: string): Task => ({
      ...task(id),
      artifacts: [{ artifactId: 'x'.repeat(400), name: '', parts: [] }],
    })
    for (const id of ['a', 'b', 'c']) store.put(long(id), undefined)
    assert.equal(store.get('a'), undefined)
    assert.ok(store.get('c'))
    store.put(task('c', 'TASK_STATE_COMPLETED'), undefined)
    store.put(long('d'), undefined)
    assert.ok(store.get('c'), 'a task that has become small makes room')
  })

  it('counts the memory of small values, not their characters alone', () => {
    const store = createTaskStore({ maxBytes: 150_000 })
    const parts = [{ data: Array.from({ length: 1_000 }, () => ({})) }]
    for (const id of ['a', 'b', 'c'])
      store.put({ ...task(id), artifacts: [{ artifactId: '', name: '', parts }] }, undefined)
    assert.deepEqual(
      ['a', 'b', 'c'].map((id) => store.get(id) !== undefined),
      [false, true, true],
    )
  })

  it('drops a task an hour after its last change', () => {
    let now = 0
    const store = createTaskStore({ now: () => now })
    store.put(task('a'), undefined)
    now = 3_599_999
    assert.ok(store.get('a'))
    store.put(task('a'), undefined)
    now = 3_600_001
    assert.equal(store.ofContext('c').length, 1)
    now = 7_200_000
    assert.equal(store.get('a'), undefined)
    assert.equal(store.ofContext('c').length, 0)
  })

  it('does not get a dropped task back from its tool, which answers later', async () => {
    const { tools, release } = scriptedTools()
    const agent = createA2aAgent({ tools, tasks: createTaskStore({ maxTasks: 1 }) })
    const slow = { ...said({ token_id: '2' }), configuration: { returnImmediately: true } }
    const outcome = await agent.SendMessage(slow as JsonObject)
    const { id } = ('result' in outcome && (outcome.result as { task: Task }).task) || assert.fail()
    await agent.SendMessage(said('42') as JsonObject)
    release()
    await setImmediate()
    assert.ok('fault' in agent.GetTask({ id }))
  })

  it('sends every listener the same events in the same order, and ends them with the task', () => {
    const store = createTaskStore()
    const received: unknown[][] = [[], [], []]
    store.put(task('a'), undefined)
    const stops = received.map((events) =>
      store.listen('a', { event: (event) => events.push(event), end: () => events.push('end') }),
    )
    const event = (state: TaskState): StreamEvent => {
      const { contextId, status } = task('a', state)
      return { statusUpdate: { taskId: 'a', contextId, status } }
    }
    const [first, second] = [event('TASK_STATE_WORKING'), event('TASK_STATE_COMPLETED')]
    store.put(task('a'), undefined, [first])
    stops[1]?.()
    store.put(task('a', 'TASK_STATE_COMPLETED'), undefined, [second])
    assert.deepEqual(received, [[first, second, 'end'], [first], [first, second, 'end']])
  })

  it('ends the listeners of a task that it drops', () => {
    const store = createTaskStore({ maxTasks: 1 })
    let ends = 0
    store.put(task('a'), undefined)
    store.listen('a', { event: () => {}, end: () => (ends += 1) })
    store.put(task('b'), undefined)
    assert.equal(ends, 1)
  })
})

describe('the list of tasks', () => {
  it('has the last changed first, whichever was read last', () => {
    const store = createTaskStore()
    const contextId = crypto.randomUUID()
    for (const id of ['a', 'b', 'c']) store.put(task(id, 'TASK_STATE_WORKING', contextId), undefined)
    store.get('a')
    const { tasks } = listTasks(store, { contextId }) as TaskPage
    assert.deepEqual(
      tasks.map(({ id }) => id),
      ['c', 'b', 'a'],
    )
  })

  it('comes in pages of a megabyte, or one task, so that no request makes a larger answer', () => {
    const store = createTaskStore()
    const contextId = crypto.randomUUID()
    const sizes = [300_000, 300_000, 300_000, 300_000, 2_000_000, 10]
    for (const [index, size] of sizes.entries())
      store.put(
        {
          ...task(String(index), 'TASK_STATE_COMPLETED', contextId),
          artifacts: [{ artifactId: 'x'.repeat(size), name: '', parts: [] }],
        },
        undefined,
      )
    const pages: string[][] = []
    let pageToken = ''
    do {
      const page = listTasks(store, { contextId, includeArtifacts: true, pageSize: 100, pageToken }) as TaskPage
      assert.deepEqual([page.pageSize, page.totalSize], [100, 6])
      pages.push(page.tasks.map(({ id }) => id))
      pageToken = page.nextPageToken
    } while (pageToken !== '')
    assert.deepEqual(pages, [['5'], ['4'], ['3', '2', '1'], ['0']])
    const without = listTasks(store, { contextId, pageSize: 100 }) as TaskPage
    assert.equal(without.tasks.length, 6)
  })
})

describe('the history of a task', () => {
  const message = (messageId: string) =>
    ({ messageId, contextId: 'c', taskId: 'a', role: 'ROLE_USER', parts: [] }) as const
  const long: Task = { ...task('a'), history: [message('1'), message('2'), message('3')] }

  it('is whole without a length, its end with one, and left out for none', () => {
    assert.equal(withHistory(long, undefined).history?.length, 3)
    assert.deepEqual(
      withHistory(long, 2).history?.map(({ messageId }) => messageId),
      ['2', '3'],
    )
    assert.ok(!('history' in withHistory(long, 0)))
  })
})
