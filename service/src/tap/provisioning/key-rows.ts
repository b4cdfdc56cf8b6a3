/**
 * Key rows: the data of one tag for a personalisation station (spec §4.4). Its tools read these formats. A row has keys, file content,
 * offsets and settings. A row with revealed keys belongs into a private file (`writePrivateFile`) only.
 */
import { setImmediate } from 'node:timers/promises'
import { hexToBytes } from '@noble/hashes/utils.js'
import { formatCsvRow } from '../../lib/csv.ts'
import { type AesKeyRef, embeddedKey } from '../sun/aes.ts'
import { an10922, boltcardKeys, diversificationInput } from '../keys/derivations.ts'
import { chipKeys, type BatchKeyRecord } from '../keys/batch.ts'
import { toHex } from '../bytes.ts'
import { plainCommands, updateBinary } from './personalise.ts'
import type { TagTemplate } from './template.ts'

export const keyRowFormats = ['json', 'csv', 'gototags', 'apdu'] as const
export type KeyRowFormat = (typeof keyRowFormats)[number]

/** All bytes are upper-case hex. `keys` are slots 0 to 4, or `null` when they are not revealed. */
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
  batch: BatchKeyRecord
  uid: Uint8Array
  template: TagTemplate
  masters?: Masters
  reveal?: boolean
}>

/** `app` derives keys 0, 3 and 4 (not for `boltcard`); `file` is a file master that is in a token. */
export type Masters = Readonly<{ app?: AesKeyRef | undefined; file?: AesKeyRef | undefined }>

/** Rows between two turns of the event loop, because a service may make them. */
const rowsPerTurn = 100

/** Makes the rows of many tags. Throws as `keyRow` does. */
export async function keyRows(tags: readonly KeyRowOptions[], onTurn = () => {}): Promise<KeyRow[]> {
  const rows: KeyRow[] = []
  for (const tag of tags) {
    if (rows.length % rowsPerTurn === 0) {
      await setImmediate()
      onTurn()
    }
    rows.push(await keyRow(tag))
  }
  return rows
}

/** Makes the row of one tag. Throws a `RangeError` when keys are to be revealed and the application master is missing. */
export async function keyRow({ batch, uid, template, masters, reveal = false }: KeyRowOptions): Promise<KeyRow> {
  const keys = reveal ? (await deriveTagKeys(batch, uid, masters)).map(toHex) : null
  const { url, piccOffset, macInputOffset, macOffset } = template
  return {
    uid: toHex(uid),
    batchId: batch.id,
    epoch: batch.epoch,
    keyVersion: batch.epoch % 256,
    keys,
    url,
    ndef: toHex(template.ndef),
    piccOffset,
    macInputOffset,
    macOffset,
    settings: toHex(template.settings),
  }
}

/** Derives the five keys of a tag by slot. Slots 0, 3 and 4 come from the application master, diversified with the slot number. */
export async function deriveTagKeys(
  batch: BatchKeyRecord,
  uid: Uint8Array,
  { app, file }: Masters = {},
): Promise<Uint8Array[]> {
  if (batch.derivation === 'boltcard' && batch.fileMaster !== null)
    return (await boltcardKeys(embeddedKey(batch.fileMaster), uid, batch.derivationVersion ?? 0)).slots
  if (app === undefined) throw new RangeError(`The application master of batch ${batch.id} is needed.`)
  const appKey = async (keyNo: number) => an10922(app, diversificationInput(uid, keyNo, batch.systemId))
  const { metaKey, fileKey } = await chipKeys(batch, uid, file)
  return [await appKey(0), metaKey, fileKey, await appKey(3), await appKey(4)]
}

/** Formats rows as a JSON array, comma-separated lines under a header, or one block of commands per tag. */
export function renderKeyRows(rows: readonly KeyRow[], format: KeyRowFormat): string {
  return renderers[format](rows)
}

const renderers: Readonly<Record<KeyRowFormat, (rows: readonly KeyRow[]) => string>> = {
  json: (rows) => `${JSON.stringify(rows, null, 2)}\n`,
  csv: (rows) => table(plainColumns, rows),
  // A GoToTags operation reads the columns as variables; settings are split into its form fields.
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
  const lines = [columns.map(([name]) => name), ...rows.map((row) => columns.map(([, cell]) => cell(row)))]
  return lines.map((cells) => `${formatCsvRow(cells)}\n`).join('')
}

/** Lists the plain commands, and the data of the protected ones, which only the station's session can encrypt. */
function commandBlock(row: KeyRow): string {
  const lines = [
    `# tag ${row.uid}, batch ${row.batchId}, epoch ${row.epoch}`,
    `send ${toHex(plainCommands.selectApplication)}`,
    // A blank chip is free to write; selecting a file ends a session.
    `send ${toHex(plainCommands.selectAddressFile)}`,
    ...updateBinary(hexToBytes(row.ndef)).map((command) => `send ${toHex(command)}`),
    `send ${toHex(plainCommands.selectApplication)}`,
    'authenticate 0',
    `change-file-settings 02 ${row.settings}`,
    // Key 0 last: the chip ends the session with it.
    ...[1, 2, 3, 4, 0].map(
      (slot) => `change-key ${slot} version ${row.keyVersion} ${row.keys?.[slot] ?? '(not revealed)'}`,
    ),
  ]
  return `${lines.join('\n')}\n`
}
