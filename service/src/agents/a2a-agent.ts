/**
 * The A2A agent (A2A 1.0 §3): the tools as tasks, without a language model and the same for both bindings. Callers are anonymous, so ids made
 * here are random, and only who knows a context gets its list.
 */
import { randomUUID } from 'node:crypto'
import { invalid, isFault, type Fault } from './a2a-errors.ts'
import { askedBy, type Asked } from './a2a-request.ts'
import { listTasks, type TaskPage } from './a2a-list.ts'
import { isEnded, statusOf, withHistory, type Listener, type TaskStore } from './a2a-tasks.ts'
import {
  readLength,
  readSend,
  readText,
  type Artifact,
  type Json,
  type Message,
  type SendRequest,
  type StreamEvent,
  type Task,
  type TaskState,
} from './a2a-wire.ts'
import type { ToolAnswer, ToolName, Tools } from './tools.ts'

/** Tells the listener everything from the first event on, until it ends or the function that it gives is called. */
export type TaskStream = (listener: Listener) => () => void

export type A2aAgent = {
  readonly send: (params: Json) => Promise<{ readonly task: Task } | Fault>
  readonly stream: (params: Json) => TaskStream | Fault
  readonly get: (params: Json) => Task | Fault
  readonly list: (params: Json) => TaskPage | Fault
  readonly cancel: (params: Json) => Task | Fault
  readonly subscribe: (params: Json) => TaskStream | Fault
}

/** How many messages a task remembers. */
const mostHistory = 20

