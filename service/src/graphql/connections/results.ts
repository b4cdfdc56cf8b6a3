/** The results of one operation for a connection that stays open. A query or mutation has one, a subscription one per event. */
import { createSourceEventStream, type ExecutionArgs, type ExecutionResult } from 'graphql'
import type { GraphqlContext } from '../context.ts'
import { graphqlError } from '../errors.ts'
import { executeWithin, type OperationSteps } from '../server/operation.ts'
import type { SubscriptionEvent } from '../subscriptions/subscriptions.ts'

/** `return` ends it at once, even while `next` is pending. */
export type Results = AsyncGenerator<ExecutionResult, undefined, undefined>

/** Errors of the results are those that clients receive. `newContext` creates the context of an event. */
export function createResultMaker(
  { formatError, ...times }: Pick<OperationSteps, 'formatError' | 'timeoutMs' | 'lastStepMs'>,
  newContext: () => GraphqlContext,
) {
  function format({ errors, ...result }: ExecutionResult, { contextValue }: ExecutionArgs): ExecutionResult {
    const { requestId } = contextValue as GraphqlContext
    return errors === undefined ? result : { ...result, errors: errors.map((error) => formatError(error, requestId)) }
  }

  async function execute(args: ExecutionArgs): Promise<ExecutionResult> {
    return format(await executeWithin(args, times), args)
  }

  /** Returns a result with errors where the subscription could not begin. */
  async function subscribe(args: ExecutionArgs): Promise<Results | ExecutionResult> {
    const { key, cost = 0, turns } = args.contextValue as GraphqlContext
    const close = turns.open(key.id, Math.max(1, cost))
    if (close === null) return format({ errors: [tooManyOpen(turns.maxOpenCost)] }, args)
    let stream: Awaited<ReturnType<typeof createSourceEventStream>> | undefined
    try {
      stream = await createSourceEventStream(args)
    } finally {
      if (stream === undefined || !(Symbol.asyncIterator in stream)) close()
    }
    if (!(Symbol.asyncIterator in stream)) return format(stream, args)
    return mapResults(stream as AsyncIterable<SubscriptionEvent, undefined>, {
      inTurn: (work) => turns.execute(key.id, work),
      // The loaders of the request would remember the first event, so that each event has others.
      run(event) {
        const context = newContext()
        const contextValue = { ...context, loaders: event.loaders ?? context.loaders }
        return execute({ ...args, rootValue: event, contextValue })
      },
      close,
    })
  }

  return { execute, subscribe }
}

function tooManyOpen(maxOpenCost: number) {
  const message = `The open subscriptions of an API key may cost ${maxOpenCost} together. Complete some first, or ask for less of each event.`
  return graphqlError('RATE_LIMITED', message)
}

/**
 * Maps events to results, each when it is its turn. It is not an async function*, whose `return` would wait for the event that `next` is
 * waiting for. `close` is called at the end, at least once.
 */
function mapResults<Event>(
  stream: AsyncIterable<Event, undefined>,
  {
    inTurn,
    run,
    close,
  }: Readonly<{
    inTurn: <T>(work: () => Promise<T>) => Promise<T>
    run: (event: Event) => Promise<ExecutionResult>
    close: () => void
  }>,
): Results {
  const events = stream[Symbol.asyncIterator]()
  const ended = { done: true, value: undefined } as const
  let isEnded = false
  const end = async () => {
    isEnded = true
    close()
    await events.return?.()
    return ended
  }
  return {
    async next() {
      const { done, value } = await events.next().catch((error: unknown) => {
        close()
        throw error
      })
      if (done === true) return end()
      return inTurn(async () => (isEnded ? ended : { done: false, value: await run(value) }))
    },
    return: end,
    async throw(error) {
      await end()
      throw error
    },
    [Symbol.asyncIterator]() {
      return this
    },
    async [Symbol.asyncDispose]() {
      await end()
    },
  }
}
