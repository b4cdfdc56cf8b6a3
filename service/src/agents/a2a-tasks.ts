/** The tasks of the A2A agent, in memory: bounded in number, bytes and time. Nobody but who knows a task's id or its context finds it. */
import { randomUUID } from 'node:crypto'
import type { Message, StreamEvent, Task, TaskState, TaskStatus } from './a2a-wire.ts'
import type { ToolName } from './tools.ts'

/** `end`: nothing more will come. */
export type Listener = { readonly event: (event: StreamEvent) => void; readonly end: () => void }

type StoredTask = {
  readonly task: Task
  /** What it is about, where a message already said so. */
  readonly skill: ToolName | undefined
  /** Rises with every change of any task. */
  readonly changed: number
}

export type TaskStore = {
  readonly get: (id: string) => StoredTask | undefined
  /** Of one context, the last changed first. */
  readonly ofContext: (contextId: string) => readonly StoredTask[]
  /** Stores a new task, or what became of one; false when the task has been dropped meanwhile. Events go to its listeners in order. */
  readonly put: (task: Task, skill: ToolName | undefined, events: readonly StreamEvent[]) => boolean
  readonly create: (task: Task, skill: ToolName | undefined) => void
  /** Listens until the function that it gives is called. */
  readonly listen: (id: string, listener: Listener) => () => void
}

const ended: ReadonlySet<TaskState> = new Set([
  'TASK_STATE_COMPLETED',
  'TASK_STATE_FAILED',
  'TASK_STATE_CANCELED',
  'TASK_STATE_REJECTED',
])

/** Terminal states: nothing happens to such a task any more. */
export function isEnded({ status }: Task): boolean {
  return ended.has(status.state)
}

type Entry = StoredTask & { readonly bytes: number; readonly expiresAt: number }

export function createTaskStore({
  maxTasks = 10_000,
  maxBytes = 64 * 1024 * 1024,
  lifetimeMs = 3_600_000,
  now = () => performance.now(), // a wall clock that is set back would make things last longer
}: {
  readonly maxTasks?: number
  readonly maxBytes?: number
  /** Since the last change. */
  readonly lifetimeMs?: number
  readonly now?: () => number
} = {}): TaskStore {
  const entries = new Map<string, Entry>() // the one that was not used for longest comes first
  const listeners = new Map<string, Set<Listener>>()
  let bytes = 0
  let changes = 0

  function use(id: string): Entry | undefined {
    const entry = entries.get(id)
    if (entry === undefined) return undefined
    if (entry.expiresAt <= now()) {
      drop(id)
      return undefined
    }
    entries.delete(id)
    entries.set(id, entry)
    return entry
  }

  function store(task: Task, skill: ToolName | undefined): void {
    bytes -= entries.get(task.id)?.bytes ?? 0
    entries.delete(task.id)
    const size = JSON.stringify(task).length
    bytes += size
    entries.set(task.id, { task, skill, changed: (changes += 1), bytes: size, expiresAt: now() + lifetimeMs })
    for (const [id, { expiresAt }] of entries) {
      if (entries.size <= maxTasks && bytes <= maxBytes && expiresAt > now()) break
      drop(id)
    }
  }

  function drop(id: string): void {
    bytes -= entries.get(id)?.bytes ?? 0
    entries.delete(id)
    for (const listener of listeners.get(id) ?? []) listener.end()
    listeners.delete(id)
  }

  return {
    get: use,
    ofContext: (contextId) =>
      [...entries.values()]
        .filter(({ task, expiresAt }) => task.contextId === contextId && expiresAt > now())
        .sort((a, b) => b.changed - a.changed),
    create: store,
    put(task, skill, events) {
      if (!entries.has(task.id)) return false
      store(task, skill)
      const heard = [...(listeners.get(task.id) ?? [])]
      for (const event of events) for (const listener of heard) listener.event(event)
      if (!isEnded(task)) return true
      listeners.delete(task.id)
      for (const listener of heard) listener.end()
      return true
    },
    listen(id, listener) {
      const set = listeners.get(id) ?? new Set()
      listeners.set(id, set.add(listener))
      return () => {
        set.delete(listener)
        if (set.size === 0 && listeners.get(id) === set) listeners.delete(id)
      }
    },
  }
}

/** A status as of now; `parts` are what the agent says with it. */
export function statusOf(task: Pick<Task, 'id' | 'contextId'>, state: TaskState, parts?: Message['parts']): TaskStatus {
  const timestamp = new Date().toISOString()
  if (parts === undefined) return { state, timestamp }
  const { id: taskId, contextId } = task
  return { state, timestamp, message: { messageId: randomUUID(), contextId, taskId, role: 'ROLE_AGENT', parts } }
}

/** The task with at most `length` of its latest messages; without its history for 0. */
export function withHistory(task: Task, length: number | undefined): Task {
  const { history, ...rest } = task
  if (history === undefined || length === undefined) return task
  return length === 0 ? rest : { ...rest, history: history.slice(-length) }
}
