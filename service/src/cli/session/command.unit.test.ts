import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { assetFlags } from '@touchstone/verdict'
import { argument, flagBits, parseAnyGtin, parseUid } from './command.ts'

describe('arguments of the command line', () => {
  it('are a UID with or without separators, and nothing that a spreadsheet made of one', () => {
    const bytes = Uint8Array.of(0x04, 0xde, 0x5f, 0x1e, 0xac, 0xc0, 0x40)
    for (const text of ['04DE5F1EACC040', '04de5f1eacc040', '04:DE:5F:1E:AC:C0:40', '04-DE-5F-1E-AC-C0-40'])
      assert.deepEqual(parseUid(text), bytes)
    for (const text of [
      '4.0E+13',
      '4DE5F1EACC040',
      '08DE5F1EACC040',
      '04DE5F1EACC04',
      '04DE5F1EACC0400',
      ' 04DE5F1EACC040',
    ])
      assert.equal(parseUid(text), null, text)
  })

  it('are up to 1000 UIDs, each once', () => {
    assert.equal(argument.uids('04DE5F1EACC040, 04:de:5f:1e:ac:c0:40,04DE5F1EACC041').length, 2)
    assert.throws(() => argument.uids('04DE5F1EACC040,'), /A UID has 14 hex digits/)
    const many = Array.from({ length: 1_001 }, (_, n) => `04AABB${n.toString(16).padStart(8, '0')}`).join(',')
    assert.throws(() => argument.uids(many), /At most 1000/)
    const doubled = Array.from({ length: 1_001 }, () => '04AABB00000000').join(',')
    assert.equal(argument.uids(`${doubled},04DE5F1EACC041`).length, 2, 'none is cut off')
  })

  it('are a GTIN of any length with a right check digit', () => {
    for (const text of ['09520001000010', '9520001000010', '952000100001']) {
      const expected = text === '952000100001' ? null : '09520001000010'
      assert.equal(parseAnyGtin(text), expected)
    }
    assert.equal(parseAnyGtin('96385074'), '00000096385074')
    for (const text of ['', '09520001000011', '9.52E+12', '123']) assert.equal(parseAnyGtin(text), null)
  })

  it('are one or several reasons of a flag', () => {
    assert.equal(flagBits('stolen-confirmed'), assetFlags.STOLEN_CONFIRMED)
    assert.equal(flagBits('lost, recall'), assetFlags.LOST | assetFlags.RECALL)
    for (const text of ['', 'gone', 'lost,', 'toString', '__proto__', `${'lost,'.repeat(8)}gone`])
      assert.throws(() => flagBits(text), /A reason is one of lost, stolen, recall/)
  })

  it('are bounded', () => {
    assert.throws(() => argument.tokenId('9'.repeat(79)))
    assert.throws(() => argument.batchId('x'.repeat(65)))
    assert.throws(() => argument.epoch('2147483648'))
    assert.throws(() => argument.count(200)('201'))
    assert.throws(() => argument.note('x'.repeat(1_001)))
    assert.throws(() => argument.key('two words'))
  })
})
