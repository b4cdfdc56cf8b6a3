import assert from 'node:assert/strict'
import { it } from 'node:test'
import { GraphQLError } from 'graphql'
import type { OutboxEvent } from '../../index/outbox.ts'
import { createLog } from '../../lib/log.ts'
import { queueLimit } from './dispatcher.ts'
import { createEventStream } from './stream.ts'

it('a subscription whose queue overflows while earlier events are read gets every event once', async () => {
  const eventsBetween = (after: bigint, upTo: bigint) =>
    Array.from({ length: Number(upTo - after) }, (_, n) => ({ seq: after + 1n + BigInt(n) }) as OutboxEvent)
  const last = BigInt(queueLimit + 10)
  let newest = 1n
  let push: (seq: bigint, event: OutboxEvent) => void = () => {}
  const stream = createEventStream<OutboxEvent>(
    {
      dispatcher: {
        newest: () => ({ seq: newest, micros: 0n }),
        subscribe: (_filter, subscriber) => ((push = subscriber.push), () => {}),
      },
      outbox: {
        // The first event is none that is wanted. While it is looked at, the others come.
        range: async ({ after, upTo }) => {
          if (upTo > 1n) return { events: eventsBetween(after, upTo), reached: null }
          newest = last
          for (const event of eventsBetween(1n, last)) push(event.seq, event)
          return { events: [], reached: null }
        },
      },
      load: async (events) => events,
      goneError: async () => new GraphQLError('gone'),
      log: createLog(() => {}, 'silent'),
    },
    { filter: {}, after: 0n },
  )
  for (const { seq } of eventsBetween(1n, last)) assert.equal((await stream.next()).value?.seq, seq)
  await stream.return?.()
})
