import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { assertLinear } from '../../../verdict/test/_linear.ts'
import { matchesIfNoneMatch } from './etag.ts'

describe('If-None-Match', () => {
  for (const [header, etag, matches] of [
    [undefined, '"a"', false],
    ['', '"a"', false],
    ['"a"', '"a"', true],
    ['W/"a"', '"a"', true],
    ['"a"', 'W/"a"', true],
    ['W/"a"', 'W/"a"', true],
    ['w/"a"', 'W/"a"', true],
    ['"b", W/"a" ,"c"', '"a"', true],
    ['"b"', '"a"', false],
    ['"A"', '"a"', false],
    [' * ', '"a"', true],
    ['"*"', '"a"', false],
    ['a', '"a"', false],
    ['"a,b"', '"a,b"', true],
    ['"a,b"', '"b"', false],
    ['"b', '"b"', false],
  ] as const)
    it(`${header} ${matches ? 'lists' : 'does not list'} ${etag}`, () =>
      assert.equal(matchesIfNoneMatch(header, etag), matches))

  it('of any length is read in linear time', () => {
    const read = (count: number) => matchesIfNoneMatch('W/'.repeat(count) + '"'.repeat(count + 1), '"a"')
    assertLinear((count) => assert.equal(read(count), false), 1_000_000)
  })
})
