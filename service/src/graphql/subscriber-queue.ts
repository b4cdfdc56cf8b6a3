/**
 * What waits for one subscriber (spec §6): bounded, so that a client that reads slowly or not at all costs others nothing. One that
 * falls behind is told to subscribe again; leaving events out without a word would be worse than ending.
 */
import type { GraphQLError } from 'graphql'
import { graphqlError } from './error-codes.ts'

export type SubscriberQueue<T> = {
  readonly push: (event: T) => void
  /** Ends the subscription with an error for the client; what waits is dropped. */
  readonly fail: (error: GraphQLError) => void
  /** How many events the subscriber has not taken yet. */
  readonly waiting: () => number
  /** For one reader. `return` ends it at once, also while it waits. */
  readonly events: AsyncIterableIterator<T, undefined>
}

/** Events that may wait for one subscriber. */
export const queueLimit = 256

/** `onEnd` is called once, whoever ends the subscription. */
export function createSubscriberQueue<T>(onEnd: () => void): SubscriberQueue<T> {
  const queue: T[] = []
  const readers: PromiseWithResolvers<IteratorResult<T, undefined>>[] = []
  let ended = false
  let failure: GraphQLError | undefined

  function end(): void {
    if (ended) return
    ended = true
    queue.length = 0
    onEnd()
  }

  function fail(error: GraphQLError): void {
    if (ended) return
    end()
    const reader = readers.shift()
    if (reader === undefined) failure = error
    else reader.reject(error)
    finish()
  }

  function finish(): void {
    for (const reader of readers.splice(0)) reader.resolve({ done: true, value: undefined })
  }

  return {
    push(event) {
      if (ended) return
      const reader = readers.shift()
      if (reader !== undefined) reader.resolve({ done: false, value: event })
      else if (queue.length < queueLimit) queue.push(event)
      else fail(fellBehind())
    },
    fail,
    waiting: () => queue.length,
    events: {
      async next() {
        const event = queue.shift()
        if (event !== undefined) return { done: false, value: event }
        if (failure !== undefined) {
          const error = failure
          failure = undefined
          throw error
        }
        if (ended) return { done: true, value: undefined }
        const reader = Promise.withResolvers<IteratorResult<T, undefined>>()
        readers.push(reader)
        return reader.promise
      },
      async return() {
        end()
        finish()
        return { done: true, value: undefined }
      },
      [Symbol.asyncIterator]() {
        return this
      },
    },
  }
}

function fellBehind(): GraphQLError {
  return graphqlError(
    'RATE_LIMITED',
    `More than ${queueLimit} events were waiting to be read, so this subscription has ended. Subscribe again, and query what you missed.`,
  )
}
