/** One payment that comes more than once at the same time (spec §4.8): what each request is sold. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setImmediate } from 'node:timers/promises'
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

const heads = {
  headOnTime: async () => ({ number: 7n }),
  head: async () => ({ timestamp: seconds }),
  requireClock: async () => {},
}

/** Opens a checkout over this ledger; it takes every payment, but for what is changed. */
const open = (ledger: object, attest: object, changed: object = {}) =>
  createCheckout({
    ledger,
    chain: { heads },
    facilitator: { verify: async () => ({ ok: true }) },
    attest,
    settlement: {
      isRunning: () => false,
      settle: async ({ proof, key }: { proof: string; key: object }) => ({ kind: 'proof', body: proof, key }),
      findPaidLater: async () => undefined,
    },
    terms: { price: 10n, payTo, asset },
    count: () => {},
    log: createLog(() => {}),
    now: () => Number(seconds) * 1_000,
    ...changed,
  } as unknown as Parameters<typeof createCheckout>[0])

describe('a payment that comes for two assets at once', () => {
  /** Returns how to buy an asset. Each one is read when `answer` has resolved; it exists where that returns true. */
  function openShop(answer: (assetId: string) => Promise<boolean>) {
    const rows: NewPayment[] = []
    const ledger = {
      find: async () =>
        rows.map((row) => ({ ...row, payload: formatPayload(row.payment), state: 'done', answer: row.proof }))[0],
      insert: async (row: NewPayment) => rows.push(row),
    }
    const checkout = open(ledger, async ({ assetId }: { assetId: string }) =>
      (await answer(assetId)) ? `proof of ${assetId}` : null,
    )
    return async (tokenId: bigint) => {
      const outcome = await checkout.buy(requestFor(tokenId))
      return outcome.kind === 'proof' ? outcome.body : outcome.error
    }
  }

  it('proves the second one where the first does not exist', async () => {
    const read = Promise.withResolvers<void>()
    const buy = openShop(async (assetId) => (await read.promise, assetId !== '8'))
    const answers = [buy(8n), buy(9n)]
    read.resolve()
    assert.deepEqual(await Promise.all(answers), ['asset_not_found', 'proof of 9'])
  })

  it('proves the first one only, where it exists', async () => {
    const read = Promise.withResolvers<void>()
    const buy = openShop(async () => (await read.promise, true))
    const answers = [buy(8n), buy(9n), buy(8n)]
    read.resolve()
    assert.deepEqual(await Promise.all(answers), ['proof of 8', 'payment_already_used', 'proof of 8'])
  })
})

describe('a payment that may have been stored', () => {
  for (const isRunning of [false, true])
    it(isRunning ? 'stays with this process where that settles it' : 'is left to the next process', async () => {
      let isSent = false
      const released = Promise.withResolvers<void>()
      const looked = Promise.withResolvers<void>()
      const ledger = {
        find: async () => undefined,
        insert: async () => {
          isSent = true
          throw new Error('connection terminated')
        },
        release: async () => released.resolve(),
      }
      const settlement = {
        isRunning: () => {
          if (isSent) looked.resolve()
          return isSent && isRunning
        },
      }
      const checkout = open(ledger, async () => 'proof', { settlement })
      await assert.rejects(checkout.buy(requestFor(9n)), { error: 'settlement_pending' })
      const isKept = looked.promise.then(() => setImmediate(false))
      const isReleased = await Promise.race([released.promise.then(() => true), isKept])
      assert.equal(isReleased, !isRunning)
    })
})

describe('a rejected payment that was executed all the same', () => {
  for (const [what, boughtFor, expected] of [
    ['has its proof', 9n, 'late proof'],
    ['has none for another asset', 8n, 'insufficient_funds'],
  ] as const)
    it(what, async () => {
      const { requestHash } = requestFor(boughtFor).order
      const row = { ...payment, payer, payload: formatPayload(payment), requestHash, state: 'rejected' }
      const checkout = open({ find: async () => ({ ...row, reason: 'insufficient_funds' }) }, async () => 'new', {
        settlement: { findPaidLater: async () => ({ kind: 'proof', body: 'late proof' }) },
      })
      const outcome = await checkout.buy(requestFor(9n))
      assert.equal(outcome.kind === 'proof' ? outcome.body : outcome.error, expected)
    })
})

