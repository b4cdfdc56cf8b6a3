/** Parsing of the rows of `touchstone tag import`: every check that needs neither store nor chain. */
import { parseTokenId } from '@touchstone/verdict'
import type { Components } from '../../../app/components.ts'
import { type Canonical, canonicalMetadata, metadataKeys } from '../../../assets/metadata.ts'
import type { CsvRow } from './csv.ts'
import { gtinSentence, parseAnyGtin, parseUid, serialSentence, uidSentence } from '../../session/command.ts'
import type { Session } from '../../session/session.ts'
import { CommandError } from '../../session/output.ts'
import { readBindings } from '../commitments.ts'
import { isRegistrableSerial, type ItemKey } from '../../../domain/gs1/serial.ts'
import { toHex } from '../../../tap/bytes.ts'
import { batchIdPattern } from '../../../tap/keys/batch.ts'
import {
  type ImportOutcome,
  type RegisteredBatch,
  type RegisteredTag,
  registrationRefusal,
} from '../../../tap/tag-registry.ts'

export type ImportRow = Readonly<{
  line: number
  uid: Uint8Array
  /** The UID as 14 upper-case hex digits. */
  uidText: string
  batchId: string
  /** Undefined means the batch's. */
  epoch: number | undefined
  tokenId: bigint | undefined
  item: ItemKey | undefined
  /** The counter that was read when the tag was made. It and all below are used up. */
  counter: number | undefined
  metadata: Extract<Canonical, { ok: true }> | undefined
}>

/** `uid` is for the report, empty when it is not a UID. */
export type ParsedRow =
  | { readonly ok: true; readonly row: ImportRow }
  | { readonly ok: false; readonly line: number; readonly uid: string; readonly reason: string }

export const importColumns = ['uid', 'batch', 'epoch', 'tokenId', 'gtin', 'serial', 'counter', ...metadataKeys] as const
export type Column = (typeof importColumns)[number]

/** `batch` is that of rows without one. */
export type RowDefaults = { readonly batch?: string | undefined }

/** Parses the header to the place of each column. Throws one sentence for an unknown or repeated column, or without uid or batch. */
export function parseHead(head: readonly string[], defaults: RowDefaults = {}): ReadonlyMap<Column, number> {
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
  if (!places.has('uid')) throw new CommandError('The first line must name the column uid.')
  if (!places.has('batch') && defaults.batch === undefined)
    throw new CommandError('The first line must name the column batch, or give --batch for all rows.')
  return places
}

/** Parses one row. One wrong cell rejects the whole row. */
export function parseRow(
  places: ReadonlyMap<Column, number>,
  { line, cells, separator }: CsvRow,
  defaults: RowDefaults = {},
): ParsedRow {
  const cell = (column: Column) => {
    const text = (cells[places.get(column) ?? -1] ?? '').trim()
    return text === '' && column === 'batch' ? (defaults.batch ?? '') : text
  }
  const uid = parseUid(cell('uid'))
  const refused = (reason: string): ParsedRow => ({ ok: false, line, uid: uid === null ? '' : toHex(uid), reason })
  if (cells.length > places.size)
    return refused(
      `There are ${cells.length} cells under ${places.size} columns: quote a cell that holds a ${separator}.`,
    )
  if (uid === null)
    return refused(
      inColumn('uid', `${uidSentence} Format the column as text: a spreadsheet may have made a number of it.`),
    )
  const found = parseValues(cell)
  if (typeof found === 'string') return refused(found)
  return { ok: true, row: { line, uid, uidText: toHex(uid), ...found } }
}

function parseValues(cell: (column: Column) => string): Omit<ImportRow, 'line' | 'uid' | 'uidText'> | string {
  const batchId = cell('batch')
  if (!batchIdPattern.test(batchId)) return inColumn('batch', 'A batch id has 1 to 64 of A-Z a-z 0-9 . _ and -.')
  const epoch = parseWhole(cell('epoch'), 0x7fffffff)
  if (epoch === null) return inColumn('epoch', 'An epoch is a whole number; leave it empty for that of the batch.')
  const counter = parseWhole(cell('counter'), 0xffffff)
  if (counter === null)
    return inColumn('counter', 'A counter is a whole number up to 16777215; leave it empty for none.')
  const tokenId = cell('tokenId') === '' ? undefined : parseTokenId(cell('tokenId'))
  if (tokenId === null || tokenId === 0n)
    return inColumn('tokenId', 'A token id is a decimal number from 1; leave it empty to mint one.')
  const item = parseItem(cell('gtin'), cell('serial'))
  if (typeof item === 'string') return item
  const fields = metadataKeys.map((key) => [key, cell(key)] as const).filter(([, text]) => text !== '')
  const metadata = fields.length === 0 ? undefined : canonicalMetadata(Object.fromEntries(fields))
  if (metadata?.ok === false) return inColumn(wrongField(fields) ?? 'name', metadata.message)
  return { batchId, epoch, counter, tokenId, item, metadata }
}

