/** `ListTasks` (A2A 1.0 §3.1.4): the tasks of one context. Callers are anonymous, so without a context there is nothing to see. */
import { invalid, type Fault } from './a2a-errors.ts'
import { withHistory, type TaskStore } from './a2a-tasks.ts'
import { readLength, readText, taskStates, type Json, type Task } from './a2a-wire.ts'

export type TaskPage = {
  readonly tasks: readonly Task[]
  /** Empty on the last page. */
  readonly nextPageToken: string
  readonly pageSize: number
  readonly totalSize: number
}

export function listTasks(store: Pick<TaskStore, 'ofContext'>, params: Json): TaskPage | Fault {
  const filter = readFilter(params)
  if ('fault' in filter) return filter
  const { contextId, status, pageSize, before, after, historyLength, includeArtifacts } = filter
  const all = contextId === '' ? [] : store.ofContext(contextId)
  const matching = all.filter(
    ({ task }) => (status === undefined || task.status.state === status) && Date.parse(task.status.timestamp) > after,
  )
  const rest = matching.filter(({ changed }) => changed < before)
  const page = rest.slice(0, pageSize)
  return {
    tasks: page.map(({ task }) => {
      const { artifacts, ...others } = withHistory(task, historyLength)
      return includeArtifacts ? { ...others, artifacts: artifacts ?? [] } : others
    }),
    nextPageToken: rest.length > page.length ? String(page.at(-1)?.changed ?? '') : '',
    pageSize,
    totalSize: matching.length,
  }
}

function readFilter(params: Json) {
  const contextId = readText(params['contextId'], 'contextId')
  if (typeof contextId !== 'string') return contextId
  const pageSize = readLength(params['pageSize'], 'pageSize', 1, 100)
  if (typeof pageSize === 'object') return pageSize
  const historyLength = readLength(params['historyLength'], 'historyLength')
  if (typeof historyLength === 'object') return historyLength
  const { includeArtifacts = false, pageToken = '', statusTimestampAfter: since = '' } = params
  if (typeof includeArtifacts !== 'boolean') return invalid('includeArtifacts', 'must be a boolean.')
  if (typeof pageToken !== 'string' || !/^\d{0,15}$/.test(pageToken)) return invalid('pageToken', 'is not one of ours.')
  const after = since === '' ? -Infinity : typeof since === 'string' ? Date.parse(since) : NaN
  if (Number.isNaN(after)) return invalid('statusTimestampAfter', 'must be a time in ISO 8601.')
  const sent = params['status'] === 'TASK_STATE_UNSPECIFIED' ? undefined : params['status']
  const status = taskStates.find((state) => state === sent)
  if (sent !== undefined && status === undefined && sent !== 'TASK_STATE_AUTH_REQUIRED')
    return invalid('status', 'must be a state of a task.')
  return {
    contextId: status === undefined && sent !== undefined ? '' : contextId, // no task here ever asks for authentication
    status,
    pageSize: pageSize ?? 50,
    before: pageToken === '' ? Infinity : Number(pageToken),
    after,
    historyLength,
    includeArtifacts,
  }
}
