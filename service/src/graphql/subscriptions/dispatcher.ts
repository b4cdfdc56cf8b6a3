/**
 * Dispatches events of the outbox to subscribers (spec §6), in the order of their commits. Every instance of the service has one. It
 * starts at the newest event, and after a fault of the database it resumes at the event where it stopped.
 */
import type { GraphQLError } from 'graphql'
import { type EventFilter, matchesFilter, type OutboxEvent, parsePosition, type Place } from '../../index/outbox.ts'
import { sleep } from '../../lib/async/sleep.ts'
import { isLockTimeout } from '../../db/errors.ts'
import { retry } from '../../lib/async/retry.ts'
import { reasonOf } from '../../lib/errors.ts'
import type { Log } from '../../lib/log.ts'
import { graphqlError } from '../errors.ts'

/** `seq` is the number of the event that the payload belongs to. */
type Subscriber<Payload> = {
  readonly push: (seq: bigint, payload: Payload) => void
  /** Ends the subscription with an error for the client and drops the queued events. */
  readonly fail: (error: GraphQLError) => void
  /** Returns the number of queued events. */
  readonly waiting: () => number
}

export type EventDispatcher<Payload> = AsyncDisposable & {
  /** Delivers the selected events committed from now on. Returns a function that stops it. */
  readonly subscribe: (filter: EventFilter, subscriber: Subscriber<Payload>) => () => void
  /** Returns the place of the last event that was read. Every event up to it is committed. */
  readonly newest: () => Place
}

export type EventDispatcherOptions<Payload> = {
  readonly outbox: {
    readonly after: (seq: bigint, limit: number) => Promise<readonly OutboxEvent[]>
    readonly check: (place: Place) => Promise<{ readonly known: boolean }>
    readonly newest: (known?: Place) => Promise<Place>
  }
  /** Calls back when there may be new events. */
  readonly listen: (onNotice: () => void) => AsyncDisposable
  readonly load: LoadPayloads<Payload>
  readonly log: Log
  /** Pauses of a start while a writer holds the events, in ms; each try takes half a second more. */
  readonly startPausesMs?: readonly number[]
  /** Interval of reads without a notice, in ms, because notices can be lost. */
  readonly pollMs?: number
}

/** Loads the payloads of events, in their order. */
export type LoadPayloads<Payload> = (events: readonly OutboxEvent[]) => Promise<readonly Payload[]>

export const queueLimit = 256
/** A subscriber whose queue is half empty can take a whole round. */
const roundSize = queueLimit / 2
/** The pause after a round, in ms, and how often it repeats. There is one for subscribers that read, and for one that reads nothing. */
const pauseMs = 2
const mostPauses = 500
const standstillPauses = 50
const mostTries = 5

/** The time between two rounds during a stream of notices, in ms. */
const spacingMs = 20

/** A start waits a minute for a writer that holds the events. */
const startPauses: readonly number[] = Array.from({ length: 60 }, () => 500)

const heldEvents =
  'A transaction holds the events and does not end. Look into pg_stat_activity for one that waits for its client, end it, then start again.'

/**
 * Throws when the newest event of the outbox cannot be read. If a writer holds it all the time it is one sentence, else the outbox's error.
 */
export async function createEventDispatcher<Payload>(
  options: EventDispatcherOptions<Payload>,
): Promise<EventDispatcher<Payload>> {
  const { outbox, listen, load, log, startPausesMs = startPauses, pollMs = 1_000 } = options
  const channels = new Map<bigint | 'any', Set<Subscription<Payload>>>()
  let last = await retry(() => outbox.newest(), {
    pausesMs: startPausesMs,
    isRetryable: isLockTimeout,
    onRetry: () => log.warn('the start waits: a writer holds the events'),
  }).catch((cause: unknown) => {
    throw isLockTimeout(cause) ? new Error(heldEvents, { cause }) : cause
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
        if (isWoken) await sleep(spacingMs)
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
      if (channels.size === 0) return skip()
      const events = await outbox.after(last.seq, roundSize)
      // A restored backup or a promoted standby may lack the last event and count again, even past its number. The check follows the read.
      if (!(await outbox.check(last)).known) return startAnew()
      if (events.length === 0) return
      await deliver(events)
      if (isClosed || events.length < roundSize) return
    }
  }

  /** Goes on to the newest event, without a subscriber. One that came meanwhile gets the events before it. */
  async function skip(): Promise<void> {
    const newest = await outbox.newest(last)
    if (!(await outbox.check(last)).known) return startAnew()
    if (channels.size === 0) last = newest
    else isWoken = true
  }

  async function startAnew(): Promise<void> {
    last = await outbox.newest()
    for (const { subscriber } of [...channels.values()].flatMap((some) => [...some])) subscriber.fail(restored())
  }

  async function deliver(events: readonly OutboxEvent[]): Promise<void> {
    // A subscriber that comes later reads these events from the outbox, up to `last`.
    const before = last
    last = placeOf(events.at(-1)) ?? last
    const subscribed = events.filter((event) => subscribersOf(event).length > 0)
    if (subscribed.length === 0) return
    const payloads = await loadOrGiveUp(subscribed).catch((error: unknown) => {
      last = before
      throw error
    })
    const upToDate = new Set<Subscriber<Payload>>()
    for (const [index, event] of subscribed.entries()) {
      for (const subscriber of subscribersOf(event)) {
        if (subscriber.waiting() <= roundSize) upToDate.add(subscriber)
        if (payloads === null) subscriber.fail(notLoaded())
        else subscriber.push(event.seq, payloads[index] as Payload)
      }
    }
    await pauseFor([...upToDate])
  }

  /** Returns null after several failures in a row, although the outbox itself could be read. */
  async function loadOrGiveUp(events: readonly OutboxEvent[]): Promise<readonly Payload[] | null> {
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

  function subscribersOf(event: OutboxEvent): Subscriber<Payload>[] {
    return ['any' as const, event.tokenId].flatMap((channel) =>
      [...(channels.get(channel) ?? [])].flatMap(({ filter, subscriber }) =>
        matchesFilter(event, filter) ? [subscriber] : [],
      ),
    )
  }

  const listening = listen(wake)
  const poll = setInterval(wake, pollMs)
  return {
    newest: () => last,
    subscribe(filter, subscriber) {
      const channel = filter.tokenId ?? 'any'
      const subscriptions = channels.get(channel) ?? new Set()
      const subscription = { filter, subscriber }
      channels.set(channel, subscriptions.add(subscription))
      return () => {
        subscriptions.delete(subscription)
        if (subscriptions.size === 0 && channels.get(channel) === subscriptions) channels.delete(channel)
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

type Subscription<Payload> = { readonly filter: EventFilter; readonly subscriber: Subscriber<Payload> }

function placeOf(event: OutboxEvent | undefined): Place | null {
  return event === undefined ? null : parsePosition(event.position)
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

export function notLoaded(): GraphQLError {
  return graphqlError('INTERNAL', 'Some events could not be read, so this subscription has ended. Subscribe again.')
}

function restored(): GraphQLError {
  return graphqlError('EVENTS_GONE', 'The database was restored from before the last event. Subscribe again.')
}
