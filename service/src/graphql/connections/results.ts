/** The results of one operation for a connection that stays open. A query or mutation has one, a subscription one per event. */
import { createSourceEventStream, type ExecutionArgs, type ExecutionResult } from 'graphql'
import type { GraphqlContext } from '../context.ts'
import { executeWithin, type OperationSteps } from '../server/operation.ts'
import type { SubscriptionEvent } from '../subscriptions/subscriptions.ts'

/** `return` ends it at once, even while `next` is pending. */
export type Results = AsyncGenerator<ExecutionResult, undefined, undefined>

export type ResultMaker = {
  readonly execute: (args: ExecutionArgs) => Promise<ExecutionResult>
  /** Returns a result with errors where the subscription could not begin. */
  readonly subscribe: (args: ExecutionArgs) => Promise<Results | ExecutionResult>
}

/** Errors of the results are those that clients receive. `newContext` creates the context of an event. */
export function createResultMaker(
  { formatError, ...times }: Pick<OperationSteps, 'formatError' | 'timeoutMs' | 'lastStepMs'>,
  newContext: () => GraphqlContext,
): ResultMaker {
  function format({ errors, ...result }: ExecutionResult, { contextValue }: ExecutionArgs): ExecutionResult {
    const { requestId } = contextValue as GraphqlContext
    return errors === undefined ? result : { ...result, errors: errors.map((error) => formatError(error, requestId)) }
  }

  async function execute(args: ExecutionArgs): Promise<ExecutionResult> {
    return format(await executeWithin(args, times), args)
  }

  async function subscribe(args: ExecutionArgs): Promise<Results | ExecutionResult> {
    const stream = await createSourceEventStream(args)
    if (!(Symbol.asyncIterator in stream)) return format(stream, args)
    // The loaders of the request would remember the first event, so that each event brings its own.
    return mapResults(stream as AsyncIterable<SubscriptionEvent, undefined>, (event) =>
      execute({ ...args, rootValue: event, contextValue: { ...newContext(), loaders: event.loaders } }),
    )
  }

  return { execute, subscribe }
}

/** Maps events to results. It is not an async function*, whose `return` would wait for the event that `next` is waiting for. */
function mapResults<Event>(
  stream: AsyncIterable<Event, undefined>,
  run: (event: Event) => Promise<ExecutionResult>,
): Results {
  const events = stream[Symbol.asyncIterator]()
  const ended = { done: true, value: undefined } as const
  const end = async () => {
    await events.return?.()
    return ended
  }
  return {
    async next() {
      const { done, value } = await events.next()
      return done === true ? ended : { done: false, value: await run(value) }
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
