import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { untrustedOf } from '../rules/untrusted.ts'
import { metadataChecks, metadataHashOf } from './metadata.ts'

const { vectors } = JSON.parse(
  readFileSync(new URL('../../test-data/jcs-keccak-vectors.json', import.meta.url), 'utf8'),
) as {
  vectors: { name: string; canonical: string; keccak256: string }[]
}

describe('metadataHashOf', () => {
  for (const { name, canonical, keccak256 } of vectors)
    it(name, () => assert.equal(metadataHashOf(canonical), keccak256))
})

describe('metadataChecks', () => {
  const outcomeOf = (text: string, shown: object) => {
    const claim = { verdict: { untrusted: untrustedOf(shown) } } as unknown as Parameters<typeof metadataChecks>[0]
    return metadataChecks(claim, text, metadataHashOf(text)).map(({ ok }) => ok)
  }

  it('agree with the document of the hash and its texts', () => {
    assert.deepEqual(outcomeOf('{"brand":"B","name":"A"}', { name: 'A', brand: 'B' }), [true, true])
  })

  it('reject a document that names a member twice: two readers see two products', () => {
    for (const name of ['A', 'C']) {
      assert.deepEqual(outcomeOf('{"name":"A","name":"C"}', { name }), [true, false], name)
      assert.deepEqual(outcomeOf('{"name":"A","n\\u0061me":"C"}', { name }), [true, false], name)
    }
  })
})
