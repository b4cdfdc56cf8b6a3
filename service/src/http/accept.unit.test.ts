import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { assertLinear } from '../../../verdict/test/_linear.ts'
import fc from 'fast-check'
import { negotiate, prefersPage, signedForms } from './accept.ts'

const unsigned = 'application/ld+json'
const jwt = 'application/vc+jwt'
const embedded = 'application/vc'

/** Accept header, the form while signing is on, the form while it is off (null: 406). */
const table: readonly (readonly [string | null, string, string | null])[] = [
  [null, unsigned, unsigned],
  ['', unsigned, unsigned],
  ['*/*', unsigned, unsigned],
  ['application/*', unsigned, unsigned],
  ['application/json', unsigned, unsigned],
  ['application/ld+json', unsigned, unsigned],
  ['text/html', unsigned, unsigned],
  ['text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8', unsigned, unsigned],
  ['image/png;q=0', unsigned, unsigned],
  ['nonsense', unsigned, unsigned],
  ['application/vc+jwt', jwt, null],
  ['APPLICATION/VC+JWT', jwt, null],
  ['application/vc+jwt; charset=utf-8', jwt, null],
  ['application/vc', embedded, null],
  ['application/vc+jwt, application/vc', jwt, null],
  ['application/vc+jwt;q=0.5, application/vc', embedded, null],
  ['application/vc+jwt;q=0.001', jwt, null],
  ['application/vc+jwt, application/ld+json', unsigned, unsigned],
  ['application/ld+json;q=0.5, application/vc+jwt;q=0.5', unsigned, unsigned],
  ['application/vc+jwt, */*', unsigned, unsigned],
  ['application/vc+jwt, */*;q=0.9', jwt, unsigned],
  ['application/vc+jwt;q=0.9, application/ld+json;q=0.8', jwt, unsigned],
  ['application/vc;q=0.9, application/json', unsigned, unsigned],
  ['application/vc+jwt, application/json;q=0', jwt, null],
  ['application/vc+jwt;q=0, application/vc;q=0', unsigned, unsigned],
  ['application/vc+jwt;q=0, application/vc', embedded, null],
  ['application/vc+jwt;q=2', unsigned, unsigned],
  ['application/vc+jwt;q=x, application/vc', embedded, null],
  ['application/ld+json;profile="a,application/vc+jwt;q=1", application/vc;q=0.5', unsigned, unsigned],
  ['application/ld+json;profile="a, application/vc;q=0.5, application/vc+jwt', unsigned, unsigned],
  ['application/vc;profile="a, application/ld+json', embedded, null],
  ['text/html, application/vc+jwt;q=0.1', jwt, unsigned],
]

describe('a navigation of a browser', () => {
  const table: readonly (readonly [string | null, boolean])[] = [
    ['text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8', true], // Firefox, Safari
    ['text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8,a/b;v=b3;q=0.7', true], // Chrome
    ['text/html, application/xhtml+xml, application/json', false],
    ['text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2', false], // Java's HttpURLConnection
    ['text/html, */*; q=0.01', false], // a script of jQuery
    ['*/*', false],
    [null, false],
  ]
  for (const [accept, expected] of table)
    it(`${expected ? 'is' : 'is not'} Accept ${accept}`, () => assert.equal(prefersPage(accept), expected))
})

describe('the form of a passport', () => {
  for (const [accept, on, off] of table) {
    it(`for Accept ${accept} is ${on}; without keys ${off ?? '406'}`, () => {
      assert.equal(negotiate(accept, signedForms), on)
      assert.equal(negotiate(accept, []), off)
    })
  }

  it('is the one there is a key for', () => {
    assert.equal(negotiate('application/vc+jwt, application/vc;q=0.1', [embedded]), embedded)
    assert.equal(negotiate('application/vc', [jwt]), null)
  })

  it('is never signed for a header that names no signed form, and never 406 for one that names another', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...Array.from('application/ld+json;q=01.5,*" ')) }), (accept) => {
        assert.equal(negotiate(accept, signedForms), unsigned)
        assert.equal(negotiate(`${accept},text/html`, []), unsigned)
      }),
    )
  })

  it('of a very long header is the unsigned one, in linear time', () => {
    for (const [begin, part] of [
      ['', '"'],
      ['application/vc+jwt', ','],
      ['', '"\\'],
    ] as const)
      assertLinear((length) => assert.equal(negotiate(begin + part.repeat(length), signedForms), unsigned), 2_000_000)
    assert.equal(negotiate('"\\'.repeat(1_000), signedForms), unsigned) // the longest that is read: exponential time has no end
  })
})
