/**
 * The A2A agent (A2A 1.0 §3): the tools as tasks, without a language model. Its operations by name (§5.3), the same for both bindings.
 * Callers are anonymous, so that ids are random and a list needs the id of a context.
 */
import { randomUUID } from 'node:crypto'
import type { JsonObject } from '../../lib/json.ts'
import type { ToolAnswer, ToolName, Tools } from '../tools/tools.ts'
import { invalid, isFault, noPushNotifications, type Fault } from './errors.ts'
import { parseToolRequest, type ToolRequest } from './request.ts'
import { createStatus, isTerminal, listTasks, withHistory, type TaskListener, type TaskStore } from './tasks.ts'
import {
  parseCount,
  parseSend,
  parseText,
  type Artifact,
  type Message,
  type SendRequest,
  type StreamEvent,
  type Task,
  type TaskState,
} from './wire.ts'

/** Sends all events to the listener, from the first one on. The returned function removes the listener. */
export type TaskStream = (listener: TaskListener) => () => void

/** A result to be written as JSON, or a stream of events. */
export type TaskOutcome = { readonly result: object } | { readonly stream: TaskStream } | Fault

export type A2aAgent = ReturnType<typeof createA2aAgent>

/** Messages that a task keeps, and their length as JSON. Each subscriber gets all of them, and may be slow to read. */
const maxHistory = 20
const maxHistoryLength = 100_000

type A2aOptions = {
  readonly tools: Tools
  readonly tasks: TaskStore
  /** Maximum duration of a subscription. */
  readonly subscriptionMs?: number
  /** Ends all subscriptions, so that a server that stops does not wait for them. */
  readonly stopping?: AbortSignal | undefined
}

export function createA2aAgent({ tools, tasks, subscriptionMs = 60_000, stopping }: A2aOptions) {
  async function SendMessage(params: JsonObject): Promise<TaskOutcome> {
    const begun = begin(params)
    if (isFault(begun)) return begun
    const { id, request, historyLength, returnImmediately } = begun
    const submitted = tasks.get(id)?.task
    const running = run(id, request)
    const task = returnImmediately ? submitted : await running
    return task === undefined ? unknownTask : { result: { task: withHistory(task, historyLength) } }
  }

  function SendStreamingMessage(params: JsonObject): TaskOutcome {
    const begun = begin(params)
    if (isFault(begun)) return begun
    const { id, request, historyLength } = begun
    const stream: TaskStream = (listener) => {
      const task = tasks.get(id)?.task
      if (task !== undefined) listener.event({ task: withHistory(task, historyLength) })
      const stop = tasks.listen(id, listener)
      // A task that waits for input does not end the stream, but this message has no further events.
      void run(id, request).finally(() => {
        stop()
        listener.end()
      })
      return stop
    }
    return { stream }
  }

  type Begun = Omit<SendRequest, 'message'> & { readonly id: string; readonly request: ToolRequest }

  /** Creates a task, or adds a message to one that waits for input. The task is submitted; the tool does not run yet. */
  function begin(params: JsonObject): Begun | Fault {
    const sent = parseSend(params)
    if (isFault(sent)) return sent
    const { message, ...options } = sent
    const known = message.taskId === '' ? undefined : tasks.get(message.taskId)
    if (known === undefined && message.taskId !== '') return unknownTask
    const contextId = message.contextId || (known?.task.contextId ?? randomUUID())
    if (known !== undefined) {
      const fault = checkContinuation(known.task, contextId)
      if (fault !== null) return fault
    }
    const request = parseToolRequest(message.parts, known?.skill)
    if (isFault(request)) return request
    const id = known?.task.id ?? randomUUID()
    const received: Message = { ...message, contextId, taskId: id, role: 'ROLE_USER' }
    const before = [known?.task.history ?? [], known?.task.status.message ?? []].flat()
    const status = createStatus({ id, contextId }, 'TASK_STATE_SUBMITTED')
    const task: Task = { id, contextId, status, history: latestOf([...before, received]) }
    tasks.put(task, request.kind === 'unknown skill' ? undefined : request.skill)
    return { ...options, id, request }
  }

  /** Runs a request and returns the task as it is afterwards. */
  async function run(id: string, request: ToolRequest): Promise<Task | undefined> {
    if (request.kind === 'no token id') move(id, 'TASK_STATE_INPUT_REQUIRED', [{ text: needsTokenId }])
    else if (request.kind === 'unknown skill') move(id, 'TASK_STATE_REJECTED', [{ text: unknownSkill }])
    else await work(id, request.skill, request.args)
    return tasks.get(id)?.task
  }

  async function work(id: string, skill: ToolName, args: JsonObject): Promise<void> {
    move(id, 'TASK_STATE_WORKING')
    const answer = await tools[skill](args).catch(() => toolFailed)
    const now = tasks.get(id)?.task
    if (now === undefined || isTerminal(now)) return // cancelled meanwhile
    if (!answer.ok) return move(id, 'TASK_STATE_FAILED', [{ data: answer.error, mediaType: 'application/json' }])
    const parts = [{ data: answer.structured, mediaType: 'application/json' }]
    const artifact: Artifact = { artifactId: randomUUID(), name: skill, parts }
    const done = { ...now, artifacts: [artifact], status: createStatus(now, 'TASK_STATE_COMPLETED') }
    const { contextId } = now
    tasks.put(done, skill, [
      { artifactUpdate: { taskId: id, contextId, artifact, append: false, lastChunk: true } },
      statusEvent(done),
    ])
  }

  function move(id: string, state: TaskState, parts?: Message['parts']): void {
    const stored = tasks.get(id)
    if (stored === undefined || isTerminal(stored.task)) return
    const task = { ...stored.task, status: createStatus(stored.task, state, parts) }
    tasks.put(task, stored.skill, [statusEvent(task)])
  }

  function find(params: JsonObject): Task | Fault {
    const id = parseText(params['id'], 'id')
    if (typeof id !== 'string') return id
    if (id === '') return invalid('id', 'is required.')
    return tasks.get(id)?.task ?? unknownTask
  }

  function GetTask(params: JsonObject): TaskOutcome {
    const historyLength = parseCount(params['historyLength'], 'historyLength')
    if (typeof historyLength === 'object') return historyLength
    const task = find(params)
    return isFault(task) ? task : { result: withHistory(task, historyLength) }
  }

  function ListTasks(params: JsonObject): TaskOutcome {
    const page = listTasks(tasks, params)
    return isFault(page) ? page : { result: page }
  }

  function CancelTask(params: JsonObject): TaskOutcome {
    const task = find(params)
    if (isFault(task)) return task
    if (isTerminal(task)) return { fault: 'TASK_NOT_CANCELABLE', message: 'The task has already ended.' }
    move(task.id, 'TASK_STATE_CANCELED')
    const cancelled = tasks.get(task.id)?.task
    return cancelled === undefined ? unknownTask : { result: cancelled }
  }

  function SubscribeToTask(params: JsonObject): TaskOutcome {
    const task = find(params)
    if (isFault(task)) return task
    if (isTerminal(task))
      return { fault: 'UNSUPPORTED_OPERATION', message: 'The task has already ended; get it instead.' }
    const stream: TaskStream = (listener) => {
      const stop = () => {
        clearTimeout(timer)
        stopping?.removeEventListener('abort', end)
        remove()
      }
      const end = () => {
        stop()
        listener.end()
      }
      const timer = setTimeout(end, subscriptionMs).unref()
      const remove = tasks.listen(task.id, { event: listener.event, end })
      const now = tasks.get(task.id)?.task
      listener.event({ task: now ?? task })
      stopping?.addEventListener('abort', end)
      // The task may have ended, or may have been dropped, before the stream was opened.
      if (now === undefined || isTerminal(now) || stopping?.aborted === true) end()
      return stop
    }
    return { stream }
  }

  return {
    SendMessage,
    SendStreamingMessage,
    GetTask,
    ListTasks,
    CancelTask,
    SubscribeToTask,
    CreateTaskPushNotificationConfig: noPush,
    GetTaskPushNotificationConfig: noPush,
    ListTaskPushNotificationConfigs: noPush,
    DeleteTaskPushNotificationConfig: noPush,
    GetExtendedAgentCard: (): TaskOutcome => ({
      fault: 'UNSUPPORTED_OPERATION',
      message: 'This agent has no other card than the public one.',
    }),
  }
}

