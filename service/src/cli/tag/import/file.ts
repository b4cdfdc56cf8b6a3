/** The CSV file of `tag prepare`, `tag write --from` and `tag import`: one file from blank chips to products (spec §4.4). */
import { createReadStream } from 'node:fs'
import { requireFile } from '../../session/files.ts'
import { assertNotInterrupted, CommandError } from '../../session/output.ts'
import { readCsv } from './csv.ts'
import { type ImportRow, parseHead, type ParsedRow, parseRow, type RowDefaults } from './rows.ts'

/** Reads the whole file before the first row is acted on, so that a malformed one changes nothing. */
export async function countRows(path: string, defaults: RowDefaults): Promise<number> {
  await requireFile(path)
  let rows = 0
  for await (const window of readWindows(path, defaults)) rows += window.length
  return rows
}

/** Yields rows by 200, which one transaction can mint. Throws `CommandError` for a file without rows. */
export async function* readWindows(path: string, defaults: RowDefaults): AsyncGenerator<ParsedRow[]> {
  let places: ReturnType<typeof parseHead> | undefined
  let window: ParsedRow[] = []
  let isEmpty = true
  for await (const row of readCsv(createReadStream(path) as AsyncIterable<Buffer>)) {
    if (places === undefined) places = parseHead(row.cells, defaults)
    else {
      isEmpty = false
      if (window.push(parseRow(places, row, defaults)) < 200) continue
      yield window
      window = []
    }
  }
  if (places === undefined) throw new CommandError('The file is empty; its first line names the columns.')
  if (isEmpty) throw new CommandError(`${path} has no row below its first line; write a row with the uid of each tag.`)
  if (window.length > 0) yield window
}

const maxRows = 1_000_000
const shownErrors = 20

export type RowError = { readonly line: number; readonly reason: string }

/** Reads all rows. Throws `CommandError` with the first wrong rows, so that nothing is done for a file that must be corrected. */
export async function readRows(path: string, defaults: RowDefaults, signal: AbortSignal): Promise<ImportRow[]> {
  await requireFile(path)
  const rows: ImportRow[] = []
  const errors: RowError[] = []
  const lineOf = new Map<string, number>()
  for await (const window of readWindows(path, defaults)) {
    assertNotInterrupted(signal)
    for (const parsed of window) {
      if (!parsed.ok) {
        errors.push(parsed)
        continue
      }
      const { row } = parsed
      const before = lineOf.get(row.uidText)
      if (before !== undefined)
        errors.push({
          line: row.line,
          reason: `Column uid: tag ${row.uidText} is in line ${before} already; remove one of the two.`,
        })
      lineOf.set(row.uidText, row.line)
      rows.push(row)
      if (rows.length > maxRows) throw new CommandError(`A file has at most ${maxRows} rows: split the file.`)
    }
  }
  assertNoErrors(path, errors)
  return rows
}

/** Throws `CommandError` that lists the first wrong rows. */
export function assertNoErrors(path: string, errors: readonly RowError[]): void {
  if (errors.length === 0) return
  const shown = errors.slice(0, shownErrors).map(({ line, reason }) => `\n  line ${line}: ${reason}`)
  const more = errors.length > shown.length ? `\n  and ${errors.length - shown.length} more` : ''
  throw new CommandError(
    `${errors.length} ${errors.length === 1 ? 'row' : 'rows'} of ${path} must be corrected; nothing was done.${shown.join('')}${more}`,
  )
}