/** Returns the first field that is wrong alone; undefined when only the whole is too long. */
function wrongField(fields: readonly (readonly [Column, string])[]): Column | undefined {
  return fields.find(([key, text]) => !canonicalMetadata({ [key]: text }).ok)?.[0]
}

export function inColumn(column: Column, sentence: string): string {
  return `Column ${column}: ${sentence}`
}

function parseWhole(text: string, to: number): number | undefined | null {
  if (text === '') return undefined
  return /^\d{1,10}$/.test(text) && Number(text) <= to ? Number(text) : null
}

function parseItem(gtinText: string, serial: string): ImportRow['item'] | string {
  if (gtinText === '' && serial === '') return undefined
  const gtin = parseAnyGtin(gtinText)
  if (gtin === null)
    return inColumn('gtin', gtinText === '' ? 'A serial needs a gtin; fill both or none.' : gtinSentence)
  if (serial === '') return inColumn('serial', 'A gtin needs a serial; fill both or none.')
  return isRegistrableSerial(serial) ? { gtin, serial } : inColumn('serial', serialSentence)
}

export type ImportChain = Pick<
  Components,
  'reader' | 'writer' | 'operations' | 'source' | 'contract' | 'formerTagHash' | 'formerBinding'
> & {
  readonly tagHash: NonNullable<Components['tagHash']>
}

/** `unchanged` was done before, `ready` is a dry run's; after `pending` and `failed` the import must run again. */
export type RowOutcome = 'done' | 'unchanged' | 'ready' | 'refused' | 'pending' | 'failed'
export type Stop = { readonly outcome: RowOutcome; readonly detail: string }
/** `name` is UID and epoch of a chip. `tokenId` is undefined while none is known. */
export type Plan = Readonly<{
  row: ImportRow
  epoch: number
  name: string
  known: RegisteredTag | undefined
  tokenId: bigint | undefined
}>

export const isStop = (plan: Plan | Stop): plan is Stop => 'outcome' in plan
export const refused = (detail: string): Stop => ({ outcome: 'refused', detail })
export const notMined: Stop = { outcome: 'pending', detail: 'The transaction is not mined yet; run the import again.' }

export const revokedBatch = (id: string): Stop =>
  refused(inColumn('batch', `Batch ${id} is revoked; its tags need another batch.`))

type Tags = Pick<Session['store']['tags'], 'tagsOfUids' | 'tagsOfItems' | 'tagsOfTokens'>

/** The registered tags that a row concerns: that of its chip, of its item and of its asset. */
type Registered = Readonly<Record<'known' | 'onItem' | 'onToken', RegisteredTag | undefined>>

/**
 * Creates the planner. It plans rows in order, by the batches and tags of that moment, and refuses a tag, asset or item that was in the
 * file before.
 */
