/**
 * The queue of one subscription (spec §6). It is bounded, so that a slow client costs others nothing: on overflow the subscription ends
 * with an error, because events that are left out silently would be worse.
 */
import type { GraphQLError } from 'graphql'
import { graphqlError } from '../errors.ts'

export type SubscriberQueue<T> = {
  readonly push: (event: T) => void
  /** Ends the subscription with an error for the client and drops the queued events. */
  readonly fail: (error: GraphQLError) => void
  /** Returns the number of queued events. */
  readonly waiting: () => number
  /** For one reader. `return` ends it at once, even while `next` is pending. */
  readonly events: AsyncIterableIterator<T, undefined>
}

export const queueLimit = 256

/** `onEnd` is called once, when either side ends the subscription. */
export function createSubscriberQueue<T>(onEnd: () => void): SubscriberQueue<T> {
  const queue: T[] = []
  const done = { done: true, value: undefined } as const
  let reader: PromiseWithResolvers<IteratorResult<T, undefined>> | undefined
  let isEnded = false
  let failure: GraphQLError | undefined

  function end(error?: GraphQLError): void {
    if (isEnded) return
    isEnded = true
    queue.length = 0
    onEnd()
    if (reader === undefined) failure = error
    else if (error === undefined) reader.resolve(done)
    else reader.reject(error)
  }

  return {
    push(event) {
      if (isEnded) return
      if (reader === undefined && queue.length >= queueLimit) return end(fellBehind())
      if (reader === undefined) queue.push(event)
      reader?.resolve({ done: false, value: event })
      reader = undefined
    },
    fail: end,
    waiting: () => queue.length,
    events: {
      async next() {
        const event = queue.shift()
        if (event !== undefined) return { done: false, value: event }
        const error = failure
        failure = undefined
        if (error !== undefined) throw error
        if (isEnded) return done
        reader = Promise.withResolvers()
        return reader.promise
      },
      async return() {
        end()
        return done
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
