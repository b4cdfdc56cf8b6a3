/** Paid attestations now and then: a header is sent again, unchanged, until the proof is there. Never a new payment for the same sale. */
import { setTimeout as delay } from 'node:timers/promises'
import type { PrivateKeyAccount } from 'viem/accounts'
import { headerV2, sign } from '../../../service/test/support/payments/buyer.ts'
import type { Clients, Wanted } from './clients.ts'

/** `proof` is the body that was delivered; null while there is none. */
export type Purchase = { readonly wanted: Wanted; proof: string | null }

const againMs = 500
const giveUpMs = 60_000
/** Longer than any fault, and than a clock that is ten minutes ahead. */
const validSeconds = 3_600n

export async function purchaseOf(payer: PrivateKeyAccount, tokenId: bigint): Promise<Purchase> {
  const now = BigInt(Math.floor(Date.now() / 1_000))
  const payment = await sign(payer, { validAfter: now - validSeconds, validBefore: now + validSeconds })
  const wanted: Wanted = {
    kind: 'pay',
    operation: 'buyAttestation',
    host: 'gateway',
    path: '/verify',
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headerV2(payment) },
    body: JSON.stringify({ assetId: String(tokenId), chain: 'base-sepolia' }),
    judge({ text }) {
      const proof = JSON.parse(text) as { assetId: string; payment: { success: boolean } }
      if (proof.assetId !== String(tokenId) || !proof.payment.success)
        throw new Error(`a proof of another sale: ${text.slice(0, 300)}`)
      return 'ok'
    },
  }
  return { wanted, proof: null }
}

/** Sends the same header until the proof is there or `withinMs` is over. */
export async function collect(clients: Clients, purchase: Purchase, withinMs = giveUpMs): Promise<void> {
  for (const until = performance.now() + withinMs; ; await delay(againMs)) {
    const { ok, reply } = await clients.ask(purchase.wanted)
    if (ok && reply !== null) purchase.proof = reply.text
    if (ok || performance.now() > until) return
  }
}
