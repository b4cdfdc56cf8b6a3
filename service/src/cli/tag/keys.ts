/** `touchstone tag keys`: key rows for a personalisation station (spec §4.4). Keys leave the store only with --reveal, into a private file. */
import { join, resolve } from 'node:path'
import { Option, type Command } from 'commander'
import type { BatchKeyRecord } from '../../tap/keys/batch.ts'
import {
  keyRowFormats,
  keyRows,
  renderKeyRows,
  type KeyRowFormat,
  type Masters,
} from '../../tap/provisioning/key-rows.ts'
import { tagKeyFile } from '../../tap/keys/store.ts'
import { argument, defineCommand, inSession } from '../session/command.ts'
import type { RunWork, Session } from '../session/session.ts'
import { assertNotInterrupted, CommandError } from '../session/output.ts'
import { writeNew } from '../session/files.ts'
import { listUids } from './uids.ts'
import { addAddressOptions, layOut, requiredAddress, type AddressOptions } from './template.ts'

type Options = AddressOptions & {
  readonly batch: string
  readonly uid?: readonly Uint8Array[]
  readonly file?: string
  readonly epoch?: number
  readonly format: KeyRowFormat
  readonly reveal?: true
  readonly out?: string
}

export function keysCommand(run: RunWork): Command {
  const description =
    'Prints what each tag of a batch must hold: NDEF, offsets, settings and, with --reveal, its five keys.'
  const command = defineCommand('keys', description, {
    notes: `json and csv are for your own tools, gototags is a table for a GoToTags operation, apdu is the order of commands.
Anyone with the keys of a tag can copy it: --reveal writes them to a new file that only you can read. Remove it when the tags are made.`,
    examples: [
      'touchstone tag keys --batch 2026-watches --uid 04DE5F1EACC040 --host verify.example.com',
      `touchstone tag keys --batch 2026-watches --uid 04DE5F1EACC040,04C767F2066180 --host verify.example.com \\
    --format gototags --reveal --out station.csv`,
    ],
  })
  return addAddressOptions(command)
    .requiredOption('--batch <id>', 'batch of the tags', argument.batchId)
    .option('--uid <uids>', 'UID of a tag, or several separated by commas', argument.uids)
    .option('--file <file>', 'file with the UIDs, one in each line, or a table with a column uid')
    .option('--epoch <n>', 'fail when the batch has another epoch', argument.epoch)
    .addOption(new Option('--format <format>', 'format of the rows').choices(keyRowFormats).default('json'))
    .option('--reveal', 'include the keys, which needs --out')
    .option('--out <file>', 'new file for the rows (mode 0600)')
    .hook('preAction', (self) => {
      const options = self.opts<Options>()
      requiredAddress(options)
      if (options.reveal === true && options.out === undefined)
        throw new CommandError('Keys are not shown on a screen: give --reveal a new file with --out.')
    })
    .action(inSession(run, printKeys))
}

async function printKeys({ store, io }: Session, options: Options): Promise<void> {
  const uids = await listUids(io, options)
  const batch = await getBatch(store, options.batch, options.epoch)
  const template = layOut(requiredAddress(options), batch)
  const reveal = options.reveal === true
  const masters = reveal ? await getMasters(store, batch) : {}
  const tags = uids.map((uid) => ({ batch, uid, template, reveal, masters }))
  const rows = await keyRows(tags, () => assertNotInterrupted(io.signal))
  const text = renderKeyRows(rows, options.format)
  if (options.out === undefined) return io.out(text.trimEnd())
  const file = resolve(io.cwd, options.out)
  await writeNew(file, text)
  const made = `${rows.length} ${rows.length === 1 ? 'tag' : 'tags'}`
  io.out(`${made} in ${file}${reveal ? ', keys included: remove it when the tags are made' : ''}.`)
}

/** Returns the batch with its keys. Throws `CommandError` when they are elsewhere or not the newest, or the epoch is another. */
export async function getBatch(store: Session['store'], id: string, epoch?: number): Promise<BatchKeyRecord> {
  const batch = getBatchHere(store, id, epoch)
  if ((await store.tagKeys.missing()).includes(id))
    throw new CommandError(
      `The keys of batch ${id} in this data folder are not the newest: copy keys/tag-keys.json from where they were changed.`,
    )
  return batch
}

/** Returns the batch as `getBatch` does, also where its keys are not the newest. */
export function getBatchHere(store: Session['store'], id: string, epoch?: number): BatchKeyRecord {
  const batch = store.tagKeys.record(id)
  if (batch === undefined)
    throw new CommandError(
      `The keys of a batch named ${id} are not in this data folder; see touchstone tag batch list.`,
    )
  if (epoch !== undefined && epoch !== batch.epoch)
    throw new CommandError(
      `Batch ${id} has epoch ${batch.epoch}; to personalise its chips again, make a batch with a higher one: touchstone tag batch create <id> --epoch ${Math.max(epoch, batch.epoch + 1)}`,
    )
  return batch
}

/** Another process of this folder writes its file before the database has the batch. */
const mostReadings = 3

/**
 * Throws `CommandError` where the folder lacks keys of other batches, before it gets those of a new one. Operators copy its file to verifiers
 * as a whole, and the keys that it lacks would be lost there.
 */
export async function requireOthersHere({ store, config }: Session): Promise<void> {
  let missing: readonly string[] = []
  for (let reading = 0; reading < mostReadings; reading += 1) {
    await store.tagKeys.reload()
    missing = await store.tagKeys.missing()
    if (missing.length === 0) return
  }
  throw new CommandError(
    `The keys of ${missing.join(', ')} are not in ${tagKeyFile(join(config.dataDir, 'keys'))}. Copy the file of the service there before you make keys: copied back without them, it would replace them. Revoke batches whose keys are lost.`,
  )
}

/** Returns the masters of a batch; `boltcard` needs no application master. Throws `CommandError` when that is elsewhere. */
export async function getMasters(store: Session['store'], { id, derivation }: BatchKeyRecord): Promise<Masters> {
  const app = await store.tagKeys.appMaster(id)
  if (app === undefined && derivation !== 'boltcard')
    throw new CommandError(
      `The application keys of batch ${id} are not here: use the station that holds station.keys, with its STATION_KEK.`,
    )
  return { app, file: store.tagKeys.fileMaster(id) }
}
