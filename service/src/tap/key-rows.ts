/**
 * What a personalisation station needs for one tag (spec §4.4): keys, file content, offsets and settings, in the forms its tools read.
 * Keys stand in a row only when asked for; such a row belongs into a private file (`writePrivateFile`) and nowhere else.
 */
import { createAesKey, embeddedKey } from './aes.ts'
import { an10922, diversificationInput } from './an10922.ts'
import type { BatchRecord } from './batch.ts'
import { hexOf } from './bytes.ts'
import { boltcardKeys, fileKeyOf, metaKeyOf } from './derivations.ts'
import { plainCommands, updateBinary } from './personalise.ts'
import type { TagTemplate } from './template.ts'

export const keyRowFormats = ['json', 'csv', 'gototags', 'apdu'] as const
export type KeyRowFormat = (typeof keyRowFormats)[number]

/** All bytes as upper-case hex. `keys` are slots 0 to 4, or `null` when they were not to be revealed. */
export type KeyRow = Readonly<{
  uid: string
  batchId: string
  epoch: number
  /** Version byte of every key on the chip: the epoch modulo 256. */
  keyVersion: number
  keys: readonly string[] | null
  url: string
  ndef: string
  piccOffset: number
  macInputOffset: number
  macOffset: number
  settings: string
}>

export type KeyRowOptions = Readonly<{
  batch: BatchRecord
  uid: Uint8Array
  template: TagTemplate
  /** The batch's application master; needed to reveal keys 0, 3 and 4 (not for `boltcard`). */
  appMaster?: Uint8Array
  reveal?: boolean
}>

/** The row of one tag. Throws a `RangeError` when keys are to be revealed and the application master is missing. */
export async function keyRow({ batch, uid, template, appMaster, reveal = false }: KeyRowOptions): Promise<KeyRow> {
  const keys = reveal ? (await tagKeys(batch, uid, appMaster)).map(hexOf) : null
  const { url, piccOffset, macInputOffset, macOffset } = template
  return {
    uid: hexOf(uid),
    batchId: batch.id,
    epoch: batch.epoch,
    keyVersion: batch.epoch % 256,
    keys,
    url,
    ndef: hexOf(template.ndef),
    piccOffset,
    macInputOffset,
    macOffset,
    settings: hexOf(template.settings),
  }
}

/** The five keys of a tag, by slot. Slots 0, 3 and 4 come from the application master, each diversified with its own number. */
export async function tagKeys(batch: BatchRecord, uid: Uint8Array, appMaster?: Uint8Array): Promise<Uint8Array[]> {
  const fileMaster = embeddedKey(batch.fileMaster)
  if (batch.derivation === 'boltcard') {
    return (await boltcardKeys(fileMaster, uid, batch.derivationVersion ?? 0)).slots
  }
  if (appMaster === undefined) throw new RangeError(`The application master of batch ${batch.id} is needed.`)
  const app = createAesKey(appMaster)
  const appKey = async (keyNo: number) => an10922(app, diversificationInput(uid, keyNo, batch.systemId))
  const meta = batch.metaKey ?? (await metaKeyOf(batch.derivation, batch.fileMaster))
  if (meta === null) throw new RangeError(`The batch ${batch.id} has no metaRead key.`)
  const fileKey = (await fileKeyOf({ ...batch, fileMaster }, uid)) ?? batch.fileMaster
  return [await appKey(0), meta, fileKey, await appKey(3), await appKey(4)]
}

/** Rows as text: a JSON array, comma-separated lines under a head, or one block of commands per tag. */
export function renderKeyRows(rows: readonly KeyRow[], format: KeyRowFormat): string {
  return renderers[format](rows)
}

const renderers: Readonly<Record<KeyRowFormat, (rows: readonly KeyRow[]) => string>> = {
  json: (rows) => `${JSON.stringify(rows, null, 2)}\n`,
  csv: (rows) => table(plainColumns, rows),
  // A table whose columns a GoToTags operation takes over as variables; settings are split into its form fields.
  gototags: (rows) => table(gototagsColumns, rows),
  apdu: (rows) => rows.map(commandBlock).join('\n'),
}

type Columns = readonly (readonly [string, (row: KeyRow) => string | number])[]

const keyColumn = (slot: number) => (row: KeyRow) => row.keys?.[slot] ?? ''

const plainColumns: Columns = [
  ['uid', (row) => row.uid],
  ['batch', (row) => row.batchId],
  ['epoch', (row) => row.epoch],
  ['key_version', (row) => row.keyVersion],
  ...[0, 1, 2, 3, 4].map((slot) => [`key${slot}`, keyColumn(slot)] as const),
  ['url', (row) => row.url],
  ['ndef', (row) => row.ndef],
  ['picc_offset', (row) => row.piccOffset],
  ['mac_input_offset', (row) => row.macInputOffset],
  ['mac_offset', (row) => row.macOffset],
  ['settings', (row) => row.settings],
]

const gototagsColumns: Columns = [
  ['UID', (row) => row.uid],
  ['URL', (row) => row.url],
  ...[0, 1, 2, 3, 4].map((slot) => [`Key ${slot}`, keyColumn(slot)] as const),
  ['Key Version', (row) => row.keyVersion],
  ['SDM Meta Read Key', () => 1],
  ['SDM File Read Key', () => 2],
  ['PICC Data Offset', (row) => row.piccOffset],
  ['SDM MAC Input Offset', (row) => row.macInputOffset],
  ['SDM MAC Offset', (row) => row.macOffset],
]

function table(columns: Columns, rows: readonly KeyRow[]): string {
  const lines = [columns.map(([name]) => name), ...rows.map((row) => columns.map(([, cell]) => String(cell(row))))]
  return lines.map((cells) => `${cells.map(quoted).join(',')}\n`).join('')
}

/** RFC 4180; a leading sign that a spreadsheet would run as a formula cannot occur: all cells are ours. */
function quoted(cell: string): string {
  return /[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell
}

/** Commands as they are, and data of the protected ones, which only the station's session can encrypt. */
function commandBlock(row: KeyRow): string {
  const lines = [
    `# tag ${row.uid}, batch ${row.batchId}, epoch ${row.epoch}`,
    `send ${hexOf(plainCommands.selectApplication)}`,
    // A blank chip lets anyone write; selecting a file would end a session.
    `send ${hexOf(plainCommands.selectAddressFile)}`,
    ...updateBinary(Uint8Array.from(Buffer.from(row.ndef, 'hex'))).map((command) => `send ${hexOf(command)}`),
    `send ${hexOf(plainCommands.selectApplication)}`,
    'authenticate 0',
    `change-file-settings 02 ${row.settings}`,
    // Key 0 last: the chip ends the session with it.
    ...[1, 2, 3, 4, 0].map(
      (slot) => `change-key ${slot} version ${row.keyVersion} ${row.keys?.[slot] ?? '(not revealed)'}`,
    ),
  ]
  return `${lines.join('\n')}\n`
}
