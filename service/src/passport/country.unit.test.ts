import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { countryOf } from './country.ts'

describe('the country of production', () => {
  it('is known for each of the 249 codes of ISO 3166-1', () => {
    const letters = Array.from('ABCDEFGHIJKLMNOPQRSTUVWXYZ')
    const codes = letters
      .flatMap((first) => letters.map((second) => first + second))
      .filter((code) => countryOf(code) !== null)
    assert.equal(codes.length, 249)
    for (const code of codes) {
      const country = countryOf(code)
      assert.equal(country?.countryCode, code)
      assert.deepEqual(countryOf(country.countryName), country)
    }
  })

  it('is found by code, by English name and by a second English name', () => {
    assert.deepEqual(
      ['PT', 'Portugal', 'Turkey', 'Viet Nam'].map((origin) => countryOf(origin)?.countryCode),
      ['PT', 'PT', 'TR', 'VN'],
    )
  })

  it('is never guessed', () => {
    for (const origin of [
      'pt',
      ' PT',
      'Made in Portugal',
      'portugal',
      'Porto, Portugal',
      'EU',
      'UK',
      'ZZ',
      'XX',
      '',
      '__proto__',
      'constructor',
    ])
      assert.equal(countryOf(origin), null, origin)
  })
})
