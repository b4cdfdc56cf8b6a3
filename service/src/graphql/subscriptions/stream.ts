/**
 * The events of one subscription (spec §6): those since a position are read from the outbox, later ones come from the dispatcher. The
 * queue is bounded, so that a slow client costs others nothing: on overflow its events are read from the outbox again.
 */
import type { GraphQLError } from 'graphql'
import type { EventFilter, OutboxStore } from '../../index/outbox.ts'
import { reasonOf } from '../../lib/errors.ts'
import type { Log } from '../../lib/log.ts'
import { type EventDispatcher, type LoadPayloads, notLoaded, queueLimit } from './dispatcher.ts'

export type SubscriptionOptions<Payload> = {
  readonly dispatcher: Pick<EventDispatcher<Payload>, 'subscribe' | 'newest'>
  readonly outbox: Pick<OutboxStore, 'range'>
  readonly load: LoadPayloads<Payload>
  /** Creates the error for a client whose next events were deleted. */
  readonly goneError: () => Promise<GraphQLError>
  readonly log: Log
}

/** `after` is the number of the last event that the client has; left out, it gets those from now on. */
export type StreamRequest<Payload> = {
  readonly filter: EventFilter
  readonly after: bigint | null
  /** Returns what this reader gets of a payload; `null` is nothing. */
  readonly view?: (payload: Payload) => Payload | null
}

const replaySize = queueLimit / 2

/** Returns the events of one reader, in order, each once. `return` ends it at once, even while `next` is pending. */
export function createEventStream<Payload>(
  { dispatcher, outbox, load, goneError, log }: SubscriptionOptions<Payload>,
  { filter, after, view = (payload) => payload }: StreamRequest<Payload>,
): AsyncIterableIterator<Payload, undefined> {
  const done = { done: true, value: undefined } as const
  const queue: { readonly seq: bigint; readonly payload: Payload }[] = []
  let replayed: Payload[] = []
  /** The number of the last event that was passed on or left out. */
  let passed = after ?? dispatcher.newest().seq
  let isBehind = after !== null
  let hasOverflown = false
  let isEnded = false
  let failure: GraphQLError | undefined
  let reader: PromiseWithResolvers<IteratorResult<Payload, undefined>> | undefined

  const stop = dispatcher.subscribe(filter, {
    push(seq, shared) {
      if (isEnded || seq <= passed) return
      const payload = view(shared)
      if (payload === null) return
      if (reader !== undefined) {
        passed = seq
        reader.resolve({ done: false, value: payload })
        reader = undefined
      } else if (queue.length < queueLimit) queue.push({ seq, payload })
      else {
        queue.length = 0
        hasOverflown = true
        isBehind = true
      }
    },
    fail: end,
    waiting: () => (isBehind ? 0 : queue.length),
  })

  function end(error?: GraphQLError): void {
    if (isEnded) return
    isEnded = true
    queue.length = 0
    replayed = []
    stop()
    if (reader === undefined) failure = error
    else if (error === undefined) reader.resolve(done)
    else reader.reject(error)
  }

  /** Reads events from the outbox until some are wanted, or until the queue holds all later ones. */
  async function replay(): Promise<void> {
    while (!isEnded) {
      hasOverflown = false
      const upTo = dispatcher.newest().seq
      if (upTo > passed) {
        const page = await outbox.range({ ...filter, after: passed, upTo, limit: replaySize })
        if (page === null) return end(await goneError())
        const { events, reached } = page
        const payloads = events.length > 0 ? await load(events) : []
        passed = reached?.seq ?? upTo
        replayed = payloads.map(view).filter((payload) => payload !== null)
        if (replayed.length > 0) return
        if (reached !== null) continue
      }
      if (hasOverflown) continue
      isBehind = false
      return
    }
  }

  async function next(): Promise<IteratorResult<Payload, undefined>> {
    for (;;) {
      if (failure !== undefined) {
        const error = failure
        failure = undefined
        throw error
      }
      if (isEnded) return done
      if (replayed.length > 0) return { done: false, value: replayed.shift() as Payload }
      if (isBehind) {
        await replay().catch((error: unknown) => {
          log.warn('events not read for a subscription', { reason: reasonOf(error) })
          end(notLoaded())
        })
        continue
      }
      const event = queue.shift()
      if (event === undefined) {
        reader = Promise.withResolvers()
        return reader.promise
      }
      if (event.seq <= passed) continue
      passed = event.seq
      return { done: false, value: event.payload }
    }
  }

  return {
    next,
    async return() {
      end()
      return done
    },
    [Symbol.asyncIterator]() {
      return this
    },
  }
}
