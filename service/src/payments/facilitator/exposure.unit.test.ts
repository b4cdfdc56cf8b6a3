import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Payment } from '../x402/payment.ts'
import { createExposure } from './exposure.ts'

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
      leave(false)
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
