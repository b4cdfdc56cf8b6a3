/**
 * `touchstone tag prepare` makes the data of every chip from one CSV file (spec §4.4). That is its own Digital Link, NDEF, offsets,
 * settings and, with --reveal, keys. `tag write --from` and `tag import` read the same file.
 */
import { resolve } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { Option, type Command } from 'commander'
import type { BatchKeyRecord } from '../../tap/keys/batch.ts'
import {
  type Masters,
  keyRowFormats,
  keyRows,
  renderKeyRows,
  type KeyRowFormat,
} from '../../tap/provisioning/key-rows.ts'
import type { TagTemplate } from '../../tap/provisioning/template.ts'
import { argument, defineCommand, inSession } from '../session/command.ts'
import type { RunWork, Session } from '../session/session.ts'
import { writeNew } from '../session/files.ts'
import { assertNotInterrupted, CommandError, formatJson } from '../session/output.ts'
import { assertNoErrors, readRows, type RowError } from './import/file.ts'
import { type ImportRow, inColumn } from './import/rows.ts'
import { getBatch, getMasters } from './keys.ts'
import { addressOfItem, type AddressOptions, layOut, requiredAddress } from './template.ts'

type RowAddress = Pick<AddressOptions, 'url' | 'host'>
type Options = RowAddress & {
  readonly batch?: string
  readonly format: KeyRowFormat
  readonly reveal?: true
  readonly out?: string
  readonly json?: true
}

export function prepareCommand(run: RunWork): Command {
  const description =
    'Makes the data of every chip from a CSV file: its own link, NDEF, offsets, settings and, with --reveal, keys.'
  const command = defineCommand('prepare', description, {
    notes: `The first line names the columns: uid, and as many as you like of batch, gtin, serial, name and those of tag import. A row
with gtin and serial gets its Digital Link, any other /tap; in --url {gtin} and {serial} stand for those of the row. All rows are
checked first, and nothing is written while one is wrong. The result goes to <file>.prepared.<format>, readable by its owner only. Give
the same file to tag write --from, and to tag import when the chips are made.`,
    examples: [
      'touchstone tag prepare tags.csv --batch 2026-watches --host verify.example.com',
      'touchstone tag prepare tags.csv --batch 2026-watches --host verify.example.com --format gototags --reveal',
    ],
  })
  const url = new Option(
    '--url <address>',
    'URL with {picc} and {cmac}, and {gtin}, {serial}, {batch} of the row, in quotes',
  )
  return command
    .addOption(url.conflicts('host'))
    .option('--host <name>', 'host of the links: https://<name>/01/<gtin>/21/<serial>?…')
    .argument('<file>', 'CSV file, its first line names the columns')
    .option('--batch <id>', 'batch of the rows that name none', argument.batchId)
    .addOption(new Option('--format <format>', 'format of the result').choices(keyRowFormats).default('csv'))
    .option('--reveal', 'include the keys: remove the result when the tags are made')
    .option('--out <file>', 'new file for the result (mode 0600)')
    .option('--json', 'print a JSON object')
    .action(inSession(run, prepare))
}

async function prepare(session: Session, file: string, options: Options): Promise<void> {
  const { io } = session
  const { reveal = false, format, json } = options
  const path = resolve(io.cwd, file)
  const chips = await prepareChips(session, path, options)
  const masters = await mastersOf(session, reveal ? chips : [])
  const tags = chips.map(({ row, batch, template }) => {
    return { batch, uid: row.uid, template, reveal, masters: masters.get(batch.id) ?? {} }
  })
  const rows = await keyRows(tags, () => assertNotInterrupted(io.signal))
  const out = resolve(io.cwd, options.out ?? `${path}.prepared.${extensions[format]}`)
  await writeNew(out, renderKeyRows(rows, format))
  if (json === true) return io.out(formatJson({ rows: rows.length, keys: reveal, out }))
  const keys = reveal ? ', keys included: remove it when the tags are made' : ', without keys'
  io.out(`${rows.length} ${rows.length === 1 ? 'chip' : 'chips'} prepared in ${out}${keys}.`)
}

/** Rows between two turns of the event loop, because the command may run in the service. */
const rowsPerTurn = 100

const extensions: Readonly<Record<KeyRowFormat, string>> = {
  json: 'json',
  csv: 'csv',
  gototags: 'gototags.csv',
  apdu: 'apdu.txt',
}

type PreparedChip = { readonly row: ImportRow; readonly batch: BatchKeyRecord; readonly template: TagTemplate }

/** Reads a file and lays out each chip. Throws `CommandError` with the wrong rows, and for a batch whose keys are elsewhere. */
export async function prepareChips(
  { store, io }: Session,
  path: string,
  options: RowAddress & { readonly batch?: string | undefined },
): Promise<PreparedChip[]> {
  requiredAddress(options)
  const chips: PreparedChip[] = []
  const errors: RowError[] = []
  for (const [index, row] of (await readRows(path, { batch: options.batch }, io.signal)).entries()) {
    if (index % rowsPerTurn === 0) {
      await setImmediate()
      assertNotInterrupted(io.signal)
    }
    const batch = await getBatch(store, row.batchId, row.epoch)
    const address = addressOfItem(options, row.item)
    const fail = (reason: string) => errors.push({ line: row.line, reason })
    if (address === null) fail(inColumn('gtin', 'It is empty, and --url has {gtin} or {serial}; fill both columns.'))
    else
      try {
        chips.push({ row, batch, template: layOut(address, batch) })
      } catch (error) {
        if (!(error instanceof CommandError)) throw error
        fail(inColumn('serial', error.message))
      }
  }
  assertNoErrors(path, errors)
  return chips
}

async function mastersOf(
  { store }: Pick<Session, 'store'>,
  chips: readonly PreparedChip[],
): Promise<ReadonlyMap<string, Masters>> {
  const masters = new Map<string, Masters>()
  for (const batch of new Map(chips.map((chip) => [chip.batch.id, chip.batch])).values()) {
    masters.set(batch.id, await getMasters(store, batch))
  }
  return masters
}
