/** The tasks of the A2A agent, in memory: bounded in number, bytes and time. A task is found only by its id or its context. */
import { LRUCache } from 'lru-cache'
import { randomUUID } from 'node:crypto'
import { parseInstant } from '../../domain/text.ts'
import type { JsonObject } from '../../lib/json.ts'
import type { ToolName } from '../tools/tools.ts'
import { invalid, type Fault } from './errors.ts'
import {
  parseCount,
  parseText,
  taskStates,
  type Message,
  type StreamEvent,
  type Task,
  type TaskState,
  type TaskStatus,
} from './wire.ts'

/** `end` is called after the last event. */
export type TaskListener = { readonly event: (event: StreamEvent) => void; readonly end: () => void }

type StoredTask = {
  readonly task: Task
  /** The tool that a message of the task has named. */
  readonly skill: ToolName | undefined
  /** Increases with every change of any task. */
  readonly changed: number
}

export type TaskStore = ReturnType<typeof createTaskStore>

type TaskStoreOptions = {
  readonly maxTasks?: number
  readonly maxBytes?: number
  /** Monotonic milliseconds. */
  readonly now?: () => number
}

/** A value takes so much memory beside its characters. A message of 60 kB may hold 20,000 empty objects, which take 1.3 MB. */
const bytesOfValue = 64

/** The life of a task after its last change. */
const lifetimeMs = 3_600_000

export function createTaskStore({
  maxTasks = 10_000,
  maxBytes = 64 * 1024 * 1024,
  now = () => performance.now(),
}: TaskStoreOptions = {}) {
  const stored = new LRUCache<string, StoredTask>({
    max: maxTasks,
    maxSize: maxBytes,
    sizeCalculation: ({ task }) => JSON.stringify(task).length + bytesOfValue * countValues(task),
    ttl: lifetimeMs,
    ttlResolution: 0,
    perf: { now },
    dispose: (_task, id, reason) => {
      if (reason !== 'set') endListeners(id)
    },
  })
  const listeners = new Map<string, Set<TaskListener>>()
  let changes = 0

  function endListeners(id: string): void {
    const ending = listeners.get(id) ?? []
    listeners.delete(id)
    for (const listener of ending) listener.end()
  }

  return {
    get: (id: string): StoredTask | undefined => stored.get(id),
    /** Returns the tasks of a context, the last changed first. */
    ofContext: (contextId: string): readonly StoredTask[] =>
      [...stored.values()].filter(({ task }) => task.contextId === contextId).sort((a, b) => b.changed - a.changed),
    /** Stores a new or changed task, and sends the events to its listeners. */
    put(task: Task, skill: ToolName | undefined, events: readonly StreamEvent[] = []): void {
      stored.set(task.id, { task, skill, changed: (changes += 1) })
      const receivers = [...(listeners.get(task.id) ?? [])]
      for (const event of events) for (const receiver of receivers) receiver.event(event)
      if (isTerminal(task)) endListeners(task.id)
    },
    listen(id: string, listener: TaskListener): () => void {
      const set = listeners.get(id) ?? new Set<TaskListener>()
      listeners.set(id, set.add(listener))
      return () => {
        set.delete(listener)
        if (set.size === 0 && listeners.get(id) === set) listeners.delete(id)
      }
    },
  }
}

function countValues(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 1
  return Object.values(value).reduce<number>((count, inner) => count + countValues(inner), 1)
}

const terminalStates: ReadonlySet<TaskState> = new Set([
  'TASK_STATE_COMPLETED',
  'TASK_STATE_FAILED',
  'TASK_STATE_CANCELED',
  'TASK_STATE_REJECTED',
])

/** A task in a terminal state never changes again. */
export function isTerminal({ status }: Task): boolean {
  return terminalStates.has(status.state)
}

/** Returns a status as of now; `parts` become a message of the agent. */
export function createStatus(
  task: Pick<Task, 'id' | 'contextId'>,
  state: TaskState,
  parts?: Message['parts'],
): TaskStatus {
  const timestamp = new Date().toISOString()
  if (parts === undefined) return { state, timestamp }
  const { id: taskId, contextId } = task
  return { state, timestamp, message: { messageId: randomUUID(), contextId, taskId, role: 'ROLE_AGENT', parts } }
}

