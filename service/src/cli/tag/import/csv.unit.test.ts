import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { formatCsvRow } from '../../../lib/csv.ts'
import { CsvError, readCsv } from './csv.ts'

const notUtf8 = 'the text is not UTF-8; save the file as CSV UTF-8.'

const rowsOf = (...chunks: (string | Buffer)[]) => rowsIn(streamOf(chunks))

async function rowsIn(stream: AsyncGenerator<Buffer>): Promise<(readonly string[])[]> {
  const rows: (readonly string[])[] = []
  for await (const { cells } of readCsv(stream)) rows.push(cells)
  return rows
}

async function* streamOf(chunks: readonly (string | Buffer)[]): AsyncGenerator<Buffer> {
  for (const chunk of chunks) yield Buffer.from(chunk)
}

describe('a CSV file', () => {
  it('is read as spreadsheets write it: BOM, either line end, quotes, empty lines', async () => {
    assert.deepEqual(await rowsOf('\uFEFFuid,name\r\n04AA,"Scarf, ""silk""\r\n90 cm"\r\n\r\n04BB,Coat'), [
      ['uid', 'name'],
      ['04AA', 'Scarf, "silk"\r\n90 cm'],
      ['04BB', 'Coat'],
    ])
  })

  it('may be separated by semicolons or tabs, as its head is', async () => {
    assert.deepEqual(await rowsOf('uid;name\n04AA;"a,b"\n04BB;c,d\n'), [
      ['uid', 'name'],
      ['04AA', 'a,b'],
      ['04BB', 'c,d'],
    ])
    assert.deepEqual(await rowsOf('uid\tname\n04AA\tx;y'), [
      ['uid', 'name'],
      ['04AA', 'x;y'],
    ])
  })

  it('gives the line on which a row begins, also after a cell of two lines', async () => {
    const lines: number[] = []
    for await (const { line } of readCsv(streamOf(['a,b\n"1\n2",3\r\n\n4,5']))) lines.push(line)
    assert.deepEqual(lines, [1, 2, 5])
  })

  it('is refused with its line when a quote is not closed or text follows one', async () => {
    await assert.rejects(rowsOf('a,b\n"1,2\n'), new CsvError('Line 2: a quote is not closed.'))
    await assert.rejects(rowsOf('a,b\n"1"2,3\n'), new CsvError('Line 2: there is text after a closing quote.'))
  })

  it('is refused when a row does not end, before the row is read', async () => {
    let chunks = 0
    async function* long() {
      yield Buffer.from('uid,name\n04AA,"')
      for (; chunks < 200; chunks += 1) yield Buffer.alloc(65_536, 'a')
    }
    const refused = new CsvError('Line 2: the row has more than 64 cells of 16384 characters.')
    await assert.rejects(rowsIn(long()), refused)
    assert.ok(chunks < 100, `${chunks} chunks were read`)
  })

  it('is refused with its line when it is not UTF-8, wherever the stream is cut', async () => {
    const text = 'uid;name\n04AA;Größe für Äpfel\n04BB;"Größe\nzwei"\n'
    const refused = (line: number) => new CsvError(`Line ${line}: ${notUtf8}`)
    const latin1 = Buffer.from(text, 'latin1')
    await assert.rejects(rowsOf(latin1), refused(2))
    await assert.rejects(
      rowsOf(Buffer.concat([Buffer.from('uid;name\n\n04AA;"a\nb"\n'), latin1.subarray(9)])),
      refused(5),
    )
    const utf8 = Buffer.from(text)
    const whole = await rowsOf(utf8)
    assert.deepEqual(whole[1], ['04AA', 'Größe für Äpfel'])
    for (let cut = 0; cut <= utf8.length; cut++)
      assert.deepEqual(await rowsOf(utf8.subarray(0, cut), utf8.subarray(cut)), whole)
    await assert.rejects(rowsOf(utf8.subarray(0, utf8.indexOf('ö') + 1)), refused(2), 'a letter that is cut off')
  })

  it('is refused as UTF-16, which spreadsheets call Unicode text', async () => {
    const text = Buffer.from('\uFEFFuid\tname\r\n04AA\tGröße\r\n', 'utf16le')
    const refused = new CsvError(`Line 1: ${notUtf8}`)
    await assert.rejects(rowsOf(text), refused)
    await assert.rejects(rowsOf(Buffer.from(text).swap16()), refused)
  })

  it('keeps a quote inside of a cell that is not quoted, and any mix of line ends', async () => {
    assert.deepEqual(await rowsOf('a;"b,"\r5" pipe;x\n"""1""2";y'), [
      ['a', 'b,'],
      ['5" pipe', 'x'],
      ['"1"2', 'y'],
    ])
  })

  it('has bounds: long cells and many columns are refused before they fill the memory', async () => {
    await assert.rejects(rowsOf(`a\n${'x'.repeat(16_385)}`), CsvError)
    await assert.rejects(rowsOf(','.repeat(64)), CsvError)
  })

  it('comes back as it was written, wherever the stream is cut', async () => {
    const cells = fc.array(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 }), {
      minLength: 2,
      maxLength: 4,
    })
    await fc.assert(
      fc.asyncProperty(cells, fc.nat(60), async (row, cut) => {
        fc.pre(row.every((text) => !/^\s*[=+\-@＝＋－＠\t\r\n\uFEFF]/.test(text) && text.isWellFormed()))
        const text = Buffer.from(`a,b\n${formatCsvRow(row)}\n`)
        assert.deepEqual((await rowsOf(text.subarray(0, cut), text.subarray(cut)))[1], row)
      }),
    )
  })
})
