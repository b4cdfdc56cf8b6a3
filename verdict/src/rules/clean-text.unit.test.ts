import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { assertLinear } from '../../test/_linear.ts'
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

  it('looks at eight times the cap, and at nothing behind it', () => {
    assert.equal(cleanText(`${'\0'.repeat(39)}ab`, { max: 5 }), 'a')
    assert.equal(cleanText(`${'\0'.repeat(40)}ab`, { max: 5 }), '')
  })

  it('leaves no space, line feed or joiner before the ellipsis', () => {
    assert.equal(cleanText('ab cde', { max: 4 }), 'ab…')
    assert.equal(cleanText('ab\ncde', { max: 4, multiline: true }), 'ab…')
    assert.equal(cleanText('\u0915\u200d\u0915abc', { max: 3 }), '\u0915…')
    assert.equal(cleanText('\u{1f468}\u200d\u{1f468}abc', { max: 3 }), '\u{1f468}…')
    assert.equal(cleanText('abcdef', { max: 4 }), 'abc…')
    assert.equal(cleanText('abc', { max: 1 }), '…')
    assert.equal(cleanText('ab \u{1f468}\u{1f3fd}cde', { max: 5 }), 'ab \u{1f468}…')
  })

  it('takes a blank of braille and separators of lines for spaces', () => {
    assert.equal(cleanText('a\u2800b\u2028c\u2029d\u2801e', { max: 200 }), 'a b c d\u2801e')
  })

  it('keeps a selector after an emoji, and a joiner between pictographs or joining letters only', () => {
    const kept = [
      '\u2764\ufe0f\u2764',
      '\u2764\ufe0e',
      '\u{1f468}\u200d\u{1f469}',
      '\u2764\ufe0f\u200d\u{1f525}',
      '\u{1f468}\u{1f3fd}\u200d\u{1f469}',
      '\u0915\u094d\u200d\u0937',
      '\u0646\u200c\u0645',
    ]
    for (const text of kept) assert.equal(cleanText(text, { max: 200 }), text)
    const cleaned: [text: string, clean: string][] = [
      ['a\ufe0fb', 'ab'],
      ['a\u200db', 'ab'],
      ['\u200d\u2764', '\u2764'],
      ['a\u200d\u2764', 'a\u2764'],
      ['\u2764\u200da', '\u2764a'],
      ['\u2764\u200c\u2764', '\u2764\u2764'],
      ['\u2764\ufe0f\ufe0e\u2764', '\u2764\ufe0f\u2764'],
      ['\u2764\u200d\u200d\u2764', '\u2764\u200d\u2764'],
      ['\u0915\u200da', '\u0915a'],
      ['a\u200d\u0915', 'a\u0915'],
      ['\u0915\u200d\u200c\u0915', '\u0915\u200d\u0915'],
      ['\u0915\ufe0f\u200d\u0915', '\u0915\u200d\u0915'],
    ]
    for (const [text, clean] of cleaned) assert.equal(cleanText(text, { max: 200 }), clean, JSON.stringify(text))
  })

  it('keeps eight marks in a row, in which joiners and selectors do not count', () => {
    assert.equal(cleanText(`Z${'\u0301'.repeat(50)}algo`, { max: 200 }), `Z${'\u0301'.repeat(8)}algo`)
    const marks = '\u0301'.repeat(4)
    assert.equal(cleanText(`\u0915${marks}\u200d${marks}\u0301`, { max: 200 }), `\u0915${marks}\u200d${marks}`)
    assert.equal(cleanText(`\u0915${marks}\u200d${marks}a`, { max: 200 }), `\u0915${marks}\u200d${marks}a`)
    assert.equal(cleanText(`1${marks}\ufe0f${marks}a`, { max: 200 }), `1${marks}${marks}a`)
  })

  it('keeps one empty line between two texts', () => {
    const options = { max: 200, multiline: true }
    assert.equal(cleanText('a\nb', options), 'a\nb')
    assert.equal(cleanText('a\n\nb', options), 'a\n\nb')
    assert.equal(cleanText('a\n\n\nb', options), 'a\n\nb')
    assert.equal(cleanText('a\r\n \n\n\n\tb', options), 'a\n\nb')
  })

  it('removes escape sequences whole, with and without parameters', () => {
    const sequences = ['\x1b[m', '\x1b[0;31m', '\x1b[ q', '\x1b[?25 h', '\x9bm', '\x9b31m', '\x9b!p']
    const texts = [
      '\x1b]0;title\x07',
      '\x1b]x\x1b\\',
      '\x9dx\x9c',
      '\x1bPx\x9c',
      '\x1bXx\x07',
      '\x1b^x\x07',
      '\x1b_x\x07',
    ]
    const empty = ['\x1b]\x07', '\x1b]\x1b\\', '\x9d\x9c', '\x90\x07', '\x98x\x07', '\x9ex\x07', '\x9fx\x07']
    const escapes = ['\x1bc', '\x1b(B', '\x1b#8', '\x1b0', '\x1b~']
    for (const sequence of [...sequences, ...texts, ...empty, ...escapes])
      assert.equal(cleanText(`a${sequence}b`, { max: 200 }), 'ab', JSON.stringify(sequence))
    assert.equal(cleanText('a\x1b\x1b]\x07[31mb', { max: 200 }), 'ab')
    // An unterminated sequence keeps its text.
    assert.equal(cleanText('a\x1b]0;title', { max: 200 }), 'a0;title')
    assert.equal(cleanText('a\x9btitle', { max: 200 }), 'aitle')
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
    for (const seed of seeds)
      assertLinear(
        (length) => cleanText(seed.repeat(length / seed.length), { max: length, multiline: true }),
        1_000_000,
      )
  })
})
