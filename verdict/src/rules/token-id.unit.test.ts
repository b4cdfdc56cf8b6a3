import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { maxTokenId, parseTokenId } from './token-id.ts'

describe('parseTokenId', () => {
  it('reads every id back from its decimal text', () => {
    fc.assert(fc.property(fc.bigInt({ min: 0n, max: maxTokenId }), (id) => parseTokenId(String(id)) === id))
  })

  it('takes leading zeros up to 78 digits', () => {
    assert.equal(parseTokenId('00042'), 42n)
    assert.equal(parseTokenId('42'.padStart(78, '0')), 42n)
    assert.equal(parseTokenId('42'.padStart(79, '0')), null)
  })

  it('stops at 2^256 - 1', () => {
    assert.equal(parseTokenId(String(maxTokenId)), maxTokenId)
    assert.equal(parseTokenId(String(maxTokenId + 1n)), null)
  })

  for (const text of ['', ' 1', '1\n', '-1', '+1', '1.0', '1e3', '0x1', '１', '٣', '1_000', 'x'.repeat(1_000_000)]) {
    it(`refuses ${JSON.stringify(text.slice(0, 10))}`, () => assert.equal(parseTokenId(text), null))
  }
})