describe('a payment whose payer has an undelivered proof for the same request', () => {
  type Changed = Readonly<{
    payment?: object
    row?: object
    chain?: object
    accepts?: boolean
    verifies?: boolean
    identify?: boolean
  }>

  /** Buys beside that proof. Returns the answer, what was noted, and whether the response will end the mark. */
  async function buy({ payment: own, row, chain, accepts = true, verifies = true, identify = true }: Changed) {
    const noted: unknown[] = []
    let isMarked = true
    const earlier = toHex(5, { size: 32 })
    const stored = { ...payment, nonce: earlier }
    const { order, ...rest } = requestFor(9n)
    const { requestHash } = order
    const found = {
      payer,
      nonce: earlier,
      requestHash,
      state: 'done',
      answer: 'earlier',
      undelivered: true,
      isOther: true,
      ...row,
    }
    const ledger = {
      find: async (key: object) =>
        isMarked && 'requestHash' in key ? { payload: formatPayload(stored), ...found } : undefined,
      insert: async () => true,
      identify: async (_row: object, ...names: string[]) => (noted.push(...names), identify),
      setUndelivered: async (_row: object, is: boolean) => {
        isMarked = is
        noted.push(is)
      },
      adopt: async () => [],
    }
    const checkout = open(ledger, async (_order: object, body?: string) => body ?? 'new', {
      chain: { heads, isUsed: async () => false, acceptsSignature: async () => accepts, ...chain },
      facilitator: { verify: async () => (verifies ? { ok: true } : { ok: false, error: 'invalid_signature' }) },
    })
    const outcome = await checkout.buy({ ...rest, order, presented: { payment: { ...payment, ...own } } })
    return outcome.kind === 'proof' ? [outcome.body, outcome.delivers?.nonce === earlier, ...noted] : [outcome.error]
  }

  const name = `nonce:${payment.nonce.slice(2)}`
  const deposit = { config: {}, salt: '0x' }
  for (const [what, changed, expected] of [
    ['gets that, and is bound to it', {}, ['earlier', true, name]],
    [
      'gets that without an end of the mark where it was delivered',
      { row: { undelivered: false } },
      ['earlier', false, name],
    ],
    [
      'gets that where its wallet cannot be asked, and the facilitator takes it',
      { accepts: false },
      ['earlier', true, name],
    ],
    ['is refused where neither takes its signature', { accepts: false, verifies: false }, ['invalid_signature']],
    ['is refused where it is for another seller', { payment: { to: asset } }, ['recipient_mismatch']],
    [
      'is refused where it has expired by this clock',
      {
        payment: { validBefore: seconds },
        chain: { heads: { ...heads, head: async () => ({ timestamp: seconds - 60n }) } },
      },
      ['authorization_expired'],
    ],
    [
      'is sold anew where it has expired by the time of the chain',
      { chain: { heads: { ...heads, head: async () => ({ timestamp: seconds + 60n }) } } },
      ['new', false],
    ],
    ['is sold anew where its nonce is used', { chain: { isUsed: async () => true } }, ['new', false]],
    ['does not get the proof of another request', { row: { requestHash: 'ff' } }, ['payment_already_used']],
    ['gets the stored one as it is where its identifier finds it', { row: { isOther: false } }, ['earlier', true]],
  ] as const)
    it(what, async () => assert.deepEqual(await buy(changed), expected))

  it('into a channel is not bound to that', async () => {
    assert.deepEqual(await buy({ payment: { to: asset, deposit } }), ['earlier', true])
  })

  it('is sold anew where the proof has answered as many as it can, whose mark ends', async () => {
    assert.deepEqual(await buy({ identify: false }), ['new', false, name, false])
  })
})
