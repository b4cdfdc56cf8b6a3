import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { metadataHashOf, type Hex } from '@touchstone/verdict'
import canonicalize from 'canonicalize'
import { dataOf, dataText, sampleHash } from '../../test/support/passport/fixtures.ts'
import { passportMetadata } from './metadata.ts'

type Vector = { name: string; json: unknown; canonical: string; keccak256: Hex }
const { vectors } = dataOf<{ vectors: Vector[] }>('vectors/jcs-keccak-vectors.json')
const sample = dataText('sample/sample-metadata.json')
const canonicalSample = canonicalize(JSON.parse(sample)) ?? ''

describe('the metadata hash', () => {
  for (const { name, json, canonical, keccak256 } of vectors) {
    it(`of «${name}» is keccak256 of its RFC 8785 form`, () => {
      assert.equal(canonicalize(json), canonical)
      assert.equal(metadataHashOf(canonical), keccak256)
    })
  }
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
