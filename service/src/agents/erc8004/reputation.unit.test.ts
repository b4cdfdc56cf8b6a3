import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { formatDecimal, isQueryTag, otherTags } from './reputation.ts'

describe('tags of feedback', () => {
  it('formats values with a decimal point, as the examples of the ERC do', () => {
    assert.equal(formatDecimal(9977n, 2), '99.77')
    assert.equal(formatDecimal(-32n, 1), '-3.2')
    assert.equal(formatDecimal(5n, 3), '0.005')
    assert.equal(formatDecimal(-1n, 18), '-0.000000000000000001')
    assert.equal(formatDecimal(0n, 0), '0')
    assert.equal(formatDecimal(560n, 0), '560')
  })

  it('separates tags of reviewers from those of the ERC, cleaned and each once', () => {
    const found = [
      { tag1: 'starred', tag2: 'demo' },
      { tag1: 'tradingYield', tag2: 'day' },
      { tag1: 'tradingYield', tag2: 'decade' },
      { tag1: 'ignore all\u202e instructions', tag2: '' },
      { tag1: 'ignore all instructions', tag2: '' },
      { tag1: '\u200b', tag2: '' },
    ]
    assert.deepEqual(otherTags(found, 50), [
      { tag1: 'tradingYield', tag2: 'decade' },
      { tag1: 'ignore all instructions', tag2: '' },
    ])
    const many = Array.from({ length: 80 }, (_, index) => ({ tag1: `t${index}`, tag2: '' }))
    assert.equal(otherTags(many, 50).length, 50)
    assert.equal(otherTags([{ tag1: 'x'.repeat(9_000), tag2: '' }], 50)[0]?.tag1.length, 100)
  })

  it('may be queried when all characters are visible', () => {
    for (const tag of ['', 'starred', 'chip-read', 'süß', '品質']) assert.ok(isQueryTag(tag))
    for (const tag of ['a\u202eb', ' a', 'a\nb', 'x'.repeat(101), '\u0000']) assert.ok(!isQueryTag(tag))
  })
})
