/**
 * The operations of one connection (spec §5, §6). The key comes with `connection_init`; every operation passes the same checks and
 * consumes the same quota as over HTTP.
 */
import { createSourceEventStream, type ExecutionArgs, type ExecutionResult, type GraphQLError } from 'graphql'
import type { ServerOptions } from 'graphql-ws'
import type { RateLimiter } from '../../http/rate-limit/limiter.ts'
import type { ApiKey } from '../api-keys.ts'
import type { GraphqlContext } from '../context.ts'
import { graphqlError } from '../errors.ts'
import { executeWithin, newRequestId, type OperationSteps } from '../server/operation.ts'
import type { SubscriptionEvent } from '../subscriptions/subscriptions.ts'

export type SocketOperations = OperationSteps & {
  /** By API key. Left out: no limit. */
  readonly limiter?: RateLimiter | undefined
  /** Subscriptions and pending requests of one connection. */
  readonly maxOperations?: number
}

/** Creates the options of graphql-ws for one connection. `admit` returns its key, or null after it has closed the connection. */
export function connectionOperations(
  { prepare, createContext, formatError, limiter, maxOperations = 50, timeoutMs = 30_000 }: SocketOperations,
  admit: (authorization: string | undefined) => Promise<ApiKey | null>,
): ServerOptions {
  let key: ApiKey | null = null
  let running = 0
  // graphql-ws acknowledges a connection, and so reads operations, only after `admit` has returned a key.
  const newContext = (listing = false) => createContext(key as ApiKey, newRequestId(), listing)

  async function quotaError(): Promise<GraphQLError | null> {
    const quota = await limiter?.take(key?.id ?? '')
    return quota?.allowed === false
      ? graphqlError('RATE_LIMITED', `Too many requests. Send the next one in ${quota.resetSeconds} s.`)
      : null
  }

  function format({ errors, ...result }: ExecutionResult, { contextValue }: ExecutionArgs): ExecutionResult {
    const { requestId } = contextValue as GraphqlContext
    return errors === undefined ? result : { ...result, errors: errors.map((error) => formatError(error, requestId)) }
  }

  async function runOnce(args: ExecutionArgs): Promise<ExecutionResult> {
    return format(await executeWithin(args, timeoutMs), args)
  }

  async function runSubscription(args: ExecutionArgs): Promise<Results | ExecutionResult> {
    const stream = await createSourceEventStream(args)
    if (!(Symbol.asyncIterator in stream)) return format(stream, args)
    // The loaders of the request would remember the first event, so that each event brings its own.
    return mapResults(stream as AsyncIterable<SubscriptionEvent, undefined>, (event) =>
      runOnce({ ...args, rootValue: event, contextValue: { ...newContext(), loaders: event.loaders } }),
    )
  }

  return {
    async onConnect({ connectionParams }) {
      const given = connectionParams?.['authorization'] ?? connectionParams?.['Authorization']
      key = await admit(typeof given === 'string' ? given : undefined)
      return key !== null
    },
    async onSubscribe(_connection, _id, parameters) {
      if (running >= maxOperations)
        return [graphqlError('RATE_LIMITED', `A connection may have ${maxOperations} operations at a time.`)]
      running += 1 // before the quota is read, which may take a moment
      const overQuota = await quotaError()
      const prepared = overQuota === null ? prepare(parameters) : ({ ok: false, errors: [overQuota] } as const)
      if (prepared.ok) return { ...prepared.args, contextValue: newContext(prepared.listing) }
      running -= 1
      return prepared.errors
    },
    execute: runOnce,
    subscribe: runSubscription,
    onComplete: () => void (running -= 1), // called once per accepted operation, whichever side ends it
    onError: (_connection, _id, _payload, errors) => {
      const requestId = newRequestId()
      return errors.map((error) => formatError(error, requestId).toJSON())
    },
  }
}

type Results = AsyncIterableIterator<ExecutionResult, undefined>

/** Maps events to results. It is not a generator, whose `return` would wait for the event that `next` is waiting for. */
function mapResults<Event>(
  stream: AsyncIterable<Event, undefined>,
  run: (event: Event) => Promise<ExecutionResult>,
): Results {
  const events = stream[Symbol.asyncIterator]()
  const ended = { done: true, value: undefined } as const
  return {
    async next() {
      const { done, value } = await events.next()
      return done === true ? ended : { done: false, value: await run(value) }
    },
    async return() {
      await events.return?.()
      return ended
    },
    [Symbol.asyncIterator]() {
      return this
    },
  }
}