export function createPlanner(tags: Tags) {
  const seen = new Set<string>()

  function findRepeated({ uidText, tokenId, item }: ImportRow): string | null {
    const names: readonly (readonly [Column, string])[] = [
      ['uid', `tag ${uidText}`],
      ...(tokenId === undefined ? [] : [['tokenId', `asset ${tokenId}`] as const]),
      ...(item === undefined ? [] : [['serial', `item ${item.gtin} ${item.serial}`] as const]),
    ]
    const repeated = names.find(([, name]) => seen.has(name))
    if (repeated !== undefined)
      return inColumn(repeated[0], `${repeated[1]} is in the file before; remove one of the two.`)
    for (const [, name] of names) seen.add(name)
    return null
  }

  /** Reads the tags of all rows at once. A statement for each row would take most of the time of an import. */
  async function readRegistered(rows: readonly ImportRow[]): Promise<ReadonlyMap<ImportRow, Registered>> {
    const known = await tags.tagsOfUids(rows.map(({ uid }) => uid))
    const onItems = await tags.tagsOfItems(rows.map(({ item }) => item))
    const onTokens = await tags.tagsOfTokens(rows.map((row, at) => tokenOf(row, known[at])))
    return new Map(rows.map((row, at) => [row, { known: known[at], onItem: onItems[at], onToken: onTokens[at] }]))
  }

  function planRow(
    row: ImportRow,
    { known, onItem, onToken }: Registered,
    batches: ReadonlyMap<string, RegisteredBatch>,
  ): Plan | Stop {
    const { uid, uidText, batchId } = row
    const batch = batches.get(batchId)
    if (batch === undefined)
      return refused(inColumn('batch', `There is no batch named ${batchId}; touchstone tag batch list names all.`))
    if (batch.status === 'revoked') return revokedBatch(batchId)
    const epoch = row.epoch ?? batch.epoch
    if (epoch !== batch.epoch)
      return refused(inColumn('epoch', `Batch ${batchId} has epoch ${batch.epoch}; leave the cell empty for it.`))
    const repeated = findRepeated(row)
    if (repeated !== null) return refused(repeated)
    const refusal = registrationRefusal(known, { epoch, batchId })
    if (refusal !== null) return refused(refusals[refusal])
    if (onItem !== undefined && !sameUid(onItem.uid, uid)) return refused(refusals.item_taken)
    const tokenId = tokenOf(row, known)
    if (known !== undefined && known.tokenId !== null && known.tokenId !== tokenId)
      return refused(
        inColumn('tokenId', `This tag is registered with asset ${known.tokenId}; leave the cell empty for it.`),
      )
    if (onToken !== undefined && !sameUid(onToken.uid, uid)) return refused(refusals.token_taken)
    return { row, epoch, name: `${uidText}-${epoch}`, known, tokenId }
  }

  return async function plan(
    read: readonly ParsedRow[],
    batches: ReadonlyMap<string, RegisteredBatch>,
  ): Promise<(Plan | Stop)[]> {
    const registered = await readRegistered(read.flatMap((one) => (one.ok ? [one.row] : [])))
    return read.map((one) =>
      one.ok ? planRow(one.row, registered.get(one.row) as Registered, batches) : refused(one.reason),
    )
  }
}

/** Returns the asset that a row names, or else that of its registered tag. */
function tokenOf({ tokenId }: ImportRow, known: RegisteredTag | undefined): bigint | undefined {
  return tokenId ?? known?.tokenId ?? undefined
}

/**
 * Reads the tokens that the chain has bound to these tags, by UID. A tag stays bound when the store was lost, and must not get a second
 * token; its former commitment counts too. Throws CHAIN_UNAVAILABLE.
 */
export async function boundTokens(
  chain: ImportChain,
  plans: readonly Plan[],
  onRead: () => void,
): Promise<ReadonlyMap<string, bigint>> {
  const uids = plans.map(({ row }) => row.uid)
  const bindings = await readBindings(chain, uids, onRead)
  return new Map(
    plans.flatMap(({ row }, index) => {
      const { tokenId = null, formerTokenId = null } = bindings[index] ?? {}
      const bound = tokenId ?? formerTokenId
      return bound === null ? [] : [[row.uidText, bound] as const]
    }),
  )
}

export const refusals: Readonly<Record<Extract<ImportOutcome, { outcome: 'refused' }>['because'], string>> = {
  newer_epoch: inColumn('batch', 'This chip is registered under a higher epoch; name the batch of that.'),
  other_batch: inColumn('batch', 'This tag is registered in another batch of the same epoch; name that one.'),
  token_taken: inColumn(
    'tokenId',
    'Another tag is registered with this asset; leave the cell empty to mint a new one.',
  ),
  item_taken: inColumn('serial', 'Another tag is registered with this gtin and serial; each item has its own serial.'),
  not_legal: inColumn('serial', 'The gtin and serial cannot be registered; check the digits and the signs of both.'),
}

function sameUid(left: Uint8Array, right: Uint8Array): boolean {
  return Buffer.compare(left, right) === 0
}
