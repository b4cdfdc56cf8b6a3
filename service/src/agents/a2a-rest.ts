/** The HTTP+JSON binding of A2A 1.0 (§11): which path and method is which operation, and where its parameters stand. */
import type { A2aAgent } from './a2a-agent.ts'
import { invalid, type Fault } from './a2a-errors.ts'
import { operations, type Done, type OperationName } from './a2a-operations.ts'
import { camelCased, isObject, isShallow, type Json } from './a2a-wire.ts'

export type RestRequest = {
  readonly method: string
  /** Raw, behind the prefix, with its slash: `/tasks/{id}`. */
  readonly path: string
  readonly query: URLSearchParams
  /** Parsed JSON; undefined without a body. */
  readonly body: unknown
}

type Route = Readonly<Partial<Record<'GET' | 'POST' | 'DELETE', OperationName>>>

/** `{id}` is one segment. */
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

/** Methods of a path, for `Allow`; null: nothing is there. */
export function restMethods(path: string): readonly string[] | null {
  const route = routes.find(([pattern]) => pattern.test(path))
  return route === undefined ? null : Object.keys(route[1])
}

/** The path and the method are such that `restMethods` names. */
export async function answerRest(agent: A2aAgent, request: RestRequest): Promise<Done | Fault> {
  const { method, path, query, body = {} } = request
  if (!isObject(body) || !isShallow(body)) return invalid('body', 'must be an object, nested no deeper than 20 levels.')
  for (const [pattern, route] of routes) {
    const match = pattern.exec(path)
    const name = match === null ? undefined : route[method as keyof Route]
    if (match === null || name === undefined) continue
    const params = method === 'GET' ? queryParams(query) : (camelCased(body) as Json)
    const [, id] = match
    return operations[name](agent, id === undefined ? params : { ...params, id: decoded(id) })
  }
  return { fault: 'METHOD_NOT_FOUND', message: 'A2A 1.0 has nothing at this path.' }
}

const numbers = ['historyLength', 'pageSize']
const booleans = ['includeArtifacts']

/** A query holds texts only; one that is no number where a number belongs stays a text, and is refused as such. */
function queryParams(query: URLSearchParams): Json {
  const named = camelCased(Object.fromEntries(query)) as Readonly<Record<string, string>>
  return Object.fromEntries(
    Object.entries(named).map(([name, text]) => {
      if (numbers.includes(name) && /^-?\d{1,15}$/.test(text)) return [name, Number(text)]
      if (booleans.includes(name) && /^(?:true|false)$/.test(text)) return [name, text === 'true']
      return [name, text]
    }),
  )
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    return segment
  }
}
