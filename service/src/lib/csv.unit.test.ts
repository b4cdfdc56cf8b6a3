/** CSV rows that a spreadsheet opens as they are, and runs nothing of. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { parse } from 'csv-parse/sync'
import fc from 'fast-check'
import { formatCsvRow } from './csv.ts'

describe('a CSV row', () => {
  it('quotes what must be quoted', () => {
    assert.equal(formatCsvRow(['a', 'b,c', 'd"e', 'f\ng', null, 7, true, 8n]), 'a,"b,c","d""e","f\ng",,7,true,8')
    assert.equal(formatCsvRow(['a;b', 'c\td']), '"a;b","c\td"')
  })

  it('makes formulas text', () => {
    for (const text of ['=1+1', '+1', '-1', '@SUM(A1)', '\t=1', '＝1', ' =cmd|calc!A1', '\r=1'])
      assert.match(formatCsvRow([text]), /^"?'/, JSON.stringify(text))
    assert.equal(formatCsvRow([-1, 'a=b']), '-1,a=b')
  })

  it('reads back as it was, but for the apostrophe', () => {
    const texts = fc.array(fc.string({ unit: 'binary' }), { minLength: 2, maxLength: 5 })
    fc.assert(
      fc.property(texts, (cells) => {
        const [row = []] = parse(`${formatCsvRow(cells)}\n`, { record_delimiter: '\n' }) as string[][]
        assert.deepEqual(
          row.map((cell, at) => (cell === `'${cells[at]}` ? cells[at] : cell)),
          cells,
        )
      }),
    )
  })
})
