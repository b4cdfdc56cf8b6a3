/**
 * Dispatches events of the outbox to subscribers (spec §6), in the order of their commits. Every instance of the service has one. It
 * starts at the newest event, and after a fault of the database it resumes at the event where it stopped.
 */
import type { GraphQLError } from 'graphql'
import type { OutboxEvent } from '../../index/outbox.ts'
import { sleep } from '../../lib/async/sleep.ts'
import { isLockTimeout } from '../../db/errors.ts'
import { retry } from '../../lib/async/retry.ts'
import { reasonOf } from '../../lib/errors.ts'
import type { Log } from '../../lib/log.ts'
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

type Subscriber<Payload> = Pick<SubscriberQueue<Payload>, 'push' | 'fail' | 'waiting'>

export type EventDispatcher<Payload> = AsyncDisposable & {
  /** Delivers the events committed from now on, of a topic (`tap`) or of one token (`channelOf`). Returns a function that stops it. */
  readonly subscribe: (channel: string, subscriber: Subscriber<Payload>) => () => void
}

export type EventDispatcherOptions<Payload> = {
  readonly outbox: {
    readonly after: (seq: bigint, limit: number) => Promise<readonly OutboxEvent[]>
    readonly newest: () => Promise<bigint>
  }
  /** Calls back when there may be new events. */
  readonly listen: (onNotice: () => void) => AsyncDisposable
  /** Loads the payloads of events that have subscribers, in their order; null drops an event. */
  readonly load: (events: readonly OutboxEvent[]) => Promise<readonly (Payload | null)[]>
  readonly log: Log
  /** Interval of reads without a notice, in ms, because notices can be lost. */
  readonly pollMs?: number
}

export const queueLimit = 256
/** A subscriber whose queue is half empty can take a whole round. */
const roundSize = queueLimit / 2
/** The pause after a round, in ms, and how often it repeats: for subscribers that read, and for one that reads nothing. */
const pauseMs = 2
const mostPauses = 500
const standstillPauses = 50
const mostTries = 5

/** Throws the outbox's error when its newest event cannot be read. */
export async function createEventDispatcher<Payload>(
  options: EventDispatcherOptions<Payload>,
): Promise<EventDispatcher<Payload>> {
  const { outbox, listen, load, log, pollMs = 1_000 } = options
  const channels = new Map<string, Set<Subscriber<Payload>>>()
  let last = await retry(outbox.newest, {
    pausesMs: Array.from({ length: 60 }, () => 500),
    isRetryable: isLockTimeout,
    onRetry: () => log.warn('the start waits: a writer holds the events'),
  })
  let isWoken = false
  let isClosed = false
  let isRunning = false
  let run: Promise<void> | undefined
  let isFailing = false
  let tries = 0

  function wake(): void {
    isWoken = true
    if (!isRunning) run = runUntilIdle()
  }

  async function runUntilIdle(): Promise<void> {
    isRunning = true
    try {
      while (isWoken && !isClosed) {
        isWoken = false
        await catchUp()
        if (isFailing) log.info('events are read again')
        isFailing = false
      }
    } catch (error) {
      if (!isFailing) log.warn('events not read', { reason: reasonOf(error) })
      isFailing = true // the next poll tries again
    } finally {
      isRunning = false
    }
  }

  async function catchUp(): Promise<void> {
    for (;;) {
      const events = await outbox.after(last, roundSize)
      if (events.length === 0) break
      await deliver(events)
      last = events.at(-1)?.seq ?? last
      if (isClosed) return
    }
    // A database that was restored from a backup counts from an earlier event, an empty outbox from 0.
    const newest = await outbox.newest()
    if (newest < last) last = newest
  }

  async function deliver(events: readonly OutboxEvent[]): Promise<void> {
    const subscribed = events.filter((event) => subscribersOf(event).length > 0)
    if (subscribed.length === 0) return
    const payloads = await loadOrGiveUp(subscribed)
    const upToDate = new Set<Subscriber<Payload>>()
    for (const [index, event] of subscribed.entries()) {
      for (const subscriber of subscribersOf(event)) {
        if (subscriber.waiting() <= roundSize) upToDate.add(subscriber)
        const payload = payloads?.[index]
        if (payloads === null) subscriber.fail(notLoaded())
        else if (payload !== null && payload !== undefined) subscriber.push(payload)
      }
    }
    await pauseFor([...upToDate])
  }

  /** Returns null after several failures in a row, although the outbox itself could be read. */
  async function loadOrGiveUp(events: readonly OutboxEvent[]): Promise<readonly (Payload | null)[] | null> {
    try {
      const payloads = await load(events)
      tries = 0
      return payloads
    } catch (error) {
      tries += 1
      if (tries < mostTries) throw error
      log.error('events not delivered', { reason: reasonOf(error), from: events[0]?.seq, count: events.length })
      tries = 0
      return null
    }
  }

  function subscribersOf({ topic, tokenId }: OutboxEvent): Subscriber<Payload>[] {
    return [topic, channelOf(topic, tokenId)].flatMap((channel) => [...(channels.get(channel) ?? [])])
  }

  const listening = listen(wake)
  const poll = setInterval(wake, pollMs)
  return {
    subscribe(channel, subscriber) {
      const subscribers = channels.get(channel) ?? new Set()
      channels.set(channel, subscribers.add(subscriber))
      return () => {
        subscribers.delete(subscriber)
        if (subscribers.size === 0 && channels.get(channel) === subscribers) channels.delete(channel)
      }
    },
    async [Symbol.asyncDispose]() {
      isClosed = true
      clearInterval(poll)
      await listening[Symbol.asyncDispose]()
      await run
    },
  }
}

/** Returns the channel of one token's events of a topic. */
export function channelOf(topic: string, tokenId: bigint): string {
  return `${topic} ${tokenId}`
}

/**
 * Waits while subscribers that were up to date read this round, so that a burst does not overflow their queues. It counts pauses, not
 * time: while the event loop is blocked, a subscriber cannot read either.
 */
async function pauseFor(subscribers: readonly { readonly waiting: () => number }[]): Promise<void> {
  let behind = subscribers.map(({ waiting }) => ({ waiting, left: waiting(), movedAt: 0 }))
  for (let pauses = 0; pauses < mostPauses; pauses += 1) {
    behind = behind.filter((one) => {
      const left = one.waiting()
      if (left < one.left) Object.assign(one, { left, movedAt: pauses })
      return left > roundSize && pauses - one.movedAt < standstillPauses
    })
    if (behind.length === 0) return
    await sleep(pauseMs)
  }
}

function notLoaded(): GraphQLError {
  return graphqlError('INTERNAL', 'Some events could not be read, so this subscription has ended. Subscribe again.')
}

/**
 * Creates the queue of one subscription. `onEnd` is called once, when either side ends it. It is bounded, so that a slow client costs
 * others nothing: on overflow it ends with an error, because events that are left out silently would be worse.
 */
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
