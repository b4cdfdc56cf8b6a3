import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createSearchBudget } from './search-budget.ts'

/** Spends until nothing is left; returns the units. */
function spendAll(budget: ReturnType<typeof createSearchBudget>): number {
  let units = 0
  while (budget.spend(1)) units += 1
  return units
}

describe('the budget of searches', () => {
  it('has its burst at once, and is refilled by time up to the burst', () => {
    let at = 5_000
    const budget = createSearchBudget({ perSecond: 10, burst: 30, now: () => at })
    assert.equal(spendAll(budget), 30)
    at += 1_500
    assert.equal(spendAll(budget), 15)
    at += 60_000
    assert.equal(spendAll(budget), 30)
  })

  it('lets one search of any length run while a unit is left, which the next ones pay', () => {
    let at = 0
    const budget = createSearchBudget({ perSecond: 10, burst: 30, now: () => at })
    assert.equal(budget.spend(29), true)
    assert.equal(budget.spend(100), true)
    assert.equal(budget.spend(0), false)
    at += 9_900
    assert.equal(budget.spend(1), false, '99 units are paid, and nothing is left')
    at += 100
    assert.equal(budget.spend(1), true)
  })

  it('takes units back, up to the burst', () => {
    const budget = createSearchBudget({ perSecond: 10, burst: 30, now: () => 0 })
    budget.spend(20)
    budget.refund(5)
    assert.equal(spendAll(budget), 15)
    budget.refund(1_000)
    assert.equal(spendAll(budget), 30)
  })

  it('is by default half a second of trial decryptions, refilled in 10 s', () => {
    let at = 0
    const budget = createSearchBudget({ now: () => at })
    assert.equal(budget.spend(499_999), true)
    assert.equal(budget.spend(1), true)
    assert.equal(budget.spend(1), false)
    at += 5_000
    assert.equal(budget.spend(249_999), true)
    assert.equal(budget.spend(1), true)
    assert.equal(budget.spend(1), false)
  })
})
