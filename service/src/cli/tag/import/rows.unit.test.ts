import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { parseHead, parseRow } from './rows.ts'

const head = ['UID', 'batch', 'epoch', 'token_id', 'gtin', 'serial', 'counter', 'name', 'brand']
const places = parseHead(head)
const read = (...cells: string[]) => parseRow(places, { line: 7, cells, separator: 'semicolon' })
const good = ['04DE5F1EACC040', 'b', '', '', '9520001000010', 'M41-1', '', 'Meridian', 'Calder']

describe('a row of an import', () => {
  it('is read whole', () => {
    const result = read('04:de:5f:1e:ac:c0:40', 'b', '2', '15', '9520001000010', 'M41-1', '3', 'Meridian', '')
    if (!result.ok) return assert.fail(result.reason)
    const { metadata, uid, ...row } = result.row
    assert.equal(uid.length, 7)
    assert.equal(metadata?.body, '{"name":"Meridian"}')
    assert.deepEqual(row, {
      line: 7,
      uidText: '04DE5F1EACC040',
      batchId: 'b',
      epoch: 2,
      counter: 3,
      tokenId: 15n,
      item: { gtin: '09520001000010', serial: 'M41-1' },
    })
  })

  it('needs a UID and a batch only', () => {
    const result = read('04DE5F1EACC040', 'b')
    assert.ok(result.ok && result.row.metadata === undefined && result.row.item === undefined)
  })

  it('is refused as a whole for any cell that is wrong, and says which', () => {
    const wrong: readonly (readonly [number, string, RegExp])[] = [
      [0, '4.8E+13', /^Column uid: .*spreadsheet/],
      [1, '', /^Column batch: /],
      [2, '-1', /^Column epoch: .*leave it empty/],
      [3, '0x10', /^Column tokenId: /],
      [3, '0', /tokenId/],
      [4, '9520001000011', /^Column gtin: .*check digit/],
      [4, '', /A serial needs a gtin/],
      [5, '', /A gtin needs a serial/],
      [5, 'a b', /^Column serial: /],
      [5, '..', /serial/],
      [6, '16777216', /^Column counter: /],
      [7, 'x'.repeat(16_400), /^Column name: .*16 kB/],
      [8, '\ud800', /^Column brand: .*surrogate/],
      [7, 'Gr\uFFFD\uFFFDe', /^Column name: .*letter was lost/],
    ]
    for (const [place, cell, reason] of wrong) {
      const result = read(...good.with(place, cell))
      assert.ok(!result.ok, cell)
      assert.match(result.reason, reason)
      assert.equal(result.line, 7)
      assert.equal(result.uid, place === 0 ? '' : '04DE5F1EACC040')
    }
    assert.match(
      (read(...good, 'one more') as { reason: string }).reason,
      /10 cells under 9 columns: quote a cell that holds a semicolon\./,
    )
  })

  it('stands under a head that names only what is known, once, with uid and batch', () => {
    assert.throws(() => parseHead(['uid', 'batch', 'Serial No']), /names a column "Serial No"; columns are uid, batch/)
    assert.throws(() => parseHead(['uid', 'batch', 'UID']), /names the column uid twice/)
    assert.throws(() => parseHead(['uid', 'epoch']), /must name the column batch, or give --batch/)
    const own = parseHead(['uid', 'gtin', 'serial'], { batch: 'b' })
    const result = parseRow(own, { line: 2, cells: ['04DE5F1EACC040', '', ''], separator: 'comma' }, { batch: 'b' })
    assert.equal(result.ok && result.row.batchId, 'b')
  })
})
