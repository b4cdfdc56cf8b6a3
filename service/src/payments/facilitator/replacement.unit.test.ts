import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { parseTransaction, serializeTransaction, type Hex } from 'viem'
import { type Fees, gasLimit } from '../../chain/transactions/transaction.ts'
import { isTooDear, replacementOf, type Stuck } from './replacement.ts'

const gwei = 10n ** 9n
const sender: Hex = `0x${'a1'.repeat(20)}`
const token: Hex = `0x${'c4'.repeat(20)}`
const fees = (max: bigint, tip = 1n): Fees => ({ maxFeePerGas: max * gwei, maxPriorityFeePerGas: tip * gwei })
const payment = (own: Fees): Hex =>
  serializeTransaction({ type: 'eip1559', chainId: 84532, nonce: 7, to: token, data: '0x12', gas: 130_000n, ...own })

/** The fees, in gwei, of the transaction that replaces `raw`. */
function replaced(raw: Hex, now: Fees, { refusal, isExpired = false }: Partial<Stuck> = {}) {
  const found = replacementOf({ raw, sender, nonce: 7 }, now, { refusal, isExpired })
  return found && [Number(found.maxFeePerGas) / 1e9, Number(found.maxPriorityFeePerGas) / 1e9, found.to, found.gas]
}

describe('a stuck transaction', () => {
  it('stays while the chain is not dearer, and is raised by an eighth at least where it is', () => {
    assert.equal(replaced(payment(fees(10n)), fees(10n)), undefined)
    assert.deepEqual(replaced(payment(fees(10n)), fees(30n)), [30, 1.125000001, token, 130_000n])
    assert.deepEqual(replaced(payment(fees(16n, 8n)), fees(12n, 10n)), [18.000000001, 10, token, 130_000n])
    assert.equal(replaced(payment(fees(90n)), fees(91n)), undefined)
  })

  it('that the account cannot pay for is followed by one at the fees of the chain, where that is clearly cheaper', () => {
    const raw = payment(fees(90n))
    assert.deepEqual(replaced(raw, fees(4n), { refusal: 'unfunded' }), [4, 1, token, 130_000n])
    for (const now of [fees(85n), fees(95n)]) assert.equal(replaced(raw, now, { refusal: 'unfunded' }), undefined)
  })

  it('above the limit is followed by one below it', () => {
    const raw = payment(fees(1_300_000n, 130_000n))
    assert.deepEqual([isTooDear(raw), isTooDear(payment(fees(100n)))], [true, false])
    assert.equal(replaced(raw, fees(101n)), undefined)
    for (const isExpired of [true, false]) assert.deepEqual(replaced(raw, fees(4n), { isExpired })?.slice(0, 2), [4, 1])
  })

  it('gets a higher tip within its highest fee, where the node has an earlier one whose tip is too close', () => {
    let raw = payment(fees(4n))
    const tips: unknown[] = []
    for (;;) {
      const next = replacementOf({ raw, sender, nonce: 7 }, fees(4n), { refusal: 'underpriced', isExpired: false })
      if (next === undefined) break
      raw = serializeTransaction(next)
      tips.push(replaced(raw, fees(30n))?.[0])
      assert.equal(next.maxFeePerGas, 4n * gwei)
    }
    assert.equal(tips.length, 12)
  })

  it('that expired is replaced by a transfer of nothing once', () => {
    const before = payment(fees(10n))
    assert.deepEqual(replaced(before, fees(2n), { isExpired: true }), [11.250000001, 1.125000001, sender, 21_000n])
    const empty = replacementOf({ raw: before, sender, nonce: 7 }, fees(2n), { refusal: undefined, isExpired: true })
    assert.ok(empty)
    const slot = serializeTransaction(empty)
    assert.equal(replaced(slot, fees(2n), { isExpired: true }), undefined)
    assert.deepEqual(replaced(slot, fees(20n))?.slice(2), [sender, 21_000n])
  })

  it('with more gas than the chain takes is replaced by a transfer of nothing at once', () => {
    const withGas = (gas: bigint): Hex => serializeTransaction({ ...parseTransaction(payment(fees(10n))), gas })
    assert.deepEqual(replaced(withGas(gasLimit + 1n), fees(2n)), [11.250000001, 1.125000001, sender, 21_000n])
    assert.equal(replaced(withGas(gasLimit), fees(2n)), undefined)
  })

  it('has fees within the limit whatever happens, and changes a bounded number of times while the chain does not', () => {
    const gweis = fc.bigInt({ min: 1n, max: 2_000_000n }).map((n) => n * (gwei / 10n))
    const refusals = fc.constantFrom<Stuck['refusal'][]>(undefined, 'unfunded', 'underpriced')
    fc.assert(
      fc.property(gweis, gweis, fc.boolean(), fc.infiniteStream(refusals), (first, chain, isExpired, answers) => {
        let raw = payment({ maxFeePerGas: first, maxPriorityFeePerGas: first / 10n })
        const now = { maxFeePerGas: chain, maxPriorityFeePerGas: chain / 10n }
        let changes = 0
        for (let pass = 0; pass < 200; pass += 1) {
          const [refusal] = answers.take(1)
          const next = replacementOf({ raw, sender, nonce: 7 }, now, { refusal, isExpired })
          if (next === undefined) continue
          changes += 1
          raw = serializeTransaction(next)
          assert.ok(!isTooDear(raw))
        }
        return changes < 40
      }),
    )
  })
})
