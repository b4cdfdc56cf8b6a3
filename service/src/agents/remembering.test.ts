import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { remembering } from './remembering.ts'

describe('remembering', () => {
  it('makes a thing once for an object, not for its like, and forgets the oldest of too many', () => {
    let made = 0
    const numbered = remembering((_from: object) => (made += 1))
    const first = {}
    assert.deepEqual([numbered(first), numbered(first), numbered({})], [1, 1, 2])
    for (let more = 0; more < 2_000; more += 1) numbered({})
    assert.equal(numbered(first), made)
    assert.equal(made, 2_003)
  })
})
