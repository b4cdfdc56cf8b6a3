/** One operation over HTTP by graphql-http: parameters, media types and statuses of GraphQL over HTTP. */
import type { IncomingMessage } from 'node:http'
import { execute, type ExecutionArgs, type ExecutionResult } from 'graphql'
import { createHandler } from 'graphql-http'
import { parseRequestTarget, requestIdFor } from '../../http/request.ts'
import { withDeadline } from '../../lib/async/deadline.ts'
import { retryAfterSeconds } from '../../lib/errors.ts'
import { parseJsonObject } from '../../lib/json.ts'
import type { ApiKey } from '../api-keys.ts'
import type { CreateContext, GraphqlContext } from '../context.ts'
import { faultError, graphqlError, type FormatError } from '../errors.ts'
import { withReference } from './trusted-documents.ts'
import { costExtensions, type PrepareOperation } from './prepare.ts'

/** Returns the text and head of the response. */
export type HttpOperation = (
  request: IncomingMessage,
  body: string,
  key: ApiKey,
  requestId: string,
) => Promise<readonly [text: string, { readonly status: number; readonly headers: Readonly<Record<string, string>> }]>

/** The steps that HTTP and socket share. */
export type OperationSteps = {
  readonly prepare: PrepareOperation
  readonly createContext: CreateContext
  readonly formatError: FormatError
  readonly timeoutMs?: number
}

export function createHttpOperation({
  prepare,
  createContext,
  formatError,
  timeoutMs = 30_000,
}: OperationSteps): HttpOperation {
  return async (request, body, key, requestId) => {
    let isAway = false
    const handler = createHandler<IncomingMessage, ApiKey, GraphqlContext>({
      formatError: (error) => {
        const formatted = formatError(error, requestId)
        isAway ||= formatted.extensions['code'] === 'DATABASE_UNAVAILABLE'
        return formatted
      },
      execute: (args) => executeWithin(args, timeoutMs),
      onSubscribe: (_request, parameters) => {
        const prepared = prepare(parameters)
        return prepared.ok
          ? {
              ...prepared.args,
              contextValue: { ...createContext(key, requestId, prepared.listing), cost: prepared.cost },
            }
          : [...prepared.errors]
      },
    })
    const { method = 'GET', headers: sent } = request
    const { path, query } = parseRequestTarget(request.url ?? '')
    const url = `${path}?${withReferenceInQuery(query).replaceAll('?', '%3F')}`
    const parameters = parseJsonObject(body)
    const [text, { status, headers = {} }] = await handler({
      method,
      url,
      headers: sent,
      body: parameters === null ? body : withReference(parameters),
      raw: request,
      context: key,
    })
    if (text !== null && isAway)
      return [text, { status: 503, headers: { ...headers, 'Retry-After': retryAfterSeconds } }]
    if (text !== null && status !== 405) return [text, { status, headers }] // its own body of a 405 has neither code nor media type
    const message = messages[status] ?? 'The request is not GraphQL over HTTP.'
    return [
      JSON.stringify({ errors: [{ message, extensions: { code: 'BAD_USER_INPUT' } }] }),
      { status, headers: { ...headers, 'Content-Type': 'application/json; charset=utf-8' } },
    ]
  }
}

/** A GET that names its document by a hash may leave `query` out. */
function withReferenceInQuery(query: string): string {
  if (!/(?:documentId|extensions)=/.test(query)) return query
  const given = new URLSearchParams(query)
  const extensions = parseJsonObject(given.get('extensions') ?? '') ?? undefined
  const documentId = given.get('documentId') ?? undefined
  const named = withReference({ query: given.get('query'), documentId, extensions })
  if (named['query'] !== '') return query
  given.set('query', '')
  given.set('extensions', JSON.stringify(named['extensions']))
  return given.toString()
}

const messages: Readonly<Record<number, string>> = {
  405: 'Send a query by GET or POST, a mutation by POST.',
  406: 'Accept application/graphql-response+json or application/json, in UTF-8.',
  415: 'Send JSON: Content-Type: application/json, in UTF-8.',
}

/** Executes within a time, and adds the cost of the operation to the result. */
export async function executeWithin(args: ExecutionArgs, timeoutMs: number): Promise<ExecutionResult> {
  const { cost } = args.contextValue as GraphqlContext
  const result = await resultWithin(args, timeoutMs)
  return cost === undefined ? result : { ...result, extensions: costExtensions(cost) }
}

/** A statement or call that outlives the time ends by its own deadline. */
async function resultWithin(args: ExecutionArgs, timeoutMs: number): Promise<ExecutionResult> {
  const result = execute(args)
  if (!(result instanceof Promise)) return result
  const onTimeout = (): ExecutionResult => ({
    errors: [graphqlError('TOO_COMPLEX', `The operation took longer than ${timeoutMs / 1_000} s.`)],
  })
  return withDeadline(result, timeoutMs, { onTimeout }).catch((error: unknown) => ({ errors: [faultError(error)] }))
}

/** Returns an id under which the log has the faults of an operation. */
export function newRequestId(): string {
  return requestIdFor(undefined)
}
