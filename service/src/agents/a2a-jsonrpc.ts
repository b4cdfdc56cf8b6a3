/** The JSON-RPC binding of A2A 1.0 (§9): one request, one answer or one stream of answers. */
import type { A2aAgent } from './a2a-agent.ts'
import { invalid, rpcErrorOf, type Fault } from './a2a-errors.ts'
import { operations, type Done, type OperationName } from './a2a-operations.ts'
import { camelCased, isObject, isShallow, type Json } from './a2a-wire.ts'

type RpcId = string | number | null
/** Around a result or an event, or instead of one. */
export type RpcAnswer = { readonly id: RpcId; readonly outcome: Done | Fault }

/** `body` is parsed JSON. It never throws for what is in it. */
export async function answerRpc(agent: A2aAgent, body: unknown, refusal: Fault | null): Promise<RpcAnswer> {
  const request = readRequest(body)
  if ('outcome' in request) return request
  const { id, method, params } = request
  if (refusal !== null) return { id, outcome: refusal }
  if (!Object.hasOwn(operations, method))
    return { id, outcome: { fault: 'METHOD_NOT_FOUND', message: 'A2A 1.0 has no such method here.' } }
  return { id, outcome: await operations[method as OperationName](agent, params) }
}

/** The envelope of one answer. */
export function rpcResult(id: RpcId, result: object): object {
  return { jsonrpc: '2.0', id, result }
}

export function rpcFailure(id: RpcId, fault: Fault): object {
  return { jsonrpc: '2.0', id, error: rpcErrorOf(fault) }
}

function readRequest(body: unknown): { id: RpcId; method: string; params: Json } | RpcAnswer {
  if (!isObject(body)) return { id: null, outcome: notOne('Send one JSON-RPC 2.0 request object.') }
  const { jsonrpc, id, method, params = {} } = body
  if (typeof id !== 'string' && !Number.isSafeInteger(id) && id !== null)
    return { id: null, outcome: notOne('The id must be a string or an integer.') }
  const known = id as RpcId
  if (jsonrpc !== '2.0' || typeof method !== 'string')
    return { id: known, outcome: notOne('Send jsonrpc "2.0" and a method.') }
  if (!isObject(params) || !isShallow(params))
    return { id: known, outcome: invalid('params', 'must be an object, nested no deeper than 20 levels.') }
  return { id: known, method, params: camelCased(params) as Json }
}

function notOne(message: string): Fault {
  return { fault: 'INVALID_REQUEST', message }
}
