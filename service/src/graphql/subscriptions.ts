/** The subscriptions of spec §6: a queue for each, filled by the event pump. */
import { parseTokenId } from '@touchstone/verdict'
import { demandScope, type GraphqlContext } from './context.ts'
import { graphqlError } from './error-codes.ts'
import { channelOf, type EventPump } from './event-pump.ts'
import type { ResolverMap } from './resolvers.ts'
import { createSubscriberQueue } from './subscriber-queue.ts'
import type { SubscriptionEvent } from './subscription-events.ts'

export function subscriptionResolvers({
  pump,
}: {
  readonly pump: Pick<EventPump<SubscriptionEvent>, 'subscribe'>
}): ResolverMap {
  function hear(channel: string): AsyncIterableIterator<SubscriptionEvent, undefined> {
    const queue = createSubscriberQueue<SubscriptionEvent>(() => stop())
    const stop = pump.subscribe(channel, queue)
    return queue.events
  }

  return {
    Subscription: {
      productTransferred: {
        subscribe(_root: unknown, { productId }: { productId: string }, context: GraphqlContext) {
          demandScope(context, 'read')
          const tokenId = parseTokenId(productId)
          if (tokenId === null) throw graphqlError('BAD_USER_INPUT', 'A product id is the decimal token id, such as 7.')
          return hear(channelOf('transfer', tokenId))
        },
        resolve: (event: SubscriptionEvent) => event,
      },
      productVerified: {
        subscribe(_root: unknown, _args: unknown, context: GraphqlContext) {
          demandScope(context, 'read')
          return hear('tap')
        },
        resolve: (event: SubscriptionEvent) => event,
      },
    },
  }
}
