/** A pasted list or a CSV file as lines, each with the identifiers that it holds. A first line of column names says what the cells are. */
import { cleanText } from '@touchstone/verdict'
import { parse } from 'csv-parse/sync'
import { type Identifier, parseIdentifier, parseItem } from '../../../passport/identifier.ts'

/** `typed` is what the line holds, cleaned, without the query of a link: that may be a tap. */
export type LookupLine = {
  readonly number: number
  readonly typed: string
  readonly identifiers: readonly Identifier[]
}

const longestTyped = 100

/**
 * Parses every line that is not empty. Lines of the parts, each with columns of its own, are counted on from 1. A list of more than `most`
 * lines is counted only, because a body of 64 kB may have 30,000.
 */
export function parseLines(
  parts: readonly string[],
  baseUrl: string,
  most: number,
): { readonly count: number; readonly lines: readonly LookupLine[] } {
  let before = 0
  const all = parts.flatMap((part) => {
    const lines = part.replace(/^\uFEFF/, '').split(/\r\n|\r|\n/)
    const start = before
    before += lines.length
    return withColumns(lines.map((text, index) => ({ number: start + index + 1, text: text.trim() })))
  })
  return { count: all.length, lines: all.length > most ? [] : all.map((line) => parseLine(line, baseUrl)) }
}

type NumberedText = { readonly number: number; readonly text: string }
type UnreadLine = NumberedText & { readonly columns: readonly Column[] | null }

/** Leaves out empty lines, and a first one that names columns. */
function withColumns(all: readonly NumberedText[]): readonly UnreadLine[] {
  const lines = all.filter(({ text }) => !/^[\s,;]*$/.test(text))
  const [first] = lines
  const columns = first === undefined ? null : columnsOf(cellsOf(first.text))
  return (columns ? lines.slice(1) : lines).map((line) => ({ ...line, columns }))
}

function parseLine({ number, text, columns }: UnreadLine, baseUrl: string): LookupLine {
  return {
    number,
    typed: cleanText(withoutQueries(text), { max: longestTyped }),
    identifiers: columns ? byColumns(columns, cellsOf(text), baseUrl) : byPlace(text, baseUrl),
  }
}

type Column = 'token' | 'gtin' | 'serial' | 'link' | null

const columnNames = new Map<string, Exclude<Column, null>>(
  Object.entries({
    token: 'token',
    token_id: 'token',
    tokenid: 'token',
    gtin: 'gtin',
    serial: 'serial',
    serial_number: 'serial',
    link: 'link',
    url: 'link',
    digital_link: 'link',
  } as const),
)

/** Returns the columns that a first line names, and null for a line that names none. */
function columnsOf(cells: readonly string[]): readonly Column[] | null {
  const columns = cells.map((cell) => columnNames.get(cell.toLowerCase().replace(/[\s-]+/g, '_')) ?? null)
  return columns.some((column) => column !== null) ? columns : null
}

function byColumns(columns: readonly Column[], cells: readonly string[], baseUrl: string): readonly Identifier[] {
  const cell = (column: Column) => cells[columns.indexOf(column)] ?? ''
  const [token, link, gtin, serial] = [cell('token'), cell('link'), cell('gtin'), cell('serial')]
  return [
    ...(token === '' ? [] : [only(parseIdentifier(token, baseUrl), 'token')]),
    ...(link === '' ? [] : [parseIdentifier(link, baseUrl)]),
    ...(gtin === '' && serial === '' ? [] : [byNumbers(gtin, serial, baseUrl)]),
  ]
}

function byNumbers(gtin: string, serial: string, baseUrl: string): Identifier {
  if (gtin === '') return only(parseIdentifier(serial, baseUrl), 'serial')
  return serial === '' ? only(parseIdentifier(gtin, baseUrl), 'class') : itemOf(gtin, serial)
}

/** Reads a text as what its column says, and as nothing else. */
function only(identifier: Identifier, kind: 'token' | 'serial' | 'class'): Identifier {
  if (identifier.kind === kind) return identifier
  if (identifier.kind !== 'number') return unreadable
  const { tokenId, gtin, serial } = identifier
  if (kind === 'token') return { kind, tokenId }
  if (kind === 'serial') return serial === null ? unreadable : { kind, serial }
  return gtin === null ? unreadable : { kind, gtin }
}

/** Reads a line without column names: one identifier, or a GTIN and a serial. */
function byPlace(line: string, baseUrl: string): readonly Identifier[] {
  const whole = parseIdentifier(line, baseUrl)
  // Links and element strings may hold a comma; what else has one is a row of cells.
  if (whole.kind !== 'serial' && whole.kind !== 'unreadable') return [whole]
  const [first = '', second = '', ...rest] = cellsOf(line)
  if (rest.some((cell) => cell !== '')) return [unreadable]
  return [second === '' ? parseIdentifier(first, baseUrl) : itemOf(first, second)]
}

function itemOf(gtin: string, serial: string): Identifier {
  const item = parseItem(gtin, serial)
  return item === null ? unreadable : { kind: 'item', ...item }
}

const unreadable = { kind: 'unreadable' } as const

/** Longest line that is split, in characters. The parser takes some microseconds for each, and a line counts as one request. */
const longestRow = 6_000

/** Splits a line at tabs, else at semicolons, else at commas (RFC 4180, and what spreadsheets make of it). */
function cellsOf(line: string): readonly string[] {
  if (line.length > longestRow) return [line]
  const delimiter = line.includes('\t') ? '\t' : line.includes(';') ? ';' : ','
  try {
    const [cells = []] = parse(line, {
      delimiter,
      relax_quotes: true,
      relax_column_count: true,
      trim: true,
    }) as string[][]
    return cells
  } catch {
    return [line] // a quote that is not closed
  }
}

/** Leaves out the queries of links, which may hold taps. */
export function withoutQueries(text: string): string {
  return text.replace(/[^\s,;"]+/g, (part) => (/https?:\/\//i.test(part) ? part.replace(/[?#].*$/s, '') : part))
}
