import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { askedBy } from './a2a-request.ts'

const inText = (text: string) => askedBy([{ text }], undefined)
const inData = (data: unknown) => askedBy([{ data }], undefined)
const run = (skill: string, args: object) => ({ kind: 'run', skill, args })

describe('what a message asks for', () => {
  it('takes the one number of a text, and the skill that its words name', () => {
    assert.deepEqual(inText('Is product #42 genuine?'), run('verify_asset', { token_id: '42' }))
    assert.deepEqual(inText('token-42'), run('verify_asset', { token_id: '42' }))
    assert.deepEqual(inText('Was 00042 flagged?'), run('check_flagged', { token_id: '00042' }))
    assert.deepEqual(inText('Show me the history of 42.'), run('get_lifecycle_history', { token_id: '42' }))
  })

  for (const text of [
    '',
    'verify it',
    '42 and 43',
    '3.14',
    '3,14',
    '-5',
    '0x2a',
    'v2',
    '2nd',
    '٤٢',
    '9'.repeat(79),
    '1_000',
  ])
    it(`finds no token id in ${JSON.stringify(text.slice(0, 20))}`, () => {
      assert.deepEqual(inText(text), { kind: 'no token id', skill: 'verify_asset' })
    })

  it('finds any token id that stands alone, in the time that its length deserves', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 2n ** 256n - 1n }), (id) => {
        assert.deepEqual(inText(`check ${id} please`), run('verify_asset', { token_id: String(id) }))
      }),
    )
    const began = performance.now()
    inText('1'.repeat(60_000))
    inText('1 '.repeat(30_000))
    inText('-'.repeat(60_000))
    assert.ok(performance.now() - began < 2_000)
  })

  it('hands a data part to its skill as it is, and lets the tool judge', () => {
    const data = { skill: 'verify_asset', token_id: '42', include_untrusted: false, more: 1 }
    assert.deepEqual(inData(data), run('verify_asset', { token_id: '42', include_untrusted: false, more: 1 }))
    assert.deepEqual(inData({ token_id: '42' }), run('verify_asset', { token_id: '42' }))
    assert.deepEqual(inData({ skill: 'check_flagged', tokenId: 42 }), run('check_flagged', { tokenId: 42 }))
  })

  it('asks for a token id where data has none', () => {
    for (const data of [
      {},
      { token_id: '0x2a' },
      { token_id: -1 },
      { token_id: 1.5 },
      { token_id: null },
      { token_id: {} },
    ])
      assert.deepEqual(inData(data), { kind: 'no token id', skill: 'verify_asset' })
  })

  it('knows no other skill, not even one of every object', () => {
    for (const skill of ['transfer_asset', 'constructor', '', 7, null, {}])
      assert.deepEqual(inData({ skill, token_id: '42' }), { kind: 'unknown skill' })
  })

  it('keeps the skill of an earlier message unless the new one names another', () => {
    const later = (text: string) => askedBy([{ text }], 'check_flagged')
    assert.deepEqual(later('42'), run('check_flagged', { token_id: '42' }))
    assert.deepEqual(later('its history: 42'), run('get_lifecycle_history', { token_id: '42' }))
  })

  it('lets data decide over text, and refuses two data parts or one that is no object', () => {
    const both = askedBy([{ text: 'history of 7' }, { data: { token_id: '42' } }], undefined)
    assert.deepEqual(both, run('verify_asset', { token_id: '42' }))
    assert.equal('fault' in askedBy([{ data: {} }, { data: {} }], undefined), true)
    for (const data of [42, '42', [42], null]) assert.equal('fault' in inData(data), true)
  })
})
