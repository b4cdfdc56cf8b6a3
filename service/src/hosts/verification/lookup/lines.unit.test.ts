import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { parseLines, withoutQueries } from './lines.ts'

const base = 'https://verify.example'

describe('a list', () => {
  it('shows links without their queries, which may be taps', () => {
    const link = `${base}/01/09520123456788/21/A`
    const text = `5,${link}?picc=0&cmac=1;x\n"${link}?picc=0" A?B ${link}#picc`
    assert.equal(withoutQueries(text), `5,${link};x\n"${link}" A?B ${link}`)
  })

  it('counts on the lines of its parts, and reads the columns of each', () => {
    const { lines } = parseLines(['7\n\nA-1', 'serial\n7\n'], base, 9)
    assert.deepEqual(
      lines.map(({ number, identifiers }) => [number, identifiers[0]?.kind]),
      [
        [1, 'number'],
        [3, 'serial'],
        [5, 'serial'],
      ],
    )
  })

  it('takes cells between semicolons and tabs, quotes, and a quote that is not closed', () => {
    const item = { kind: 'item', gtin: '09520123456788', serial: 'A,1' }
    for (const line of ['9520123456788,"A,1"', '٩٥٢٠١٢٣٤٥٦٧٨٨,"A,١"', '9520123456788;"A,1"', '9520123456788\tA,1'])
      assert.deepEqual(parseLines([line], base, 9).lines[0]?.identifiers, [item], line)
    assert.equal(parseLines(['x y,"open'], base, 9).lines[0]?.identifiers[0]?.kind, 'unreadable')
  })

  it('does not split a line that is longer than a row of a list', () => {
    for (const line of [`42${','.repeat(10_000)}`, `token${',x'.repeat(10_000)}`]) {
      const { lines } = parseLines([`${line}\n7`], base, 9)
      assert.deepEqual(
        lines.map(({ identifiers }) => identifiers[0]?.kind),
        ['unreadable', 'number'],
      )
    }
  })

  it('keeps a first line that names no column, such as a serial with the name of a member of every object', () => {
    const { count, lines } = parseLines(['constructor\n__proto__'], base, 9)
    assert.deepEqual(
      [count, lines.map(({ typed, identifiers }) => [typed, identifiers[0]?.kind])],
      [
        2,
        [
          ['constructor', 'serial'],
          ['__proto__', 'serial'],
        ],
      ],
    )
  })

  it('counts a list that is too long, with the names of columns left out, and reads none of its lines', () => {
    const list = `serial\n${'"\n\n'.repeat(20_000)}`
    assert.deepEqual(parseLines([list, 'A'], base, 200), { count: 20_001, lines: [] })
  })
})