export function createA2aAgent({
  tools,
  tasks,
  subscriptionMs = 60_000,
}: {
  readonly tools: Tools
  readonly tasks: TaskStore
  /** How long a subscription to a task waits for its end. */
  readonly subscriptionMs?: number
}): A2aAgent {
  async function send(params: Json): Promise<{ task: Task } | Fault> {
    const begun = begin(params)
    if (isFault(begun)) return begun
    const { id, asked, historyLength, returnImmediately } = begun
    const submitted = tasks.get(id)?.task
    const running = run(id, asked)
    const task = returnImmediately ? submitted : await running
    return task === undefined ? unknownTask : { task: withHistory(task, historyLength) }
  }

  function stream(params: Json): TaskStream | Fault {
    const begun = begin(params)
    if (isFault(begun)) return begun
    const { id, asked, historyLength } = begun
    return (listener) => {
      const task = tasks.get(id)?.task
      if (task === undefined) return quiet(listener)
      listener.event({ task: withHistory(task, historyLength) })
      const stop = tasks.listen(id, listener)
      // A task that waits for input ends no stream by itself, but this one has nothing more to say.
      void run(id, asked).finally(() => {
        stop()
        listener.end()
      })
      return stop
    }
  }

  type Begun = Omit<SendRequest, 'message'> & { readonly id: string; readonly asked: Asked }

  /** A new task, or the next message of one that waits for input; submitted, and nothing done yet. */
  function begin(params: Json): Begun | Fault {
    const request = readSend(params)
    if (isFault(request)) return request
    const { message, ...options } = request
    const known = message.taskId === '' ? undefined : tasks.get(message.taskId)
    if (known === undefined && message.taskId !== '') return unknownTask
    const contextId = message.contextId || (known?.task.contextId ?? randomUUID())
    if (known !== undefined) {
      const refusal = notFor(known.task, contextId)
      if (refusal !== null) return refusal
    }
    const asked = askedBy(message.parts, known?.skill)
    if (isFault(asked)) return asked
    const id = known?.task.id ?? randomUUID()
    const said: Message = { ...message, contextId, taskId: id, role: 'ROLE_USER' }
    const before = [known?.task.history ?? [], known?.task.status.message ?? []].flat()
    const status = statusOf({ id, contextId }, 'TASK_STATE_SUBMITTED')
    const task: Task = { id, contextId, status, history: [...before, said].slice(-mostHistory) }
    tasks.create(task, asked.kind === 'unknown skill' ? undefined : asked.skill)
    return { ...options, id, asked }
  }

  /** Does what was asked; the task as it is afterwards. */
  async function run(id: string, asked: Asked): Promise<Task | undefined> {
    if (asked.kind === 'no token id') move(id, 'TASK_STATE_INPUT_REQUIRED', [{ text: needsTokenId }])
    else if (asked.kind === 'unknown skill') move(id, 'TASK_STATE_REJECTED', [{ text: unknownSkill }])
    else await work(id, asked.skill, asked.args)
    return tasks.get(id)?.task
  }

  async function work(id: string, skill: ToolName, args: Json): Promise<void> {
    move(id, 'TASK_STATE_WORKING')
    const answer = await tools[skill](args).catch(() => failed)
    const now = tasks.get(id)?.task
    if (now === undefined || isEnded(now)) return // cancelled meanwhile
    if (!answer.ok) return move(id, 'TASK_STATE_FAILED', [{ data: answer.error, mediaType: 'application/json' }])
    const parts = [{ data: answer.structured, mediaType: 'application/json' }]
    const artifact: Artifact = { artifactId: randomUUID(), name: skill, parts }
    const done = { ...now, artifacts: [artifact], status: statusOf(now, 'TASK_STATE_COMPLETED') }
    const { contextId } = now
    tasks.put(done, skill, [
      { artifactUpdate: { taskId: id, contextId, artifact, append: false, lastChunk: true } },
      statusEvent(done),
    ])
  }

  function move(id: string, state: TaskState, parts?: Message['parts']): void {
    const stored = tasks.get(id)
    if (stored === undefined) return
    const task = { ...stored.task, status: statusOf(stored.task, state, parts) }
    tasks.put(task, stored.skill, [statusEvent(task)])
  }

  function find(params: Json): Task | Fault {
    const id = readText(params['id'], 'id')
    if (typeof id !== 'string') return id
    if (id === '') return invalid('id', 'is required.')
    return tasks.get(id)?.task ?? unknownTask
  }

  return {
    send,
    stream,
    get(params) {
      const historyLength = readLength(params['historyLength'], 'historyLength')
      if (typeof historyLength === 'object') return historyLength
      const task = find(params)
      return isFault(task) ? task : withHistory(task, historyLength)
    },
    list: (params) => listTasks(tasks, params),
    cancel(params) {
      const task = find(params)
      if (isFault(task)) return task
      if (isEnded(task)) return { fault: 'TASK_NOT_CANCELABLE', message: 'The task has already ended.' }
      move(task.id, 'TASK_STATE_CANCELED')
      return tasks.get(task.id)?.task ?? unknownTask
    },
    subscribe(params) {
      const task = find(params)
      if (isFault(task)) return task
      if (isEnded(task))
        return { fault: 'UNSUPPORTED_OPERATION', message: 'The task has already ended; get it instead.' }
      return (listener) => {
        const stop = () => {
          clearTimeout(timer)
          unheard()
        }
        const end = () => {
          stop()
          listener.end()
        }
        const timer = setTimeout(end, subscriptionMs).unref()
        const unheard = tasks.listen(task.id, { event: listener.event, end })
        listener.event({ task: tasks.get(task.id)?.task ?? task })
        return stop
      }
    },
  }
}

/** Tools do not throw; a task would otherwise work for ever if one did. */
const failed: ToolAnswer = {
  ok: false,
  error: { version: '1', error: { code: 'INTERNAL', message: 'The tool failed unexpectedly. Ask again later.' } },
}
const unknownTask: Fault = { fault: 'TASK_NOT_FOUND', message: 'There is no such task, or no longer.' }
const needsTokenId =
  'Send the token id of one product: a decimal integer such as 42, alone in a text or as {"skill": "verify_asset", "token_id": "42"}.'
const unknownSkill = 'This agent has the skills verify_asset, get_lifecycle_history and check_flagged.'

/** Why a message cannot go on with a task; null when it can. */
function notFor(task: Task, contextId: string): Fault | null {
  if (contextId !== task.contextId) return invalid('message.contextId', 'is not the context of this task.')
  if (task.status.state === 'TASK_STATE_INPUT_REQUIRED') return null
  const message = isEnded(task) ? 'The task has already ended; send a new one.' : 'The task is being worked on.'
  return { fault: 'UNSUPPORTED_OPERATION', message }
}

function statusEvent({ id: taskId, contextId, status }: Task): StreamEvent {
  return { statusUpdate: { taskId, contextId, status } }
}

function quiet(listener: Listener): () => void {
  listener.end()
  return () => {}
}
