/** The rules of registered metadata (RFC 8785, passport rules of the specification). */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import canonicalize from 'canonicalize'
import fc from 'fast-check'
import { dataOf, dataText, sampleHash } from '../../test/support/passport/fixtures.ts'
import { canonicalMetadata } from './metadata.ts'

describe('registered metadata', () => {
  it('is stored in its canonical form under the hash of that form', () => {
    const sample: unknown = JSON.parse(dataText('sample/sample-metadata.json'))
    assert.deepEqual(canonicalMetadata(sample), { ok: true, body: canonicalize(sample), hash: sampleHash })
    assert.equal(canonicalMetadata({}).ok, true)
  })

  const rejected: readonly (readonly [string, string, RegExp])[] = [
    ['an array', '["name"]', /one JSON object/],
    ['null', 'null', /one JSON object/],
    ['a number, which JSON readers round', '{"size":9007199254740993}', /size must be text/],
    ['a nested object', '{"name":{"a":{"b":{"c":{"d":1}}}}}', /name must be text/],
    ['an unknown key', '{"name":"a","price":"b"}', /"price" is none of them/],
    ['@id', '{"@id":"https://evil.example"}', /"@id" is none/],
    ['__proto__', '{"__proto__":{"name":"a"}}', /"__proto__" is none/],
    ['a key in other letters', '{"Name":"a"}', /"Name" is none/],
    ['half a surrogate pair', '{"name":"\\ud800"}', /surrogate pair/],
    ['U+FFFD, which stands for a letter that was lost', '{"brand":"Gr\uFFFDe"}', /brand holds U\+FFFD/],
    ['more than 16 kB', `{"description":"${'a'.repeat(16_384)}"}`, /at most 16 kB/],
    ['more than 16 kB of UTF-8', `{"description":"${'€'.repeat(6_000)}"}`, /at most 16 kB/],
  ]
  for (const [what, text, message] of rejected) {
    it(`is rejected for ${what}`, () => {
      const result = canonicalMetadata(JSON.parse(text))
      assert.match(result.ok ? '' : result.message, message)
    })
  }

  it('may hold quotes and backslashes in its values', () => {
    assert.equal(canonicalMetadata({ name: 'a "b" \\ c', brand: '"', size: '\\"' }).ok, true)
  })
})

describe('manufactureDate', () => {
  it('is a day of the calendar', () => {
    for (const text of ['2026-03-01', '2024-02-29', '1999-12-31'])
      assert.ok(canonicalMetadata({ manufactureDate: text }).ok, text)
    for (const text of ['2026-02-30', '2025-02-29', '2026-13-01', '2026-3-1', '2026-03-01T00:00:00Z', '01.03.2026', ''])
      assert.ok(!canonicalMetadata({ manufactureDate: text }).ok, text)
  })
})

describe('customFields', () => {
  const rejected: readonly (readonly [string, unknown, RegExp])[] = [
    ['a list', [], /one JSON object/],
    ['text', 'text', /one JSON object/],
    ['null', null, /one JSON object/],
    ['five levels', { a: { b: { c: { d: {} } } } }, /nest 4 deep/],
    ['five levels by lists', { a: [[[[]]]] }, /nest 4 deep/],
    ['half a surrogate pair', { a: ['\ud800'] }, /surrogate/],
    ['U+FFFD', { a: ['Gr\uFFFDe'] }, /holds U\+FFFD/],
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
  for (const [what, value, message] of rejected) {
    it(`rejects ${what}`, () => {
      const canonical = canonicalMetadata({ name: 'a', customFields: value })
      assert.ok(!canonical.ok && canonical.key === 'customFields')
      assert.match(canonical.message, message)
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
    const texts = fc.string({ unit: 'grapheme' }).filter((text) => !text.includes('\uFFFD'))
    const values = fc.dictionary(
      fc.string({ minLength: 1, maxLength: 20, unit: 'grapheme' }).filter((key) => key !== '__proto__'),
      fc.oneof(texts, fc.boolean(), fc.constant(null), fc.maxSafeInteger()),
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

describe('the canonical form', () => {
  const { reject } = dataOf<{ reject: string[] }>('vectors/jcs-keccak-vectors.json')
  const rejections: Readonly<Record<string, () => unknown>> = {
    NaN: () => canonicalize({ a: NaN }),
    Infinity: () => canonicalize({ a: Infinity }),
    '-Infinity': () => canonicalize({ a: -Infinity }),
    undefined: () => assert.notEqual(canonicalize(undefined), undefined),
    BigInt: () => canonicalize({ a: 1n }),
    'unpaired surrogates': () => canonicalize({ a: '\ud800' }),
    'numbers outside +-(2^53-1) when integer': () => assert.ok(canonicalMetadata({ name: 2 ** 53 }).ok),
  }
  for (const what of reject.filter((one) => one !== 'duplicate keys'))
    it(`is rejected for ${what}`, () => assert.throws(rejections[what] ?? assert.fail))
})
