/** `touchstone tag keys`: what a personalisation station needs for each tag (spec §4.4). Keys leave the store only when asked for, into a private file. */
import { open } from 'node:fs/promises'
import { resolve } from 'node:path'
import { Command, Option } from 'commander'
import type { BatchRecord } from '../tap/batch.ts'
import { keyRow, keyRowFormats, renderKeyRows, type KeyRow, type KeyRowFormat } from '../tap/key-rows.ts'
import { addAddressOptions, addressOfOptions, templateOf, type AddressOptions } from './tag-address.ts'
import { argument } from './store-arguments.ts'
import { CommandError, type RunWork, type Session } from './store-command.ts'

type Options = AddressOptions & {
  readonly batch: string
  readonly uid: readonly Uint8Array[]
  readonly epoch?: number
  readonly format: KeyRowFormat
  readonly reveal?: true
  readonly out?: string
}

export function keysCommand(run: RunWork): Command {
  return addAddressOptions(new Command('keys'))
    .description(
      'Prints what each tag of a batch must hold: NDEF, offsets, settings and, with --reveal, its five keys.',
    )
    .requiredOption('--batch <id>', 'batch of the tags', argument.batchId)
    .requiredOption('--uid <uids>', 'UID of a tag, or several separated by commas', argument.uids)
    .option('--epoch <n>', 'refuse when the batch has another epoch', argument.epoch)
    .addOption(new Option('--format <format>', 'form of the rows').choices(keyRowFormats).default('json'))
    .option('--reveal', 'with the keys, which needs --out')
    .option('--out <file>', 'new file for the rows (mode 0600)')
    .addHelpText(
      'after',
      `
json and csv are for your own tools, gototags is a table for a GoToTags operation, apdu is the order of commands.
Whoever has the keys of a tag can copy it: --reveal writes them to a new file that only you can read. Remove it when the tags are made.

Examples:
  touchstone tag keys --batch 2026-watches --uid 04DE5F1EACC040 --host verify.example.com
  touchstone tag keys --batch 2026-watches --uid 04DE5F1EACC040,04C767F2066180 --host verify.example.com \\
    --format gototags --reveal --out station.csv`,
    )
    .action((options: Options) => {
      const address = addressOfOptions(options)
      if (address === null)
        throw new CommandError('Give the address: --host verify.example.com, or --url with a full one.')
      if (options.reveal === true && options.out === undefined)
        throw new CommandError('Keys are not shown on a screen: give --reveal a new file with --out.')
      return run((session) => keys(session, address, options))
    })
}

async function keys({ store, io }: Session, address: string, options: Options): Promise<void> {
  const batch = batchOf(store, options.batch, options.epoch)
  const template = templateOf(address, batch.macInput)
  const reveal = options.reveal === true
  const appMaster = reveal ? await store.fleet.appMaster(batch.id) : undefined
  if (reveal && appMaster === undefined && batch.derivation !== 'boltcard')
    throw new CommandError(
      `The application keys of batch ${batch.id} are not in this data folder: use the station that holds them.`,
    )
  const rows: KeyRow[] = []
  for (const uid of options.uid)
    rows.push(await keyRow({ batch, uid, template, reveal, ...(appMaster && { appMaster }) }))
  const text = renderKeyRows(rows, options.format)
  if (options.out === undefined) return io.out(text.trimEnd())
  const file = resolve(io.cwd, options.out)
  await writeNew(file, text)
  io.out(
    `${rows.length} ${rows.length === 1 ? 'tag' : 'tags'} in ${file}${reveal ? ', keys included: remove it when the tags are made' : ''}.`,
  )
}

/** The batch with its keys, or the sentence why it cannot be used. */
export function batchOf(store: Session['store'], id: string, epoch?: number): BatchRecord {
  const batch = store.fleet.record(id)
  if (batch === undefined)
    throw new CommandError(
      `The keys of a batch named ${id} are not in this data folder; see touchstone tag batch list.`,
    )
  if (epoch !== undefined && epoch !== batch.epoch)
    throw new CommandError(
      `Batch ${id} has epoch ${batch.epoch}; for a new life of its chips make a batch with a higher one: touchstone tag batch create <id> --epoch ${Math.max(epoch, batch.epoch + 1)}`,
    )
  return batch
}

async function writeNew(path: string, text: string): Promise<void> {
  try {
    const file = await open(path, 'wx', 0o600)
    await file.writeFile(text).finally(() => file.close())
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new CommandError(
      code === 'EEXIST' ? `${path} exists already; give --out a new file.` : `${path} cannot be written (${code}).`,
    )
  }
}
