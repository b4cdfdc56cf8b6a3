/** One payment that comes more than once at the same time (spec §4.8): what each request is sold. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { toHex } from 'viem'
import { createLog } from '../lib/log.ts'
import { createCheckout, type CheckoutRequest } from './checkout.ts'
import type { NewPayment } from './ledger/intake.ts'
import { formatPayload } from './ledger/table.ts'

const [payer, payTo, asset] = [toHex(1, { size: 20 }), toHex(2, { size: 20 }), toHex(3, { size: 20 })]
const seconds = 1_795_227_313n
const payment = {
  from: payer,
  to: payTo,
  value: 10n,
  validAfter: 0n,
  validBefore: seconds + 60n,
  nonce: toHex(4, { size: 32 }),
  signature: '0x12',
} as const

/** Returns a request for this asset. */
function requestFor(tokenId: bigint): CheckoutRequest {
  return {
    presented: { payment },
    order: { tokenId, assetId: String(tokenId), eas: false, requestHash: toHex(tokenId, { size: 32 }).slice(2) },
    until: performance.now() + 28_000,
    closed: new AbortController().signal,
  }
}

/** Opens a checkout that takes every payment. Each asset is read when `answer` has resolved; it exists where that returns true. */
function open(answer: (assetId: string) => Promise<boolean>) {
  const rows: NewPayment[] = []
  const checkout = createCheckout({
    ledger: {
      find: async () =>
        rows.map((row) => ({ ...row, payload: formatPayload(row.payment), state: 'done', answer: row.proof }))[0],
      insert: async (row: NewPayment) => rows.push(row),
    },
    chain: { heads: { headOnTime: async () => ({ number: 7n }) } },
    facilitator: { verify: async () => ({ ok: true }) },
    attest: async ({ assetId }: { assetId: string }) => ((await answer(assetId)) ? `proof of ${assetId}` : null),
    settlement: {
      isRunning: () => false,
      settle: async ({ proof, key }: { proof: string; key: object }) => ({ kind: 'proof', body: proof, key }),
    },
    terms: { price: 10n, payTo, asset },
    count: () => {},
    log: createLog(() => {}),
    now: () => Number(seconds) * 1_000,
  } as unknown as Parameters<typeof createCheckout>[0])
  return async (tokenId: bigint) => {
    const outcome = await checkout.buy(requestFor(tokenId))
    return outcome.kind === 'proof' ? outcome.body : outcome.error
  }
}

describe('a payment that comes for two assets at once', () => {
  it('proves the second one where the first does not exist', async () => {
    const read = Promise.withResolvers<void>()
    const buy = open(async (assetId) => (await read.promise, assetId !== '8'))
    const answers = [buy(8n), buy(9n)]
    read.resolve()
    assert.deepEqual(await Promise.all(answers), ['asset_not_found', 'proof of 9'])
  })

  it('proves the first one only, where it exists', async () => {
    const read = Promise.withResolvers<void>()
    const buy = open(async () => (await read.promise, true))
    const answers = [buy(8n), buy(9n), buy(8n)]
    read.resolve()
    assert.deepEqual(await Promise.all(answers), ['proof of 8', 'payment_already_used', 'proof of 8'])
  })
})
