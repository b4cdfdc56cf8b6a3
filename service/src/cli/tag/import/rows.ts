/** Parsing of the rows of `touchstone tag import`: every check that needs neither store nor chain. */
import { parseTokenId } from '@touchstone/verdict'
import { isRegistrableSerial } from '../../../domain/serial.ts'
import { canonicalMetadata, metadataKeys, type Canonical } from '../../../assets/metadata.ts'
import { toHex } from '../../../tap/bytes.ts'
import type { CsvRow } from '../../output/csv.ts'
import {
  batchIdPattern,
  gtinSentence,
  parseAnyGtin,
  parseUid,
  serialSentence,
  uidSentence,
} from '../../session/arguments.ts'
import { CommandError } from '../../session/session.ts'

export type ImportRow = Readonly<{
  line: number
  uid: Uint8Array
  /** The UID as 14 upper-case hex digits. */
  uidText: string
  batchId: string
  /** Undefined means the batch's. */
  epoch: number | undefined
  tokenId: bigint | undefined
  item: { readonly gtin: string; readonly serial: string } | undefined
  /** The counter that was read when the tag was made. It and all below are used up. */
  counter: number | undefined
  metadata: Extract<Canonical, { ok: true }> | undefined
}>

/** `uid` is for the report, empty when it is not a UID. */
export type ParsedRow =
  | { readonly ok: true; readonly row: ImportRow }
  | { readonly ok: false; readonly line: number; readonly uid: string; readonly reason: string }

export const importColumns = ['uid', 'batch', 'epoch', 'tokenId', 'gtin', 'serial', 'counter', ...metadataKeys] as const
type Column = (typeof importColumns)[number]

/** Parses the header to the place of each column. Throws one sentence for an unknown or repeated column, or without uid or batch. */
export function parseHead(head: readonly string[]): ReadonlyMap<Column, number> {
  const places = new Map<Column, number>()
  for (const [place, cell] of head.entries()) {
    const name = cell.trim().toLowerCase().replace('token_id', 'tokenid')
    const column = importColumns.find((known) => known.toLowerCase() === name)
    if (column === undefined)
      throw new CommandError(
        `The first line names a column "${cell.slice(0, 40)}"; columns are ${importColumns.join(', ')}.`,
      )
    if (places.has(column)) throw new CommandError(`The first line names the column ${column} twice.`)
    places.set(column, place)
  }
  for (const column of ['uid', 'batch'] as const)
    if (!places.has(column)) throw new CommandError(`The first line must name the column ${column}.`)
  return places
}

/** Parses one row. One wrong cell rejects the whole row. */
export function parseRow(places: ReadonlyMap<Column, number>, { line, cells }: CsvRow): ParsedRow {
  const cell = (column: Column) => (cells[places.get(column) ?? -1] ?? '').trim()
  const uid = parseUid(cell('uid'))
  const refused = (reason: string): ParsedRow => ({ ok: false, line, uid: uid === null ? '' : toHex(uid), reason })
  if (cells.length > places.size) return refused(`There are ${cells.length} cells under ${places.size} columns.`)
  if (uid === null) return refused(`${uidSentence} A spreadsheet may have made a number of it.`)
  const found = parseValues(cell)
  if (typeof found === 'string') return refused(found)
  return { ok: true, row: { line, uid, uidText: toHex(uid), ...found } }
}

function parseValues(cell: (column: Column) => string): Omit<ImportRow, 'line' | 'uid' | 'uidText'> | string {
  const batchId = cell('batch')
  if (!batchIdPattern.test(batchId)) return 'The batch is not an id (1 to 64 of A-Z a-z 0-9 . _ and -).'
  const epoch = parseWhole(cell('epoch'), 0x7fffffff)
  if (epoch === null) return 'The epoch is not a whole number.'
  const counter = parseWhole(cell('counter'), 0xffffff)
  if (counter === null) return 'The counter is not a whole number up to 16777215.'
  const tokenId = cell('tokenId') === '' ? undefined : parseTokenId(cell('tokenId'))
  if (tokenId === null || tokenId === 0n) return 'The tokenId is not a decimal number from 1.'
  const item = parseItem(cell('gtin'), cell('serial'))
  if (typeof item === 'string') return item
  const fields = metadataKeys.map((key) => [key, cell(key)]).filter(([, text]) => text !== '')
  const metadata = fields.length === 0 ? undefined : canonicalMetadata(Object.fromEntries(fields))
  if (metadata?.ok === false) return metadata.message
  return { batchId, epoch, counter, tokenId, item, metadata }
}

function parseWhole(text: string, to: number): number | undefined | null {
  if (text === '') return undefined
  return /^\d{1,10}$/.test(text) && Number(text) <= to ? Number(text) : null
}

function parseItem(gtinText: string, serial: string): ImportRow['item'] | string {
  if (gtinText === '' && serial === '') return undefined
  const gtin = parseAnyGtin(gtinText)
  if (gtin === null) return gtinText === '' ? 'A serial needs a gtin.' : gtinSentence
  if (serial === '') return 'A gtin needs a serial.'
  return isRegistrableSerial(serial) ? { gtin, serial } : serialSentence
}
