import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { assetFlags, isSealOpened, isStateCode, lifecycleStates, reportFlags } from './lifecycle.ts'

describe('the numbers of the record (spec §2.5, §3)', () => {
  it('name the states in the order of their codes', () => {
    assert.deepEqual(lifecycleStates, ['NONE', 'MINTED', 'BOUND', 'ACTIVATED', 'CLAIMED', 'FLAGGED', 'RECYCLED'])
  })

  it('name one bit for each flag, and all but TAMPER report', () => {
    assert.deepEqual(assetFlags, {
      LOST: 1,
      STOLEN: 2,
      RECALL: 4,
      STOLEN_CONFIRMED: 8,
      INVESTIGATION: 16,
      TAMPER: 32,
    })
    const { TAMPER, ...reports } = assetFlags
    assert.equal(
      Object.values(reports).reduce<number>((all, bit) => all | bit, 0),
      reportFlags,
    )
    assert.equal(reportFlags & TAMPER, 0)
  })

  it('say by TAMPER alone that a seal was opened', () => {
    assert.deepEqual(
      [0, reportFlags, 0x20, 0x3f].map((flags) => isSealOpened({ flags })),
      [false, false, true, true],
    )
  })

  it('are codes of states from 0 to 6 only', () => {
    assert.ok([0, 1, 2, 3, 4, 5, 6].every(isStateCode))
    assert.deepEqual([-1, 7, 0.5, 6.5, Number.NaN, '3', 3n, null, undefined, [3]].filter(isStateCode), [])
  })
})