/** Returns the task with at most `length` of its latest messages; 0 leaves out the history. */
export function withHistory(task: Task, length: number | undefined): Task {
  const { history, ...rest } = task
  if (history === undefined || length === undefined) return task
  return length === 0 ? rest : { ...rest, history: history.slice(-length) }
}

/**
 * Clients may name a context. Callers are anonymous, so that only a name that holds a UUID keeps strangers from its tasks. The UUIDs Nil and
 * Max (RFC 9562 §5.9) are known to all.
 */
const isUnguessable = (contextId: string): boolean =>
  /(?!0{8}-0{4}-|f{8}-f{4}-)[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}/i.test(contextId)

/** `ListTasks` (A2A 1.0 §3.1.4): the tasks of one context. The page is empty for no context, and for one that can be guessed. */
export function listTasks(store: Pick<TaskStore, 'ofContext'>, params: JsonObject) {
  const filter = parseFilter(params)
  if ('fault' in filter) return filter
  const { contextId, status, pageSize, before, after, historyLength, includeArtifacts } = filter
  const all = isUnguessable(contextId) ? store.ofContext(contextId) : []
  const matching = all.filter(
    ({ task }) => (status === undefined || task.status.state === status) && Date.parse(task.status.timestamp) > after,
  )
  const rest = matching.filter(({ changed }) => changed < before)
  const shown = rest.slice(0, pageSize).map(({ task }): Task => {
    const { artifacts, ...others } = withHistory(task, historyLength)
    return includeArtifacts ? { ...others, artifacts: artifacts ?? [] } : others
  })
  const tasks = shown.slice(0, fitting(shown))
  return {
    tasks,
    /** Empty on the last page. */
    nextPageToken: rest.length > tasks.length ? String(rest[tasks.length - 1]?.changed ?? '') : '',
    pageSize,
    totalSize: matching.length,
  }
}

export type TaskPage = Exclude<ReturnType<typeof listTasks>, Fault>

/** A page ends here, even before its size: a hundred tasks may have 60 MB. */
const mostCharacters = 1_000_000

/** Returns how many of the tasks fit a page: at least one. */
function fitting(tasks: readonly Task[]): number {
  let characters = 0
  const end = tasks.findIndex((task) => (characters += JSON.stringify(task).length) > mostCharacters)
  return end === -1 ? tasks.length : Math.max(1, end)
}

function parseFilter(params: JsonObject) {
  const contextId = parseText(params['contextId'], 'contextId')
  if (typeof contextId !== 'string') return contextId
  const pageSize = parseCount(params['pageSize'], 'pageSize', 1, 100)
  if (typeof pageSize === 'object') return pageSize
  const historyLength = parseCount(params['historyLength'], 'historyLength')
  if (typeof historyLength === 'object') return historyLength
  const { includeArtifacts = false, pageToken = '', statusTimestampAfter: since = '' } = params
  if (typeof includeArtifacts !== 'boolean') return invalid('includeArtifacts', 'must be a boolean.')
  if (typeof pageToken !== 'string' || !/^\d{0,15}$/.test(pageToken))
    return invalid('pageToken', 'must be a nextPageToken of this service.')
  const instant = typeof since === 'string' ? parseInstant(since) : null
  if (since !== '' && instant === null)
    return invalid('statusTimestampAfter', 'must be a time in RFC 3339, such as 2026-03-01T12:00:00Z.')
  const sent = params['status'] === 'TASK_STATE_UNSPECIFIED' ? undefined : params['status']
  const status = taskStates.find((state) => state === sent)
  if (sent !== undefined && status === undefined && sent !== 'TASK_STATE_AUTH_REQUIRED')
    return invalid('status', 'must be a state of a task, such as TASK_STATE_COMPLETED.')
  return {
    contextId: status === undefined && sent !== undefined ? '' : contextId, // no task here waits for authentication
    status,
    pageSize: pageSize ?? 50,
    before: pageToken === '' ? Infinity : Number(pageToken),
    after: instant === null ? -Infinity : Date.parse(instant),
    historyLength,
    includeArtifacts,
  }
}
