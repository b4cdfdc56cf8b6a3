/** One operation over HTTP by graphql-http: parameters, media types and statuses of GraphQL over HTTP. */
import type { IncomingMessage } from 'node:http'
import { execute, getOperationAST, type ExecutionArgs, type ExecutionResult } from 'graphql'
import { createHandler } from 'graphql-http'
import { mediaRanges, qualityOf } from '../../http/accept.ts'
import { getHeader, parseRequestTarget } from '../../http/request.ts'
import { withDeadline } from '../../lib/async/deadline.ts'
import { retryAfterSeconds } from '../../lib/errors.ts'
import { parseJsonObject } from '../../lib/json.ts'
import type { ApiKey } from '../../access/api-keys.ts'
import type { CreateContext, GraphqlContext } from '../context.ts'
import { faultError, graphqlError, type FormatError } from '../errors.ts'
import type { GraphqlCode } from '../../lib/error-codes.ts'
import { withReference } from './trusted-documents.ts'
import { costExtensions, type PrepareOperation } from './prepare.ts'

/** The text and head of a response. */
export type HttpAnswer = readonly [text: string, { readonly status: number; readonly headers: Headers }]
type Headers = Readonly<Record<string, string>>

export type HttpOperation = ReturnType<typeof createHttpOperation>

/** The steps that HTTP, event streams and WebSockets share. */
export type OperationSteps = {
  readonly prepare: PrepareOperation
  readonly createContext: CreateContext
  readonly formatError: FormatError
} & Times

type Times = {
  /** Time for a query or an event, and for the start of each field of a mutation. */
  readonly timeoutMs?: number
  /** Further time of a mutation, whose last step waits for the chain and for the index. */
  readonly lastStepMs?: number
}

export function createHttpOperation({ prepare, createContext, formatError, ...times }: OperationSteps) {
  return async (request: IncomingMessage, body: string, key: ApiKey, requestId: string): Promise<HttpAnswer> => {
    let isAway = false
    const handler = createHandler<IncomingMessage, ApiKey, GraphqlContext>({
      formatError: (error) => {
        const formatted = formatError(error, requestId)
        isAway ||= formatted.extensions['code'] === 'DATABASE_UNAVAILABLE'
        return formatted
      },
      execute: (args) => executeWithin(args, times),
      onSubscribe: (_request, parameters) => {
        const prepared = prepare(parameters)
        if (prepared.ok && prepared.kind === 'subscription') return [graphqlError('BAD_USER_INPUT', needsStream)]
        if (!prepared.ok) return [...prepared.errors]
        return { ...prepared.args, contextValue: createContext(key, requestId, prepared) }
      },
    })
    const parts = operationRequest(request, body)
    const [text, { status, headers = {} }] = await handler({
      ...parts,
      headers: { get: (name) => readHeader(request, name) },
      raw: request,
      context: key,
    })
    if (text !== null && isAway)
      return [text, { status: 503, headers: { ...headers, 'Retry-After': retryAfterSeconds } }]
    if (text !== null && status !== 405) return [text, { status, headers }] // its own body of a 405 has neither code nor media type
    return requestFailure(status, headers)
  }
}

/** graphql-http does not parse quotes around the value of a parameter (RFC 9110 §5.6.6). */
function readHeader(request: IncomingMessage, name: string): string | null {
  const value = getHeader(request, name) ?? null
  if (name === 'accept') return withoutRefused(value)
  return name === 'content-type' && value !== null ? value.replaceAll('"', '') : value
}

/** The media types of answers. A range that covers both stands for the first. */
const answerTypes = ['application/json', 'application/graphql-response+json']

/** Returns `Accept` without the media types that a weight of 0 refuses: graphql-http ignores weights. */
function withoutRefused(accept: string | null): string | null {
  if (accept === null || !/;\s*q\s*=\s*0(?:\.0*)?\s*(?:[;,]|$)/i.test(accept)) return accept
  const ranges = mediaRanges(accept)
  const taken = ranges.flatMap(({ type, quality }) =>
    answerTypes.filter(
      (one) => quality > 0 && qualityOf(ranges, one) > 0 && [one, 'application/*', '*/*'].includes(type),
    ),
  )
  return taken.join() || 'none'
}

