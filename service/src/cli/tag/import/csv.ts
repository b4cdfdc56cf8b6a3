/** Reads comma-separated values (RFC 4180) as spreadsheets write them: commas, semicolons or tabs, quotes, either line end, BOM. */
import { pipeline } from 'node:stream'
import { type CsvError as ParserError, parse } from 'csv-parse'
import { decodeUtf8 } from '../../../lib/bytes.ts'

/** `line` is the line of the file on which the row begins, from 1. `separator` is the sign between the cells of the file. */
export type CsvRow = {
  readonly line: number
  readonly cells: readonly string[]
  readonly separator: (typeof separators)[Separator]
}

const separators = { ',': 'comma', ';': 'semicolon', '\t': 'tab' } as const
type Separator = keyof typeof separators

/** The file is not a valid table. The message is one sentence with the line. */
export class CsvError extends Error {}

const maxCell = 16_384
const maxCells = 64
/** The most bytes of a row in memory, four for each character. */
const maxRow = 4 * maxCell * maxCells

/** Parses every row that is not empty, the header too, as a stream. The header decides the separator. Throws `CsvError`. */
export async function* readCsv(chunks: AsyncIterable<Buffer>): AsyncGenerator<CsvRow> {
  const source = chunks[Symbol.asyncIterator]()
  const head = await readHead(source)
  const delimiter = separatorOf(head) ?? ','
  let line = 1
  let pending = 0
  const fail = (reason: string) => new CsvError(`Line ${line}: ${reason}`)

  const parser = parse({
    delimiter,
    encoding: 'latin1', // one character for each byte: a whole row is decoded below
    on_record: toRow as never,
    raw: true,
    record_delimiter: ['\r\n', '\n', '\r'],
    relax_column_count: true,
    relax_quotes: true, // a quote inside of a cell that is not quoted is text
  })

  function toRow({ record, raw }: { record: string[]; raw: string }): CsvRow | null {
    if (record.length > maxCells) throw fail(`there are more than ${maxCells} columns.`)
    if (decodeUtf8(Buffer.from(raw, 'latin1')) === null)
      throw fail('the text is not UTF-8; save the file as CSV UTF-8.')
    const cells = record.map((text) => Buffer.from(text, 'latin1').toString('utf8'))
    if (cells.some((text) => text.length > maxCell)) throw fail(`a cell has more than ${maxCell} characters.`)
    // The relaxed parser accepts text after a closing quote. Such a cell begins with a quote that is not escaped in the file.
    if (record.some((text) => text.startsWith('"') && !raw.includes(quoted(text))))
      throw fail('there is text after a closing quote.')
    const row = { line, cells, separator: separators[delimiter] }
    line += 1 + (raw.includes('"') ? (cells.join(' ').match(/\r\n|\r|\n/g)?.length ?? 0) : 0)
    pending = 0
    return cells.some((text) => text !== '') ? row : null
  }

  async function* bounded(): AsyncGenerator<Buffer> {
    yield head
    for await (const chunk of { [Symbol.asyncIterator]: () => source }) {
      pending += chunk.length
      if (pending > maxRow) throw fail(`the row has more than ${maxCells} cells of ${maxCell} characters.`)
      yield chunk
    }
  }

  pipeline(bounded(), parser, () => {}) // its error is thrown by the loop below
  try {
    yield* parser as AsyncIterable<CsvRow>
  } catch (error) {
    throw (error as Partial<ParserError>).code === 'CSV_QUOTE_NOT_CLOSED' ? fail('a quote is not closed.') : error
  }
}

const byteOrderMark = Buffer.from('\uFEFF')

/** Reads chunks until one holds a separator. Leaves the byte order mark out. */
async function readHead(source: AsyncIterator<Buffer>): Promise<Buffer> {
  let head = Buffer.alloc(0)
  while (separatorOf(head) === undefined && head.length <= maxRow) {
    const next = await source.next()
    if (next.done === true) break
    head = Buffer.concat([head, next.value])
  }
  return head.indexOf(byteOrderMark) === 0 ? head.subarray(byteOrderMark.length) : head
}

/** Returns the first separator outside of quotes. Names of columns hold none, so it separates the whole file. */
function separatorOf(head: Buffer): Separator | undefined {
  return /[,;\t]/.exec(head.toString('latin1').replaceAll(/"[^"]*(?:"|$)/g, ''))?.[0] as Separator | undefined
}

function quoted(text: string): string {
  return `"${text.replaceAll('"', '""')}"`
}
