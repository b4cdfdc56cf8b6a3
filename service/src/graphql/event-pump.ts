/**
 * Carries events from the outbox to subscribers (spec §6), in the order of their commits. Every instance of the service has one; it
 * starts at the newest event, and after a fault of the database it goes on where it stopped.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { GraphQLError } from 'graphql'
import { reasonOf } from '../errors.ts'
import type { Log } from '../log.ts'
import type { OutboxEvent } from '../store/outbox.ts'
import { graphqlError } from './error-codes.ts'
import { queueLimit } from './subscriber-queue.ts'

type EventSubscriber<Payload> = {
  readonly push: (payload: Payload) => void
  readonly fail: (error: GraphQLError) => void
  readonly waiting: () => number
}

export type EventPump<Payload> = AsyncDisposable & {
  /** Hears every event of the topic (`tap`), or of one token's (`channelOf`), that is committed from now on. Returns how to stop. */
  readonly subscribe: (channel: string, subscriber: EventSubscriber<Payload>) => () => void
}

export type EventPumpOptions<Payload> = {
  readonly outbox: {
    readonly after: (seq: bigint, limit: number) => Promise<readonly OutboxEvent[]>
    readonly newest: () => Promise<bigint>
  }
  /** Calls back whenever there may be something new. */
  readonly listen: (onNotice: () => void) => AsyncDisposable
  /** What subscribers get for these events, in their order; null where there is nothing to tell. It is asked for heard events only. */
  readonly present: (events: readonly OutboxEvent[]) => Promise<readonly (Payload | null)[]>
  readonly log: Log
  /** Between two looks without a notice, in ms: notices can be lost. */
  readonly pollMs?: number
}

/** Half a queue: a subscriber that has emptied half of its own can take a whole round. */
const roundSize = queueLimit / 2
/** For how long a round waits, in ms, for a subscriber that had kept up, and for one that reads nothing in that time. */
const patienceMs = 1_000
const standstillMs = 100
const mostTries = 5

/** It throws what the outbox throws when its newest event cannot be read. */
export async function createEventPump<Payload>(options: EventPumpOptions<Payload>): Promise<EventPump<Payload>> {
  const { outbox, listen, present, log, pollMs = 1_000 } = options
  const channels = new Map<string, Set<EventSubscriber<Payload>>>()
  let last = await outbox.newest()
  let wanted = false
  let closed = false
  let working = false
  let worked: Promise<void> | undefined
  let failing = false
  let tries = 0

  function wake(): void {
    wanted = true
    if (!working) worked = work()
  }

  async function work(): Promise<void> {
    working = true
    try {
      while (wanted && !closed) {
        wanted = false
        await catchUp()
        if (failing) log.info('events are read again')
        failing = false
      }
    } catch (error) {
      if (!failing) log.warn('events not read', { reason: reasonOf(error) })
      failing = true // the next look tries again
    } finally {
      working = false
    }
  }

  async function catchUp(): Promise<void> {
    for (;;) {
      const events = await outbox.after(last, roundSize)
      if (events.length === 0) break
      await deliver(events)
      last = events.at(-1)?.seq ?? last
      if (closed) return
    }
    // A database restored from a backup counts from an earlier event; all that was trimmed counts from nothing.
    const newest = await outbox.newest()
    if (newest < last) last = newest
  }

  async function deliver(events: readonly OutboxEvent[]): Promise<void> {
    const heard = events.filter((event) => subscribersOf(event).length > 0)
    if (heard.length === 0) return
    const payloads = await presented(heard)
    const inTime = new Set<EventSubscriber<Payload>>()
    for (const [index, event] of heard.entries()) {
      for (const subscriber of subscribersOf(event)) {
        if (subscriber.waiting() <= roundSize) inTime.add(subscriber)
        const payload = payloads?.[index]
        if (payloads === null) subscriber.fail(notRead())
        else if (payload !== null && payload !== undefined) subscriber.push(payload)
      }
    }
    await breathe([...inTime])
  }

  /** Null when the outbox could be read all the time, but what belongs to these events could not. */
  async function presented(events: readonly OutboxEvent[]): Promise<readonly (Payload | null)[] | null> {
    try {
      const payloads = await present(events)
      tries = 0
      return payloads
    } catch (error) {
      tries += 1
      if (tries < mostTries) throw error
      log.error('events not told', { reason: reasonOf(error), from: events[0]?.seq, count: events.length })
      tries = 0
      return null
    }
  }

  function subscribersOf(event: OutboxEvent): EventSubscriber<Payload>[] {
    return [...(channels.get(event.topic) ?? []), ...(channels.get(channelOf(event.topic, event.tokenId)) ?? [])]
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
      closed = true
      clearInterval(poll)
      await listening[Symbol.asyncDispose]()
      await worked
    },
  }
}

/** The channel of one token's events of a topic. */
export function channelOf(topic: string, tokenId: bigint): string {
  return `${topic} ${tokenId}`
}

/** Waits for subscribers that had kept up until this round, so that a burst overruns nobody who reads; others are not waited for. */
async function breathe(subscribers: readonly { readonly waiting: () => number }[]): Promise<void> {
  const start = performance.now()
  let behind = subscribers.map(({ waiting }) => ({ waiting, left: waiting(), movedAt: start }))
  for (;;) {
    const now = performance.now()
    behind = behind.filter((one) => {
      const left = one.waiting()
      if (left < one.left) Object.assign(one, { left, movedAt: now })
      return left > roundSize && now - one.movedAt < standstillMs
    })
    if (behind.length === 0 || now - start > patienceMs) return
    await delay(2)
  }
}

function notRead(): GraphQLError {
  return graphqlError('INTERNAL', 'Some events could not be read, so this subscription has ended. Subscribe again.')
}