const needsStream = 'Send a subscription with Accept: text/event-stream, or over a WebSocket.'

/** Answers a request that is no operation. */
export function requestFailure(status: number, headers: Headers = {}): HttpAnswer {
  return errorAnswer(status, 'BAD_USER_INPUT', messages[status] ?? 'The request is not GraphQL over HTTP.', headers)
}

/** Returns the answer with one error. */
export function errorAnswer(status: number, code: GraphqlCode, message: string, headers: Headers): HttpAnswer {
  const text = JSON.stringify({ errors: [{ message, extensions: { code } }] })
  return [text, { status, headers: { ...headers, 'Content-Type': 'application/json; charset=utf-8' } }]
}

/** Returns the parts of a request as graphql-http and graphql-sse take them. A document that is named by its hash has an empty query. */
export function operationRequest({ method = 'GET', url = '' }: IncomingMessage, body: string) {
  const { path, query } = parseRequestTarget(url)
  const parameters = parseJsonObject(body)
  return {
    method,
    url: `${path}?${withReferenceInQuery(query).replaceAll('?', '%3F')}`,
    body: parameters === null ? body : withReference(parameters),
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
  400: 'Send {"query": "…", "variables": {…}} as the body, or query and variables in the URL.',
  405: 'Send a query by GET or POST, a mutation by POST.',
  406: 'Accept application/graphql-response+json, application/json or text/event-stream, in UTF-8.',
  415: 'Send JSON: Content-Type: application/json, in UTF-8.',
}

/** Executes within a time, and adds the cost of the operation to the result. */
export async function executeWithin(
  args: ExecutionArgs,
  { timeoutMs = 30_000, lastStepMs = 15_000 }: Times,
): Promise<ExecutionResult> {
  const { cost } = args.contextValue as GraphqlContext
  const isMutation = getOperationAST(args.document, args.operationName)?.operation === 'mutation'
  const result = await (isMutation ? mutate(args, timeoutMs, timeoutMs + lastStepMs) : query(args, timeoutMs))
  return cost === undefined ? result : { ...result, extensions: costExtensions(cost) }
}

async function query(args: ExecutionArgs, timeoutMs: number): Promise<ExecutionResult> {
  const { metaRead } = args.contextValue as GraphqlContext
  // Every list then holds at the block of `_meta`, or at a later one.
  const result = metaRead === undefined ? execute(args) : metaRead.catch(() => {}).then(() => execute(args))
  return settledWithin(result, timeoutMs, () => ({
    data: null,
    errors: [graphqlError('TOO_COMPLEX', `The operation took longer than ${timeoutMs / 1_000} s.`)],
  }))
}

/** Begins no field after `startMs`. Fields that were begun may write after `endMs` too, so that the error then is no refusal. */
async function mutate(args: ExecutionArgs, startMs: number, endMs: number): Promise<ExecutionResult> {
  const context = args.contextValue as GraphqlContext
  const contextValue: GraphqlContext = { ...context, tooLate: AbortSignal.timeout(startMs) }
  const message = `The mutation took longer than ${endMs / 1_000} s and may have been done: repeat it with the same idempotencyKey.`
  return settledWithin(execute({ ...args, contextValue }), endMs, () => ({
    data: null,
    errors: [graphqlError('DEADLINE_EXCEEDED', message)],
  }))
}

/**
 * A statement or call that outlives the time ends by its own deadline. The data of an operation that was begun is null: without `data` its
 * status could not be 200.
 */
async function settledWithin(
  result: ExecutionResult | Promise<ExecutionResult>,
  ms: number,
  onTimeout: () => ExecutionResult,
): Promise<ExecutionResult> {
  if (!(result instanceof Promise)) return result
  return withDeadline(result, ms, { onTimeout }).catch((error: unknown) => ({
    data: null,
    errors: [faultError(error)],
  }))
}
