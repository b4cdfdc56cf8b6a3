import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Payment } from '../x402/payment.ts'
import { createExposure, type Exposed } from './exposure.ts'

const payer = `0x${'1'.repeat(40)}` as const
const payment = { from: payer, value: 10n } as Payment

describe('the exposure to one payer', () => {
  it('costs one read of its balance for each payment in flight, whatever number waits', async () => {
    let reads = 0
    const exposure = createExposure({
      balance: async () => {
        reads += 1
        return 10n
      },
    })
    const count = 40
    const settled = Array.from({ length: count }, async () => {
      const leave = await exposure.enter({ payment, codeHash: undefined })
      assert.ok(typeof leave === 'function')
      await new Promise(setImmediate)
      leave('other')
    })
    await Promise.all(settled)
    assert.ok(reads < count, `${reads} reads for ${count} payments`)
  })

  it('reads the balance again after a read that failed', async () => {
    let reads = 0
    const exposure = createExposure({
      balance: async () => {
        if ((reads += 1) === 1) throw new Error('no answer')
        return 20n
      },
    })
    const first = await exposure.enter({ payment, codeHash: undefined })
    await assert.rejects(exposure.enter({ payment, codeHash: undefined }), /no answer/)
    assert.equal(typeof (await exposure.enter({ payment, codeHash: undefined })), 'function')
    assert.equal(typeof first, 'function')
  })
})

describe('the exposure to one kind of wallet', () => {
  const kind = `0x${'c'.repeat(64)}` as const
  const other = `0x${'d'.repeat(64)}` as const
  const minutes = 60_000
  const opened = () => {
    const exposure = createExposure({ balance: async () => 10n })
    let wallets = 0
    const enter = (codeHash: Exposed['codeHash'], wallet = (wallets += 1), more: Partial<Payment> = {}) => {
      const from = `0x${String(wallet).padStart(40, '0')}` as const
      return exposure.enter({ payment: { ...payment, ...more, from }, codeHash })
    }
    const entered = async (...which: Parameters<typeof enter>) => {
      const leave = await enter(...which)
      return typeof leave === 'function' ? leave : assert.fail(`blocked for ${leave} ms`)
    }
    const fail = async () => (await entered(kind))('failed')
    return { enter, entered, fail }
  }

  it('is two transfers at the same time: a third one waits for the end of another', async () => {
    const { enter, entered } = opened()
    const [first] = await Promise.all([entered(kind), entered(kind)])
    let isWaiting = true
    const third = enter(kind).finally(() => (isWaiting = false))
    await Promise.all([entered(other), entered(undefined)])
    assert.ok(isWaiting)
    first('other')
    assert.equal(typeof (await third), 'function')
  })

  it('is two transfers that move nothing: its other wallets are blocked for ten minutes, and no others', async () => {
    const { enter, entered } = opened()
    for (const blocked of [false, false, true]) {
      const answer = await enter(kind)
      if (typeof answer === 'function') answer('failed')
      else assert.ok(Math.abs(answer - 10 * minutes) < minutes, `${answer} ms`)
      assert.equal(typeof answer === 'number', blocked)
    }
    await Promise.all([entered(other), entered(undefined)])
  })

  it('is one transfer more for each sale to the kind, and no block at all for a wallet that has bought', async () => {
    const { enter, entered, fail } = opened()
    const customer = 1_000
    ;(await entered(kind, customer))('paid')
    for (let failure = 0; failure < 3; failure += 1) await fail()
    assert.equal(typeof (await enter(kind)), 'number')
    ;(await entered(kind, customer))('paid')
    await entered(kind)
  })

  it('is not widened by a deposit, which its payer can have back', async () => {
    const { enter, entered, fail } = opened()
    ;(await entered(kind, 1_000, { deposit: {} as Payment['deposit'] }))('paid')
    for (let failure = 0; failure < 2; failure += 1) await fail()
    for (const wallet of [1_000, 1_001]) assert.equal(typeof (await enter(kind, wallet)), 'number')
  })
})
