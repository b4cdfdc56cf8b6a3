import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { hexToBytes } from '@noble/hashes/utils.js'
import { isOriginal } from './originality.ts'

describe('the originality signature', () => {
  // AN12196 §7.2
  const uid = hexToBytes('04518DFAA96180')
  const signature = hexToBytes(
    'D1940D17CFEDA4BFF80359AB975F9F6514313E8F90C1D3CAAF5941AD744A1CDF9A83F883CAFE0FE95D1939B1B7E47113993324473B785D21',
  )

  it('of the example of AN12196 is NXP’s', () => {
    assert.equal(isOriginal(uid, signature), true)
  })

  it('is of one chip, and whole', () => {
    assert.equal(isOriginal(hexToBytes('04518DFAA96181'), signature), false)
    assert.equal(isOriginal(uid, signature.with(0, 0)), false)
    assert.equal(isOriginal(uid, signature.subarray(1)), false)
    assert.equal(isOriginal(uid, new Uint8Array(56)), false)
  })
})
