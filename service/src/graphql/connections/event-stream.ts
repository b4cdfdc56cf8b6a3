/**
 * GraphQL over server-sent events (the protocol of graphql-sse, distinct connections mode). A request that accepts `text/event-stream` gets
 * every result of its operation on its response. Key, quota, checks and limits of connections are those of the other ways.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { ExecutionResult, GraphQLError } from 'graphql'
import { createHandler } from 'graphql-sse'
import { mediaRanges } from '../../http/accept.ts'
import { getHeader, requestIdOf } from '../../http/request.ts'
import { retryAfterSeconds } from '../../lib/errors.ts'
import type { Log } from '../../lib/log.ts'
import type { ApiKey } from '../../access/api-keys.ts'
import type { GraphqlContext } from '../context.ts'
import { faultError } from '../errors.ts'
import {
  errorAnswer,
  type HttpAnswer,
  operationRequest,
  type OperationSteps,
  requestFailure,
} from '../server/operation.ts'
import type { Connection, Connections } from './connections.ts'
import { createResultMaker, type Results } from './results.ts'

export type EventStreamOptions = OperationSteps & {
  readonly connections: Connections
  readonly log: Log
  /** A client that takes nothing for so long is dropped. */
  readonly stuckMs?: number
}

/** Streams results until either side ends; `headers` are those of every answer. Returns the answer where there is nothing to stream. */
export type StreamOperation = (
  request: IncomingMessage,
  response: ServerResponse,
  body: string,
  key: ApiKey,
  headers: Readonly<Record<string, string>>,
) => Promise<HttpAnswer | null>

/** Returns whether a request accepts an event stream and no JSON, which clients of queries accept beside it. */
export function acceptsOnlyEvents(request: IncomingMessage): boolean {
  const accept = getHeader(request, 'accept') ?? ''
  if (!/event-stream/i.test(accept)) return false // most requests, at a fraction of the cost
  const taken = mediaRanges(accept).filter(({ quality }) => quality > 0)
  const isTaken = (pattern: RegExp) => taken.some(({ type }) => pattern.test(type))
  return isTaken(/^text\/event-stream$/) && !isTaken(/json|^(?:application|\*)\/\*$/)
}

/** Time in which a stream that is closed has to end, in ms. */
const closeWithinMs = 1_000

export function createStreamOperation(options: EventStreamOptions): StreamOperation {
  const { prepare, createContext, formatError, connections, log, stuckMs = 14_000 } = options

  return async (request, response, body, key, headers) => {
    if (request.method !== 'GET' && request.method !== 'POST')
      return requestFailure(405, { Allow: 'GET, POST, OPTIONS' })
    if (response.destroyed) return null
    const output = openOutput(response, { stuckMs, log })
    const refusal = admit(connections, output.connection, key)
    if (refusal !== null) return refusal
    response.once('close', () => connections.remove(output.connection))

    const requestId = requestIdOf(response)
    const results = createResultMaker(options, () => createContext(key, requestId))
    const handler = createHandler<IncomingMessage, undefined, GraphqlContext>({
      authenticate: () => null, // the host has; null leaves distinct connections mode alone
      validate: () => [], // `prepare` has
      onSubscribe(_request, parameters) {
        const prepared = prepare(parameters)
        if (!prepared.ok) return onlyResult({ errors: prepared.errors.map((error) => formatError(error, requestId)) })
        return { ...prepared.args, contextValue: createContext(key, requestId, prepared) }
      },
      execute: results.execute,
      async subscribe(args) {
        const stream = await results.subscribe(args)
        return 'next' in stream ? endingWithError(stream, (error) => formatError(error, requestId)) : stream
      },
      onNext: output.isFree,
    })
    const [content, { status }] = await handler({
      ...operationRequest(request, body),
      headers: { get: (name) => (name === 'accept' ? 'text/event-stream' : getHeader(request, name)) },
      raw: request,
      context: undefined,
    })
    // A GET may run a query, but no mutation.
    const allowed = status === 405 ? { Allow: 'POST' } : {}
    if (content === null || typeof content === 'string') return requestFailure(status, allowed)
    await output.send(content, headers)
    return null
  }
}

/** Adds a connection under its key. Returns the answer where it may not open. */
function admit(connections: Connections, connection: Connection, { id }: ApiKey): HttpAnswer | null {
  const again = { 'Retry-After': retryAfterSeconds }
  if (!connections.hasRoom())
    return errorAnswer(503, 'RATE_LIMITED', 'The service has no room for another connection. Try again later.', again)
  connections.add(connection)
  if (connections.claim(connection, id) === null) return null
  connections.remove(connection)
  return errorAnswer(
    429,
    'RATE_LIMITED',
    `An API key may have ${connections.maxPerKey} connections. Close one first.`,
    again,
  )
}

/** The response as an output of one message at a time. `isFree` resolves once the result before has left, so that none are queued. */
function openOutput(response: ServerResponse, { stuckMs, log }: { readonly stuckMs: number; readonly log: Log }) {
  let isClosing = false
  let messages: AsyncGenerator<string> | undefined
  let written = Promise.resolve()
  /** End the wait of `isFree`, and that for a write, which a connection that is gone may never report. */
  let resolveResult = () => {}
  let resolveWrite = () => {}

  async function isFree(): Promise<void> {
    await written
    if (response.destroyed) return
    ;({ promise: written, resolve: resolveResult } = Promise.withResolvers<void>())
  }

  async function write(message: string): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(() => {
      log.info('event stream dropped', { reason: 'it does not read' })
      response.destroy()
    }, stuckMs)
    resolveWrite = resolve
    response.write(message, () => resolve())
    await promise
    clearTimeout(timer)
  }

  async function send(content: AsyncGenerator<string>, headers: Readonly<Record<string, string>>): Promise<void> {
    messages = content
    response.writeHead(200, { ...headers, ...streamHeaders })
    for await (const message of content) {
      // Clients take an end without `complete` for a lost connection, and come again.
      if (isClosing || response.destroyed) break
      await write(message)
      if (message.startsWith('event: next')) resolveResult()
    }
    response.end()
  }

  function end(): void {
    isClosing = true
    resolveResult()
    void messages?.return(undefined)
  }

  function close(): void {
    if (isClosing) return
    end()
    const timer = setTimeout(() => response.destroy(), closeWithinMs)
    response.once('close', () => clearTimeout(timer))
  }

  response.once('close', () => {
    end()
    resolveWrite()
  })
  return { isFree, send, connection: { close } satisfies Connection }
}

const streamHeaders = {
  'Content-Type': 'text/event-stream; charset=utf-8',
  'X-Accel-Buffering': 'no', // nginx would hold events back
} as const

async function* onlyResult(result: ExecutionResult) {
  yield result
}

/** Makes the error that ends a subscription its last result. */
function endingWithError(results: Results, format: (error: GraphQLError) => GraphQLError): Results {
  let hasFailed = false
  return {
    ...results,
    async next() {
      if (hasFailed) return { done: true, value: undefined }
      try {
        return await results.next()
      } catch (error) {
        hasFailed = true
        return { done: false, value: { errors: [format(faultError(error))] } }
      }
    },
  }
}
