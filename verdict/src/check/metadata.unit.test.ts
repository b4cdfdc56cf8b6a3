import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { metadataHashOf } from './metadata.ts'

const { vectors } = JSON.parse(
  readFileSync(new URL('../../test-data/jcs-keccak-vectors.json', import.meta.url), 'utf8'),
) as {
  vectors: { name: string; canonical: string; keccak256: string }[]
}

describe('metadataHashOf', () => {
  for (const { name, canonical, keccak256 } of vectors)
    it(name, () => assert.equal(metadataHashOf(canonical), keccak256))
})
