/** Comma-separated values (RFC 4180) as spreadsheets write them, read as a stream: commas, semicolons or tabs, quotes, either line end, BOM. */

/** `line` is the line of the file on which the row begins, from 1. */
export type CsvRow = { readonly line: number; readonly cells: readonly string[] }

/** A file that is no table that could be read on: one sentence with the line. */
export class CsvError extends Error {}

const maxCell = 16_384
const maxCells = 64

/** Every row that is not empty, the head too. The head decides what separates cells. Throws `CsvError`. */
export async function* readCsv(chunks: AsyncIterable<string>): AsyncGenerator<CsvRow> {
  const reader = createReader()
  for await (const chunk of chunks) yield* reader.read(chunk)
  yield* reader.end()
}

function createReader() {
  let separator: string | null = null
  let line = 1
  let startLine = 1
  let cells: string[] = []
  let cell = ''
  let mode: 'start' | 'plain' | 'quoted' | 'closed' = 'start'
  let isFirst = true
  let afterReturn = false

  function* read(chunk: string): Generator<CsvRow> {
    for (const character of isFirst ? chunk.replace(/^\uFEFF/, '') : chunk) {
      isFirst &&= false
      yield* take(character)
    }
  }

  function* take(character: string): Generator<CsvRow> {
    const isSecondHalf = character === '\n' && afterReturn
    afterReturn = character === '\r'
    if (isSecondHalf && mode !== 'quoted') return
    const isEnd = character === '\n' || character === '\r'
    if (isEnd && !isSecondHalf) line++
    if (mode === 'quoted') {
      if (character === '"') mode = 'closed'
      else add(character)
    } else if (isEnd) {
      yield* finish()
    } else if (isSeparator(character)) {
      next()
    } else if (character === '"' && mode === 'start') {
      mode = 'quoted'
    } else if (character === '"' && mode === 'closed') {
      add('"')
      mode = 'quoted'
    } else if (mode === 'closed') {
      throw new CsvError(`Line ${line}: there is text behind a closing quote.`)
    } else {
      mode = 'plain'
      add(character)
    }
  }

  /** Names of columns hold none of the three, so the first one that is met separates the whole file. */
  function isSeparator(character: string): boolean {
    if (separator === null && /[,;\t]/.test(character)) separator = character
    return character === separator
  }

  function add(text: string): void {
    cell += text
    if (cell.length > maxCell) throw new CsvError(`Line ${startLine}: a cell has more than ${maxCell} characters.`)
  }

  function next(): void {
    if (cells.push(cell) > maxCells) throw new CsvError(`Line ${startLine}: there are more than ${maxCells} columns.`)
    cell = ''
    mode = 'start'
  }

  function* finish(): Generator<CsvRow> {
    next()
    if (cells.some((text) => text !== '')) yield { line: startLine, cells }
    cells = []
    startLine = line
  }

  function* end(): Generator<CsvRow> {
    if (mode === 'quoted') throw new CsvError(`Line ${startLine}: a quote is not closed.`)
    yield* finish()
  }

  return { read, end }
}

/** One line, without its end. What a spreadsheet would run as a formula gets an apostrophe in front. */
export function csvLine(cells: readonly (string | number | bigint)[]): string {
  return cells
    .map((cell) => {
      const text = typeof cell === 'string' ? cell.replace(/^[=+\-@\t\r]/, "'$&") : String(cell)
      return /[",;\t\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
    })
    .join(',')
}
