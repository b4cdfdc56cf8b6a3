/** A running subscription: each event is executed with loaders of its own, because those of a request would remember the first event. */
import { createSourceEventStream, type ExecutionArgs, type ExecutionResult } from 'graphql'

export type Results = AsyncIterableIterator<ExecutionResult, undefined>

/** `run` executes the operation for one event. An ExecutionResult tells why there is no subscription. */
export async function runSubscription<Event>(
  args: ExecutionArgs,
  run: (event: Event) => Promise<ExecutionResult>,
): Promise<Results | ExecutionResult> {
  const stream = await createSourceEventStream(args)
  if (!(Symbol.asyncIterator in stream)) return stream
  const events = stream[Symbol.asyncIterator]() as AsyncIterator<Event, undefined>
  const results: Results = {
    async next() {
      const { done, value } = await events.next()
      return done === true ? ended : { done: false, value: await run(value) }
    },
    // Not a generator: its `return` would wait for the event that `next` is waiting for.
    async return() {
      await events.return?.()
      return ended
    },
    [Symbol.asyncIterator]() {
      return results
    },
  }
  return results
}

const ended = { done: true, value: undefined } as const
