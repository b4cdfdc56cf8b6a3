import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { metadataHashOf, type Hex } from '@touchstone/verdict'
import canonicalize from 'canonicalize'
import { dataOf, dataText, sampleHash } from './_fixtures.ts'
import { passportMetadata, readMetadata } from './metadata.ts'

type Vector = { name: string; json: unknown; canonical: string; keccak256: Hex }
const { vectors, reject } = dataOf<{ vectors: Vector[]; reject: string[] }>('vectors/jcs-keccak-vectors.json')
const sample = dataText('sample/sample-metadata.json')
const canonicalSample = canonicalize(JSON.parse(sample)) ?? ''

describe('the metadata hash', () => {
  for (const { name, json, canonical, keccak256 } of vectors) {
    it(`of «${name}» is keccak256 of its RFC 8785 form`, () => {
      assert.equal(canonicalize(json), canonical)
      assert.equal(metadataHashOf(canonical), keccak256)
    })
  }

  const refusals: Readonly<Record<string, () => unknown>> = {
    NaN: () => canonicalize({ a: NaN }),
    Infinity: () => canonicalize({ a: Infinity }),
    '-Infinity': () => canonicalize({ a: -Infinity }),
    undefined: () => assert.notEqual(canonicalize(undefined), undefined),
    BigInt: () => canonicalize({ a: 1n }),
    'unpaired surrogates': () => canonicalize({ a: '\ud800' }),
    'duplicate keys': () => assert.ok(readMetadata('{"name":"a","name":"b"}').ok),
    'numbers outside +-(2^53-1) when integer': () => assert.ok(readMetadata('{"name":9007199254740993}').ok),
  }
  for (const what of reject) {
    it(`is refused for ${what}`, () => assert.throws(refusals[what] ?? assert.fail))
  }
})

describe('registered metadata', () => {
  it('is stored in its canonical form under the hash of that form', () => {
    assert.deepEqual(readMetadata(sample), { ok: true, canonical: canonicalSample, hash: sampleHash })
    assert.equal(readMetadata('{}').ok, true)
  })

  const refused: readonly (readonly [string, string, string])[] = [
    ['no JSON', '{"name":', 'not-an-object'],
    ['an array', '["name"]', 'not-an-object'],
    ['null', 'null', 'not-an-object'],
    ['a number, which JSON readers round', '{"size":9007199254740993}', 'not-text'],
    ['a nested object', '{"name":{"a":{"b":{"c":{"d":1}}}}}', 'not-text'],
    ['an unknown key', '{"name":"a","price":"b"}', 'unknown-key'],
    ['@id', '{"@id":"https://evil.example"}', 'unknown-key'],
    ['__proto__', '{"__proto__":{"name":"a"}}', 'unknown-key'],
    ['a key in other letters', '{"Name":"a"}', 'unknown-key'],
    ['a key twice', '{"name":"a","brand":"b","name":"c"}', 'duplicate-key'],
    ['a key twice, spelt differently', '{"name":"a","n\\u0061me":"b"}', 'duplicate-key'],
    ['a key twice, once not text', '{"name":1,"name":"a"}', 'duplicate-key'],
    ['a key twice, once an object', '{"name":{"a":"b"},"name":"a"}', 'duplicate-key'],
    ['half a surrogate pair', '{"name":"\\ud800"}', 'lone-surrogate'],
    ['more than 16 kB', `{"description":"${'a'.repeat(16_384)}"}`, 'too-large'],
    ['more than 16 kB of UTF-8', `{"description":"${'€'.repeat(6_000)}"}`, 'too-large'],
  ]
  for (const [what, text, error] of refused) {
    it(`is refused for ${what}`, () => assert.deepEqual(readMetadata(text), { ok: false, error }))
  }

  it('may hold quotes and backslashes in its values', () => {
    const text = JSON.stringify({ name: 'a "b" \\ c', brand: '"', size: '\\"' })
    assert.equal(readMetadata(text).ok, true)
  })
})

describe('the metadata of a passport', () => {
  it('matches when the stored text has the hash of the chain, in either case', () => {
    for (const hash of [sampleHash, sampleHash.toUpperCase().replace('0X', '0x') as Hex]) {
      const metadata = passportMetadata(hash, canonicalSample)
      assert.equal(metadata.status, 'match')
      assert.equal(metadata.status === 'match' && metadata.value.name, 'Harbour Field Jacket')
    }
  })

  it('does not match after one changed byte, and then brings no text', () => {
    for (let at = 0; at < canonicalSample.length; at += 7) {
      const changed =
        canonicalSample.slice(0, at) +
        String.fromCharCode(canonicalSample.charCodeAt(at) ^ 1) +
        canonicalSample.slice(at + 1)
      assert.deepEqual(passportMetadata(sampleHash, changed), { status: 'mismatch', onChainHash: sampleHash })
    }
  })

  it('is hashed as it is stored: the same JSON with other spacing is another text', () => {
    assert.equal(passportMetadata(sampleHash, sample).status, 'mismatch')
  })

  it('of a text that is no Unicode is a mismatch', () => {
    // UTF-8 writes half a surrogate pair as U+FFFD, so both texts would have one hash.
    const hash = metadataHashOf('{"name":"\ufffd"}')
    assert.equal(passportMetadata(hash, '{"name":"\ufffd"}').status, 'match')
    assert.equal(passportMetadata(hash, '{"name":"\ud800"}').status, 'mismatch')
  })

  it('is none without a hash on chain or without a text', () => {
    const zero: Hex = `0x${'0'.repeat(64)}`
    assert.deepEqual(passportMetadata(null, canonicalSample), { status: 'none', onChainHash: null })
    assert.deepEqual(passportMetadata(zero, canonicalSample), { status: 'none', onChainHash: zero })
    assert.deepEqual(passportMetadata(sampleHash, undefined), { status: 'none', onChainHash: sampleHash })
  })

  it('that is hashed but is no product brings no field', () => {
    for (const text of ['[]', '"name"', '{"name":7}', 'null']) {
      const metadata = passportMetadata(metadataHashOf(text), text)
      assert.equal(metadata.status, 'match')
      if (metadata.status === 'match') assert.deepEqual(Object.keys(metadata.value), ['_warning'])
    }
  })
})
