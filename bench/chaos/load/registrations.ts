/** Products registered by GraphQL: the same mutation with the same idempotency key, on whichever instance answers, until it succeeded. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Clients, Wanted } from './clients.ts'
import { graphqlData, graphqlRequest } from './reads.ts'

export type Registration = { readonly tagId: string; readonly wanted: Wanted; productId: string | null }
type Registered = {
  registerProduct: {
    success: boolean
    errors: readonly { field: string; message: string }[]
    product: { id: string } | null
  }
}

const againMs = 500
const giveUpMs = 60_000
const mutation =
  'mutation ($input: RegisterProductInput!) { registerProduct(input: $input) { success errors { field message } product { id } } }'

export function registrationOf(key: string, tagId: string): Registration {
  const input = { tagId, name: `Product ${tagId}`, idempotencyKey: `chaos-${tagId}` }
  const wanted: Wanted = {
    kind: 'register',
    ...graphqlRequest(key, mutation, { input }),
    judge: (reply) => (productOf(reply) === null ? 'refused' : 'ok'),
  }
  return { tagId, wanted, productId: null }
}

const productOf = (reply: Parameters<Wanted['judge']>[0]): string | null =>
  graphqlData<Registered>(reply)?.registerProduct.product?.id ?? null

/** Sends it until it succeeded or `withinMs` is over. */
export async function register(clients: Clients, registration: Registration, withinMs = giveUpMs): Promise<void> {
  for (const until = performance.now() + withinMs; ; await delay(againMs)) {
    const { ok, reply } = await clients.ask(registration.wanted)
    if (ok && reply !== null) registration.productId = productOf(reply)
    if (ok || performance.now() > until) return
  }
}
