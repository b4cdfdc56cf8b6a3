import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { cleanText } from './clean-text.ts'

type Vector = {
  id: string
  kind: 'hostile' | 'visible' | 'legitimate'
  input: string
  expected: string
  alsoAccept?: string[]
  mustNotContain: string[]
  field?: 'description'
}

const file = JSON.parse(readFileSync(new URL('../../test-data/hostile-text.json', import.meta.url), 'utf8')) as {
  forbidden: string[]
  vectors: Vector[]
}

/** A code point or range in hex, or a word for a class; what stands in brackets is a remark. */
function forbidden(range: string): (point: number) => boolean {
  if (range === 'noncharacters') return (point) => (point & 0xfffe) === 0xfffe || (point >= 0xfdd0 && point <= 0xfdef)
  const [first = 0, last = first] = range
    .replace(/ .*/, '')
    .split('-')
    .map((hex) => Number.parseInt(hex, 16))
  return (point) => point >= first && point <= last
}

function points(text: string): number[] {
  return Array.from(text, (char) => char.codePointAt(0) ?? 0)
}

/**
 * Characters of attackers and of writers, few enough to combine often: escapes, joiners, selectors, marks, emoji,
 * spaces, lone surrogates.
 */
const hostileText = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        '\x1b',
        '\x1b[',
        '\x9b',
        '\x1b]',
        '\x9d',
        '\x07',
        '\x1b\\',
        '\x9c',
        '0',
        '31m',
        '(',
        ';',
        '\r',
        '\n',
        '\t',
        '\x85',
      ),
      fc.constantFrom(
        '\u200c',
        '\u200d',
        '\ufe0e',
        '\ufe0f',
        '\u0301',
        '\u064e',
        '\u20e3',
        '\u{1f468}',
        '\u{1f3fd}',
        '\u2764',
        '1',
        'A',
      ),
      fc.constantFrom(
        ' ',
        '\u00a0',
        '\u3000',
        '\u2800',
        '\u2028',
        '\u200b',
        '\u202e',
        '\u{e0041}',
        '\u0915',
        '\u0633',
        '\u1820',
        '\u180b',
      ),
      fc.constantFrom('\ud83d', '\ude00', '\udb40', '\udc41', '\ufdd0', '\ue000', '\u{1bca0}', '…'),
      fc.integer({ min: 0, max: 0x10ffff }).map((point) => String.fromCodePoint(point)),
    ),
    { maxLength: 80 },
  )
  .map((parts) => parts.join(''))

describe('cleanText', () => {
  for (const vector of file.vectors) {
    it(`treats ${vector.kind} text as the vector ${vector.id} says`, () => {
      const options = vector.field === 'description' ? { max: 4000, multiline: true } : { max: 200 }
      const clean = cleanText(vector.input, options)
      assert.ok([vector.expected, ...(vector.alsoAccept ?? [])].includes(clean), JSON.stringify(clean))
      for (const range of vector.mustNotContain) assert.ok(!points(clean).some(forbidden(range)), range)
      assert.equal(cleanText(clean, options), clean)
    })
  }

  it('emits no forbidden code point and nothing above the cap, and cleaning again changes nothing', () => {
    const never = file.forbidden.map(forbidden)
    fc.assert(
      fc.property(hostileText, fc.integer({ min: 1, max: 60 }), fc.boolean(), (text, max, multiline) => {
        const clean = cleanText(text, { max, multiline })
        assert.ok(points(clean).length <= max)
        assert.ok(!points(clean).some((point) => never.some((isForbidden) => isForbidden(point))))
        assert.equal(clean.includes('\n') && !multiline, false)
        assert.equal(cleanText(clean, { max, multiline }), clean)
      }),
      { numRuns: 3000 },
    )
  })

  it('leaves printable ASCII words as they are', () => {
    const words = fc
      .array(fc.stringMatching(/^[!-~]{1,12}$/), { minLength: 1, maxLength: 8 })
      .map((parts) => parts.join(' '))
    fc.assert(fc.property(words, (text) => assert.equal(cleanText(text, { max: 200 }), text)))
  })

  it('ends a text above the cap with an ellipsis', () => {
    assert.equal(cleanText('x'.repeat(201), { max: 200 }), `${'x'.repeat(199)}…`)
    assert.equal(cleanText('x'.repeat(200), { max: 200 }), 'x'.repeat(200))
    assert.equal(cleanText('\u{1f600}'.repeat(201), { max: 200 }), `${'\u{1f600}'.repeat(199)}…`)
  })

  it('keeps eight marks in a row', () => {
    assert.equal(cleanText(`Z${'\u0301'.repeat(50)}algo`, { max: 200 }), `Z${'\u0301'.repeat(8)}algo`)
  })

  it('keeps one empty line between two texts', () => {
    const options = { max: 200, multiline: true }
    assert.equal(cleanText('a\n\nb', options), 'a\n\nb')
    assert.equal(cleanText('a\r\n \n\n\n\tb', options), 'a\n\nb')
  })

  it('removes escape sequences that others hide, four deep; deeper ones lose their ESC', () => {
    let nested = ''
    for (let depth = 1; depth <= 4; depth += 1) {
      nested = `\x1b${nested}[31m`
      assert.equal(cleanText(`a${nested}b`, { max: 200 }), 'ab', `${depth} deep`)
    }
    assert.equal(cleanText(`a\x1b${nested}[31mb`, { max: 200 }), 'a[31mb')
  })

  it('takes linear time for text made to be scanned again and again', () => {
    const seeds = [
      '\x1b]',
      '\x9d',
      '\x1b[0',
      '\x9b',
      '\x1b(',
      '\u200d',
      '\u0301',
      ' ',
      '\u3000\n',
      '\x1b\x1b[31m[31m',
      '\ufe0f\u200d',
    ]
    for (const seed of seeds) {
      const time = (length: number): number => {
        const text = seed.repeat(length / seed.length)
        const start = performance.now()
        cleanText(text, { max: length, multiline: true })
        return performance.now() - start
      }
      time(50_000)
      assert.ok(time(1_000_000) < 5_000, JSON.stringify(seed)) // quadratic time would be minutes
    }
  })
})
