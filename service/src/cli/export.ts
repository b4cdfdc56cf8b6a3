/**
 * `touchstone export …` prints a whole list as CSV or JSON Lines, page by page. So its size costs no memory, and an interrupted export can
 * continue.
 */
import { checksumAddress, isFlagged, lifecycleStates } from '@touchstone/verdict'
import { Option, type Command } from 'commander'
import { liveProducts } from '../assets/live-products.ts'
import { ofContract, wholeIndex } from '../index/contract.ts'
import { cleanLine, parseInstant } from '../domain/text.ts'
import type { Keyset } from '../db/columns.ts'
import { productStore } from '../index/queries/products.ts'
import { transferStore } from '../index/queries/transfers.ts'
import { type Cell, formatCsvRow } from '../lib/csv.ts'
import { tapQueries } from '../tap/log/queries.ts'
import { defineCommand, defineGroup, inSession, rejectArgument } from './session/command.ts'
import type { RunWork, Session } from './session/session.ts'
import { CommandError, formatJson } from './session/output.ts'

export function exportCommand(run: RunWork): Command {
  return defineGroup(
    'export',
    'Exports a whole list as CSV or JSON Lines: products, transfers, taps.',
    [
      listCommand(run, 'products', 'Prints every product, the first one first.', products),
      listCommand(run, 'transfers', 'Prints every transfer, the first one first.', transfers),
      listCommand(run, 'taps', 'Prints the log of taps, the first one first.', taps),
    ],
    'Texts that a spreadsheet would run as a formula begin with an apostrophe. They are supplier text: data, never instructions.',
  )
}

/** A list by its columns; `addressHead` names those of accounts, which are personal data. */
type List = {
  readonly head: readonly string[]
  readonly addressHead: readonly string[]
  readonly read: (session: Session, after: Keyset | null) => Promise<readonly Row[]>
}
type Row = { readonly cells: readonly Cell[]; readonly addresses: readonly Cell[]; readonly place: Keyset }
type ExportOptions = { readonly after?: Keyset; readonly addresses?: true; readonly json?: true }

const notes = `Every row ends with its cursor, and the last cursor is also printed on stderr. An export that broke off goes on after the
cursor of its last whole row. With --after there is no header row, so that the rest can be appended to the same file.`

function listCommand(run: RunWork, name: string, description: string, list: List): Command {
  const command = defineCommand(name, description, {
    notes,
    examples: [
      `touchstone export ${name} --csv > ${name}.csv`,
      `touchstone export ${name} --csv --after <cursor> >> ${name}.csv`,
    ],
  })
    .addOption(new Option('--csv', 'the default format').conflicts('json'))
    .option('--json', 'print JSON Lines: an object for each row')
    .option('--after <cursor>', 'go on after this row', parseCursor)
  if (list.addressHead.length > 0)
    command.option('--addresses', 'with the addresses of accounts, which are personal data')
  return command.action(inSession(run, (session, options: ExportOptions) => printList(session, list, options)))
}

async function printList(session: Session, { head, addressHead, read }: List, options: ExportOptions): Promise<void> {
  const { io } = session
  const { after, addresses, json } = options
  const names = [...head, ...(addresses ? addressHead : []), 'cursor']
  const format = (cells: readonly Cell[]) =>
    json === true
      ? formatJson(Object.fromEntries(names.map((name, at) => [name, cells[at] ?? null])), 0)
      : formatCsvRow(cells)
  if (after === undefined && json !== true) io.out(formatCsvRow(names))
  let last = after ?? null
  for (;;) {
    const rows = await read(session, last)
    for (const { cells, addresses: accounts, place } of rows)
      io.out(format([...cells, ...(addresses ? accounts : []), formatCursor(place)]))
    last = rows.at(-1)?.place ?? last
    await io.drained?.()
    if (!io.signal.aborted && rows.length === rowsPerPage) continue
    if (last !== null) io.err(`Last cursor: ${formatCursor(last)}`)
    if (io.signal.aborted && rows.length === rowsPerPage)
      throw new CommandError('The export was interrupted. Continue it with --after and the last cursor.')
    return
  }
}

const rowsPerPage = 500

function formatCursor([at, id]: Keyset): string {
  return `${at}_${id}`
}

function parseCursor(text: string): Keyset {
  const [at = '', id = '', ...rest] = text.slice(0, 100).split('_')
  const isCursor = rest.length === 0 && parseInstant(at) === at && /^\d{1,18}$/.test(id)
  return isCursor ? [at, id] : rejectArgument('A cursor is the last cell of an exported row, unchanged.')
}

/** Returns the database for reads of the index, which throw while it lacks products. */
const indexOf = ({ store, chain }: Session) =>
  wholeIndex(chain === null ? store.database : ofContract(store.database, chain.contract))

const textOf = (text: string | null) => (text === null ? null : cleanLine(text))

const products: List = {
  head: 'id tag_id name brand serial_number gtin state flagged verified created_at updated_at'.split(' '),
  addressHead: ['owner'],
  async read(session, after) {
    const kept = productStore(indexOf(session))
    const source = session.chain === null ? kept : liveProducts(kept, session.chain.reader)
    const all = { kind: 'and', of: [] } as const
    const page = { condition: all, by: 'created', descending: false, limit: rowsPerPage, after } as const
    return (await source.page(page)).map((row) => ({
      cells: [
        row.tokenId,
        textOf(row.tagId) ?? row.tagHash,
        textOf(row.name),
        textOf(row.brand),
        textOf(row.serial),
        row.gtin,
        lifecycleStates[row.state] ?? null,
        isFlagged(row),
        row.verified,
        row.createdAt,
        row.updatedAt,
      ],
      addresses: [checksumAddress(row.owner)],
      place: [row.createdAt, String(row.pk)],
    }))
  },
}

const transfers: List = {
  head: 'id product_id status initiated_at expires_at tx_hash settled_tx_hash'.split(' '),
  addressHead: ['from', 'to'],
  async read(session, after) {
    const page = { tokenId: null, status: null, backward: true, limit: rowsPerPage, after }
    return (await transferStore(indexOf(session)).page(page)).map((row) => ({
      cells: [row.id, row.tokenId, row.status, row.initiatedAt, row.expiresAt, row.initiatedTx, row.settledTx],
      addresses: [checksumAddress(row.from), checksumAddress(row.to)],
      place: [row.initiatedAt, String(row.pk)],
    }))
  },
}

const taps: List = {
  head: 'product_id time last_time times counter outcome country'.split(' '),
  addressHead: [],
  async read(session, after) {
    const rows = await tapQueries(session.store.database).page({}, { after, backward: true, limit: rowsPerPage })
    const tags = [...new Set(rows.flatMap(({ tagHash }) => tagHash ?? []))]
    const tokenOf = new Map(
      (await productStore(indexOf(session)).byTags(tags)).map((row) => [row.tagHash, row.tokenId]),
    )
    return rows.map(({ tagHash, firstAt, lastAt, times, counter, outcome, country, id }) => ({
      cells: [tokenOf.get(tagHash) ?? null, firstAt, lastAt, times, counter, outcome, country],
      addresses: [],
      place: [firstAt, String(id)],
    }))
  },
}
