/** The two bindings of A2A 1.0 to the operations of the agent: JSON-RPC (§9) and HTTP+JSON (§11). */
import { decodePercent } from '../../lib/bytes.ts'
import { isObject, type JsonObject } from '../../lib/json.ts'
import type { A2aAgent, TaskOutcome } from './agent.ts'
import { invalid, toRpcError, type Fault } from './errors.ts'
import { camelCased, isShallow } from './wire.ts'

export type RpcId = string | number | null

/** Checks `A2A-Version`: 1.0 or one of its patches. An absent one means 0.3 (§3.6.2). */
export function versionFault(version: string | undefined): Fault | null {
  if (version !== undefined && /^1\.0(?:\.\d{1,5})?$/.test(version.trim())) return null
  return { fault: 'VERSION_NOT_SUPPORTED', message: 'This agent speaks A2A 1.0: send the header A2A-Version: 1.0.' }
}

/** Runs a JSON-RPC request. `body` is parsed JSON; a wrong one is a fault, never an exception. */
export async function answerRpc(
  agent: A2aAgent,
  body: unknown,
  version: Fault | null,
): Promise<{ readonly id: RpcId; readonly outcome: TaskOutcome }> {
  if (!isObject(body)) return { id: null, outcome: invalidRequest('Send one JSON-RPC 2.0 request object.') }
  const { jsonrpc, id: sentId, method, params = {} } = body
  if (typeof sentId !== 'string' && !Number.isSafeInteger(sentId) && sentId !== null)
    return { id: null, outcome: invalidRequest('The id must be a string or an integer.') }
  const id = sentId as RpcId
  if (jsonrpc !== '2.0' || typeof method !== 'string')
    return { id, outcome: invalidRequest('Send jsonrpc "2.0" and a method.') }
  if (!isObject(params) || !isShallow(params))
    return { id, outcome: invalid('params', 'must be an object, nested no deeper than 20 levels.') }
  if (version !== null) return { id, outcome: version }
  if (!Object.hasOwn(agent, method)) return { id, outcome: { fault: 'METHOD_NOT_FOUND', message: noMethod } }
  return { id, outcome: await agent[method as keyof A2aAgent](camelCased(params) as JsonObject) }
}

const noMethod =
  'A2A 1.0 has no such method here. Send SendMessage, SendStreamingMessage, GetTask, ListTasks, CancelTask or SubscribeToTask.'

export function toRpcResponse(id: RpcId, outcome: { readonly result: object } | Fault): object {
  return 'result' in outcome
    ? { jsonrpc: '2.0', id, result: outcome.result }
    : { jsonrpc: '2.0', id, error: toRpcError(outcome) }
}

function invalidRequest(message: string): Fault {
  return { fault: 'INVALID_REQUEST', message }
}

type Route = Readonly<Partial<Record<'GET' | 'POST' | 'DELETE', keyof A2aAgent>>>

/** The group is the id of a task, one segment. */
const routes: readonly (readonly [RegExp, Route])[] = [
  [/^\/message:send$/, { POST: 'SendMessage' }],
  [/^\/message:stream$/, { POST: 'SendStreamingMessage' }],
  [/^\/tasks$/, { GET: 'ListTasks' }],
  [/^\/tasks\/([^/]+):cancel$/, { POST: 'CancelTask' }],
  // The protocol's definition says GET, clients send POST.
  [/^\/tasks\/([^/]+):subscribe$/, { GET: 'SubscribeToTask', POST: 'SubscribeToTask' }],
  [/^\/tasks\/([^/:]+)$/, { GET: 'GetTask' }],
  [
    /^\/tasks\/([^/]+)\/pushNotificationConfigs$/,
    { GET: 'ListTaskPushNotificationConfigs', POST: 'CreateTaskPushNotificationConfig' },
  ],
  [
    /^\/tasks\/([^/]+)\/pushNotificationConfigs\/[^/]+$/,
    { GET: 'GetTaskPushNotificationConfig', DELETE: 'DeleteTaskPushNotificationConfig' },
  ],
  [/^\/extendedAgentCard$/, { GET: 'GetExtendedAgentCard' }],
]

/** Returns the operations of a raw path by method, and the id in it. It is null for a path that does not exist. */
export function findRoute(path: string): { readonly operations: Route; readonly id: string | undefined } | null {
  for (const [pattern, operations] of routes) {
    const [found, id] = pattern.exec(path) ?? []
    if (found !== undefined) return { operations, id: id && (decodePercent(id) ?? id) }
  }
  return null
}

/** Runs an operation with the parameters of a query, or of parsed JSON. `id` is that of the path. */
export async function answerRest(
  operation: A2aAgent[keyof A2aAgent],
  id: string | undefined,
  sent: unknown,
): Promise<TaskOutcome> {
  if (!isObject(sent) || !isShallow(sent)) return invalid('body', 'must be an object, nested no deeper than 20 levels.')
  const params = sent instanceof URLSearchParams ? parseQuery(sent) : (camelCased(sent) as JsonObject)
  return operation(id === undefined ? params : { ...params, id })
}

const numbers = ['historyLength', 'pageSize']
const booleans = ['includeArtifacts']

/** A text that is not a number stays a text where a number belongs, and is rejected later. */
function parseQuery(query: URLSearchParams): JsonObject {
  const named = camelCased(Object.fromEntries(query)) as Readonly<Record<string, string>>
  return Object.fromEntries(
    Object.entries(named).map(([name, text]) => {
      if (numbers.includes(name) && /^-?\d{1,15}$/.test(text)) return [name, Number(text)]
      if (booleans.includes(name) && /^(?:true|false)$/.test(text)) return [name, text === 'true']
      return [name, text]
    }),
  )
}
