import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { cleanLine, parseDay, parseInstant, typedText } from './text.ts'

const hostile = 'A\u001b[31mred\u202eevil\u{e0041}\u0000 text'
const clean = 'Aredevil text'

describe('a line of supplier text', () => {
  it('is cleaned, and left as it is where it is plain', () => {
    assert.equal(cleanLine(hostile), clean)
    for (const plain of ['Watch', 'A b-c (d) #7', '腕時計', 'Müller & Söhne']) assert.equal(cleanLine(plain), plain)
    assert.equal(cleanLine(' two  spaces '), 'two spaces')
    assert.equal(Array.from(cleanLine('x'.repeat(300))).length, 200)
  })

  it('is cleaned once, however often an answer has it', (t) => {
    const cleaning = t.mock.method(String.prototype, 'replace').mock
    assert.equal(cleanLine(`時計 of the test\n`), '時計 of the test')
    const first = cleaning.callCount()
    assert.ok(first > 0)
    assert.equal(cleanLine(`時計 of the test\n`), '時計 of the test')
    assert.equal(cleaning.callCount(), first)
  })
})

describe('a text that a person typed', () => {
  it('has the digits of every keyboard as ASCII, no marks of direction, and no space around it', () => {
    let systems = 0
    for (const system of Intl.supportedValuesOf('numberingSystem')) {
      const typed = new Intl.NumberFormat(`en-u-nu-${system}`, { useGrouping: false }).format(9_876_543_210)
      if (!/^\p{Nd}{10}$/u.test(typed)) continue
      assert.equal(typedText(`\u200e ${typed}\u202c `), '9876543210', system)
      systems++
    }
    assert.ok(systems > 50)
    for (const text of ['', 'S7-1182', 'Ⅷ ½ ² 一', '(01)1\u001d21A']) assert.equal(typedText(text), text)
  })
})

describe('instants and days', () => {
  it('are read exactly, and refused where there is no such one', () => {
    const instants: readonly (readonly [string, string | null])[] = [
      ['2026-03-01T12:00:00Z', '2026-03-01T12:00:00.000000Z'],
      ['2026-03-01T12:00:00.1234567+01:30', '2026-03-01T10:30:00.123456Z'],
      ['2026-03-01t12:00:00.5z', '2026-03-01T12:00:00.500000Z'],
      ['0001-01-01T00:00:00+23:59', null],
      ['9999-12-31T23:59:59-00:01', null],
      ['2026-02-30T00:00:00Z', null],
      ['2026-13-01T00:00:00Z', null],
      ['2026-03-01T24:00:00Z', null],
      ['2026-03-01T12:00:60Z', null],
      ['2026-03-01', null],
      ['2026-03-01T12:00:00', null],
      ['1772366400', null],
    ]
    for (const [text, instant] of instants) assert.equal(parseInstant(text), instant, text)
    for (const day of ['2024-02-29', '0001-01-01', '9999-12-31']) assert.equal(parseDay(day), day)
    for (const text of ['2026-02-29', '2026-00-01', '0000-01-01', '2026-1-1', '26-01-01', '2026-01-01T00:00:00Z'])
      assert.equal(parseDay(text), null, text)
  })
})
