import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { callsOf, isAnswerOf, shownAnswer, withAnswer } from './answers.ts'

const page =
  'Text.\n\n```\ncurl a \\\n  -d b\nprintf c > d\n```\n\n```answer\nold\n```\n\n```sh\nnot a call\n```\n\n```\ncurl e\n```\n\nEnd.\n'
const hash = `0x${'ab12'.repeat(16)}`

describe('the calls of a page', () => {
  it('are its blocks without a language, each with the answer right below it', () => {
    assert.deepEqual(
      callsOf(page).map(({ commands, answer }) => ({ commands, answer })),
      [
        { commands: ['curl a   -d b', 'printf c > d'], answer: 'old' },
        { commands: ['curl e'], answer: null },
      ],
    )
  })

  it('get an answer that is new, is another, or is gone', () => {
    const [first, second] = callsOf(page)
    assert.ok(first && second)
    assert.equal(withAnswer(page, first, ['new\n']), page.replace('old', 'new'))
    assert.ok(withAnswer(page, second, ['{"a":1}']).endsWith('curl e\n```\n\n```answer\n{ "a": 1 }\n```\n\nEnd.\n'))
    assert.ok(!withAnswer(page, first, ['']).includes('answer'))
  })
})

describe('an answer', () => {
  it('is the output that it was made of, and one with other hashes, times and blocks', () => {
    const output = (block: number, block_hash: string, time: string) =>
      JSON.stringify({ state: 'CLAIMED', chainRef: { block_number: block, block_hash }, time })
    const shown = shownAnswer([output(21, hash, '2026-11-22T10:00:00.000Z')])
    assert.match(shown, /"block_hash": "0xab12…ab12"/)
    assert.ok(isAnswerOf(shown, [output(1234, hash.replaceAll('a', 'c'), '2027-01-01T00:00:00Z')]))
    assert.ok(!isAnswerOf(shown, [output(21, hash, '2026-11-22T10:00:00.000Z').replace('CLAIMED', 'BOUND')]))
    assert.ok(!isAnswerOf(shown, [output(21, hash, '2026-11-22T10:00:00.000Z').replace('"time"', '"more":1,"time"')]))
  })

  it('leaves out the rest of a long list and of a long text, and is still that of the whole output', () => {
    const list = JSON.stringify({ ids: Array.from({ length: 50 }, (_, index) => index) })
    const text = Array.from({ length: 90 }, (_, index) => `line ${index}`).join('\n')
    assert.equal(shownAnswer([list]), '{ "ids": [0, 1, 2, …] }')
    assert.ok(isAnswerOf(shownAnswer([list, text]), [list, text]))
    assert.ok(shownAnswer([text]).split('\n').length < 40)
    assert.ok(!isAnswerOf(shownAnswer([text]), ['line 1']))
  })

  it('shows no API key', () => assert.equal(shownAnswer([`ts_live_${'k'.repeat(43)}\n`]), 'ts_live_…'))
})
