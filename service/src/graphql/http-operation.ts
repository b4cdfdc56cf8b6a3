/** One operation over HTTP, by graphql-http's core: the parameters, media types and statuses of GraphQL over HTTP. */
import type { IncomingMessage } from 'node:http'
import { execute, type ExecutionArgs, type ExecutionResult } from 'graphql'
import { createHandler, type Handler } from 'graphql-http'
import type { Headers } from './answer.ts'
import type { ApiKey } from '../store/api-keys.ts'
import type { GraphqlContext } from './context.ts'
import { graphqlError } from './error-codes.ts'
import type { ContextOf } from './loaders.ts'
import type { PrepareOperation } from './prepare-operation.ts'
import { faultError, type ShowError } from './shown-error.ts'

/** The text and head of the answer. */
export type HttpOperation = (
  request: IncomingMessage,
  body: string,
  key: ApiKey,
) => Promise<readonly [text: string, { readonly status: number; readonly headers: Headers }]>

export function createHttpOperation({
  prepare,
  contextOf,
  showError,
  timeoutMs = 30_000,
}: {
  readonly prepare: PrepareOperation
  readonly contextOf: ContextOf
  readonly showError: ShowError
  readonly timeoutMs?: number
}): HttpOperation {
  const requestIds = createRequestIds()
  return async (request, body, key) => {
    const requestId = requestIds()
    const handler = createHandler<IncomingMessage, ApiKey, GraphqlContext>({
      formatError: (error) => showError(error, requestId),
      execute: (args) => executeWithin(args, timeoutMs),
      onSubscribe: (_request, { query, operationName, variables }) => {
        const prepared = prepare({ query, operationName, variables })
        return prepared.ok
          ? { ...prepared.args, contextValue: contextOf(key, requestId, prepared.listing) }
          : [...prepared.errors]
      },
    })
    const [text, { status, headers = {} }] = await handler(requestOf(request, body, key))
    if (text !== null) return [text, { status, headers }]
    const refusal = { message: refusals[status] ?? 'The request is not GraphQL over HTTP.', extensions }
    return [JSON.stringify({ errors: [refusal] }), { status, headers: { ...headers, ...json } }]
  }
}

const extensions = { code: 'BAD_USER_INPUT' }
const json = { 'Content-Type': 'application/json; charset=utf-8' }
const refusals: Readonly<Record<number, string>> = {
  405: 'Send a query by GET or POST, a mutation by POST.',
  406: 'Accept application/graphql-response+json or application/json, in UTF-8.',
  415: 'Send JSON: Content-Type: application/json, in UTF-8.',
}

function requestOf(
  request: IncomingMessage,
  body: string,
  key: ApiKey,
): Parameters<Handler<IncomingMessage, ApiKey>>[0] {
  const { method = 'GET', headers } = request
  const [path, ...query] = (request.url ?? '').split('?')
  return { method, url: `${path}?${query.join('%3F')}`, headers, body, raw: request, context: key }
}

/** What is still running when the time is up ends by itself: every statement and every outside call has a deadline of its own. */
export async function executeWithin(args: ExecutionArgs, timeoutMs: number): Promise<ExecutionResult> {
  const result = execute(args)
  if (!(result instanceof Promise)) return result
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<ExecutionResult>((resolve) => {
    const errors = [graphqlError('TOO_COMPLEX', `The operation took longer than ${timeoutMs / 1_000} s.`)]
    timer = setTimeout(() => resolve({ errors }), timeoutMs)
  })
  try {
    return await Promise.race([result, late])
  } catch (error) {
    return { errors: [faultError(error)] }
  } finally {
    clearTimeout(timer)
  }
}

/** Short, and of no meaning outside the log. */
export function createRequestIds(): () => string {
  const start = Math.floor(Math.random() * 2 ** 40).toString(36)
  let count = 0
  return () => `${start}-${(count += 1).toString(36)}`
}
