import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { dataOf } from '../../../test/support/passport/fixtures.ts'
import { gtinCheckDigit, parseGtin } from './gtin.ts'

type Vector = { gtin: string; error?: string; note: string }
const vectors = dataOf<{ validGtins: Vector[]; invalidGtins: Vector[] }>('vectors/gs1-vectors.json')

describe('a GTIN', () => {
  for (const { gtin, note } of vectors.validGtins) {
    it(`${gtin} is one: ${note}`, () => assert.deepEqual(parseGtin(gtin), { ok: true, gtin }))
  }
  for (const { gtin, error, note } of vectors.invalidGtins) {
    it(`is not ${JSON.stringify(gtin)}: ${note}`, () => assert.deepEqual(parseGtin(gtin), { ok: false, error }))
  }

  it('with one wrong digit is rejected, whichever digit it is', () => {
    const digits = fc.stringMatching(/^[0-9]{13}$/)
    fc.assert(
      fc.property(digits, fc.nat(13), fc.integer({ min: 1, max: 9 }), (text, at, by) => {
        const gtin = text + gtinCheckDigit(text)
        const wrong = gtin.slice(0, at) + String((Number(gtin[at]) + by) % 10) + gtin.slice(at + 1)
        return parseGtin(gtin).ok && !parseGtin(wrong).ok
      }),
    )
  })
})
