/** The fields of metadata that are not flat text (spec §2.9), as registrations may bring them. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { canonicalMetadata } from './metadata.ts'
import { customFieldsRefusal, isDay } from './metadata-fields.ts'

describe('manufactureDate', () => {
  it('is a day of the calendar', () => {
    for (const text of ['2026-03-01', '2024-02-29', '1999-12-31']) assert.ok(isDay(text), text)
    for (const text of ['2026-02-30', '2025-02-29', '2026-13-01', '2026-3-1', '2026-03-01T00:00:00Z', '01.03.2026', ''])
      assert.ok(!isDay(text), text)
  })
})

describe('customFields', () => {
  const refused: readonly (readonly [string, unknown, RegExp])[] = [
    ['a list', [], /one JSON object/],
    ['text', 'text', /one JSON object/],
    ['null', null, /one JSON object/],
    ['five levels', { a: { b: { c: { d: {} } } } }, /nest 4 deep/],
    ['five levels by lists', { a: [[[[]]]] }, /nest 4 deep/],
    ['half a surrogate pair', { a: ['\ud800'] }, /surrogate/],
    ['half a surrogate pair in a name', { '\ud800': 1 }, /Names in customFields/],
    ['an empty name', { '': 1 }, /Names in customFields/],
    ['a long name', { ['x'.repeat(101)]: 1 }, /Names in customFields/],
    ['__proto__', JSON.parse('{"a":{"__proto__":{"b":1}}}'), /Names in customFields/],
    ['a number beyond 2^53-1', { a: 2 ** 53 }, /Numbers in customFields/],
    ['Infinity', { a: Infinity }, /Numbers in customFields/],
    ['NaN', { a: NaN }, /Numbers in customFields/],
    ['a bigint', { a: 1n }, /not JSON/],
    ['a date', { a: new Date(0) }, /not JSON/],
    ['undefined', { a: undefined }, /not JSON/],
  ]
  for (const [what, value, message] of refused) {
    it(`refuses ${what}`, () => {
      assert.match(customFieldsRefusal(value) ?? '', message)
      const canonical = canonicalMetadata({ name: 'a', customFields: value })
      assert.ok(!canonical.ok && canonical.key === 'customFields')
    })
  }

  it('takes four levels, and is covered by the hash', () => {
    const customFields = { a: { b: [{ c: -1.5 }] }, d: null, e: true }
    const [one, other] = [canonicalMetadata({ name: 'a', customFields }), canonicalMetadata({ name: 'a' })]
    assert.ok(one.ok && other.ok)
    assert.equal(one.body, '{"customFields":{"a":{"b":[{"c":-1.5}]},"d":null,"e":true},"name":"a"}')
    assert.notEqual(one.hash, other.hash)
  })

  it('comes back from the canonical text as it was', () => {
    const values = fc.dictionary(
      fc.string({ minLength: 1, maxLength: 20, unit: 'grapheme' }).filter((key) => key !== '__proto__'),
      fc.oneof(fc.string({ unit: 'grapheme' }), fc.boolean(), fc.constant(null), fc.maxSafeInteger()),
    )
    fc.assert(
      fc.property(values, (customFields) => {
        const canonical = canonicalMetadata({ customFields })
        assert.ok(canonical.ok, canonical.ok ? '' : canonical.message)
        assert.deepEqual((JSON.parse(canonical.body) as { customFields: unknown }).customFields, { ...customFields })
      }),
    )
  })
})