const noPush = (): TaskOutcome => noPushNotifications

/** Tools do not throw. If one did, its task would never end. */
const toolFailed: ToolAnswer = {
  ok: false,
  error: { version: '1', error: { code: 'INTERNAL', message: 'The tool failed unexpectedly. Ask again later.' } },
}
const unknownTask: Fault = { fault: 'TASK_NOT_FOUND', message: 'The task does not exist, or no longer exists.' }
const needsTokenId =
  'Send the token id of one product: a decimal integer such as 42, alone in a text or as {"skill": "verify_asset", "token_id": "42"}.'
const unknownSkill = 'This agent has the skills verify_asset, get_lifecycle_history and check_flagged.'

/** Checks whether a task takes another message. */
function checkContinuation(task: Task, contextId: string): Fault | null {
  if (contextId !== task.contextId)
    return invalid('message.contextId', 'must be the contextId of this task, or be left out.')
  if (task.status.state === 'TASK_STATE_INPUT_REQUIRED') return null
  const message = isTerminal(task) ? 'The task has already ended; send a new one.' : 'The task is being worked on.'
  return { fault: 'UNSUPPORTED_OPERATION', message }
}

/** Returns the latest messages within the limits: at least the last one, which a body of 64 kB bounds. */
function latestOf(messages: readonly Message[]): readonly Message[] {
  let length = 0
  const kept = messages.slice(-maxHistory).toReversed()
  const end = kept.findIndex((message) => (length += JSON.stringify(message).length) > maxHistoryLength)
  return (end === -1 ? kept : kept.slice(0, Math.max(1, end))).toReversed()
}

function statusEvent({ id: taskId, contextId, status }: Task): StreamEvent {
  return { statusUpdate: { taskId, contextId, status } }
}
