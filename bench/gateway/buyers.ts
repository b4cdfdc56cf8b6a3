/** Buyers of `bench:gateway`. They sign before the run, each payment is sent once, and what they got is compared with the chain. */
import { Pool } from 'undici'
import { hashTypedData, keccak256, toHex, type Hex } from 'viem'
import { signDigest } from '../../service/src/lib/secp256k1.ts'
import { usdcAddress } from '../../service/src/chain/devchain/test-money.ts'
import { chainId } from '../../service/src/domain/chain.ts'
import { transferTypes } from '../../service/src/payments/x402/payment.ts'
import { price, seller, type Payer } from './world.ts'

export type Purchase = { readonly body: string; readonly header: string; readonly nonce: Hex; readonly assetId: string }
/** `ms` from the request to the proof; `attempts` more than one after a 503. */
export type Bought = {
  readonly nonce: Hex
  readonly transaction: Hex
  readonly ms: number
  readonly at: number
  readonly attempts: number
}

const domain = { name: 'USDC', version: '2', chainId, verifyingContract: usdcAddress } as const
const accepted = {
  scheme: 'exact',
  network: `eip155:${chainId}`,
  amount: price.toString(),
  asset: usdcAddress,
  payTo: seller,
  maxTimeoutSeconds: 30,
  extra: { name: 'USDC', version: '2' },
}
let signed = 0

/** Signs one payment that is valid for half an hour. */
export function purchase({ address, key }: Payer, assetId: string): Purchase {
  const now = Math.floor(Date.now() / 1000)
  const nonce = keccak256(toHex(`${address}${now}${(signed += 1)}`))
  const message = {
    from: address,
    to: seller,
    value: price,
    validAfter: BigInt(now - 600),
    validBefore: BigInt(now + 1_800),
    nonce,
  }
  const digest = hashTypedData({ domain, types: transferTypes, primaryType: 'TransferWithAuthorization', message })
  const authorization = {
    ...message,
    value: String(message.value),
    validAfter: String(message.validAfter),
    validBefore: String(message.validBefore),
  }
  const payment = { x402Version: 2, accepted, payload: { signature: signDigest(digest, key), authorization } }
  return {
    nonce,
    assetId,
    header: Buffer.from(JSON.stringify(payment)).toString('base64'),
    body: JSON.stringify({ assetId, chain: 'base-sepolia' }),
  }
}

/**
 * Sends the purchases over `clients` connections until `seconds` are over, and collects every answer. Throws for anything but a proof. `resend`: after
 * a broken connection or a 503 the same header is sent again, as a buyer would.
 */
export async function buyAll(
  urls: () => readonly string[],
  purchases: readonly Purchase[],
  {
    clients,
    seconds,
    resend = false,
  }: { readonly clients: number; readonly seconds: () => number; readonly resend?: boolean },
): Promise<Bought[]> {
  const pools = new Map<string, Pool>()
  const poolOf = (url: string) => {
    const pool = pools.get(url) ?? new Pool(url, { connections: clients, headersTimeout: 60_000 })
    pools.set(url, pool)
    return pool
  }
  const bought: Bought[] = []
  const began = performance.now()
  let next = 0

  async function client(): Promise<void> {
    while (performance.now() - began < seconds() * 1_000) {
      const one = purchases[next++]
      if (one === undefined) return
      const started = performance.now()
      const { transaction, attempts } = await buyOne(one)
      bought.push({
        nonce: one.nonce,
        transaction,
        ms: performance.now() - started,
        at: performance.now() - began,
        attempts,
      })
    }
  }

  async function buyOne(one: Purchase): Promise<{ transaction: Hex; attempts: number }> {
    for (let attempt = 0; ; attempt += 1) {
      const addresses = urls()
      const url = addresses[attempt % addresses.length] ?? ''
      try {
        const { statusCode, body } = await poolOf(url).request({
          path: '/verify',
          method: 'POST',
          headers: { 'content-type': 'application/json', 'payment-signature': one.header },
          body: one.body,
        })
        const text = await body.text()
        if (statusCode === 200) return { transaction: transactionOf(text, one), attempts: attempt + 1 }
        if (!resend || statusCode < 500)
          throw new Refused(`A payment was answered with ${statusCode}: ${text.slice(0, 200)}`)
      } catch (error) {
        if (!resend || error instanceof Refused) throw error
      }
      await new Promise((resolve) => setTimeout(resolve, 300))
    }
  }

  try {
    await Promise.all(Array.from({ length: clients }, client))
  } finally {
    await Promise.all([...pools.values()].map((pool) => pool.destroy()))
  }
  return bought
}

class Refused extends Error {}

/** Returns the transaction that paid, after a look at whether the proof is of this sale. */
function transactionOf(text: string, { assetId }: Purchase): Hex {
  const proof = JSON.parse(text) as {
    assetId: string
    attestation: { signature: string }
    payment: { success: boolean; transaction: Hex }
  }
  if (proof.assetId !== assetId || !proof.payment.success || !/^0x[0-9a-f]{130}$/.test(proof.attestation.signature))
    throw new Refused(`The proof is of another sale: ${text.slice(0, 300)}`)
  return proof.payment.transaction
}
