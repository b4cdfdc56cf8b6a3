/** `touchstone tag write`: blank chips on a PC/SC reader become tags of a batch, verified and registered (spec §4.4). */
import { readFile, rm } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { Command } from 'commander'
import { argument, defineCommand, inSession } from '../../session/command.ts'
import type { RunWork, Session } from '../../session/session.ts'
import { CommandError, formatJson } from '../../session/output.ts'
import { getBatch, getMasters } from '../keys.ts'
import { assertServiceRuns, pcscSentence, removed } from './pcsc.ts'
import { addAddressOptions, type AddressOptions, layOut, requiredAddress } from '../template.ts'
import { parseTapBytes } from '../../../tap/parameters.ts'
import { type ChipList, openChipList } from './chip-list.ts'
import {
  ChipError,
  type KeyJournal,
  type KeyProgress,
  personalise,
  type Transmit,
} from '../../../tap/provisioning/personalise.ts'
import { isOriginal } from '../../../tap/provisioning/originality.ts'
import type { TagTemplate } from '../../../tap/provisioning/template.ts'
import { ifMissing } from '../../../lib/errors.ts'
import { isObject, parseJson } from '../../../lib/json.ts'
import { makeFolder } from '../../../lib/private-folder.ts'
import { writePrivateFile } from '../../../lib/sealed/file.ts'
import { toHex } from '../../../tap/bytes.ts'
import { deriveTagKeys } from '../../../tap/provisioning/key-rows.ts'
import { registrationRefusal } from '../../../tap/tag-registry.ts'
import { createAuthenticate } from '../../../tap/sun/authenticate.ts'

type Options = AddressOptions & {
  readonly batch: string
  readonly count?: number
  readonly from?: string
  /** False: NXP's originality signature is not checked. */
  readonly originality?: boolean
  readonly json?: true
}

export function writeCommand(run: RunWork): Command {
  const description =
    'Writes blank NTAG 424 DNA chips on a PC/SC reader: address, settings, all five keys; then registers them.'
  const command = defineCommand('write', description, {
    notes: `It needs the package nfc-pcsc (npm install --no-save nfc-pcsc) and the reader on this machine. Each change of a key is written
down before it is sent. To finish a chip that was taken away too early, put it back and run this again.
A finished chip is verified and registered, its counter used up; asset bind or tag import brings it onto the chain.

With --from each chip gets the link of its own row, whatever their order on the reader. After an interruption, even a power cut, run it
again: chips that were written are done. <file>.written.csv names the written chips. Give the same file to tag import.`,
    examples: [
      'touchstone tag write --batch 2026-watches --host verify.example.com --count 200',
      'touchstone tag write --from tags.csv --batch 2026-watches --host verify.example.com',
    ],
  })
  return addAddressOptions(command)
    .requiredOption('--batch <id>', 'batch of the tags', argument.batchId)
    .option('--from <file>', 'CSV file of tag prepare: every chip gets its own row')
    .option('--count <n>', 'chips to write, one after another (default: 1, with --from all)', argument.count(1_000_000))
    .option('--no-originality', 'write chips without a valid originality signature of NXP too')
    .option('--json', 'print a JSON object at the end; each chip is a line of stderr')
    .hook('preAction', (self) => {
      const options = self.opts<Options>()
      if (options.from !== undefined && options.item !== undefined)
        throw new CommandError('--from has the item of each chip: leave --item out.')
      requiredAddress(options)
    })
    .action(inSession(run, async (session, options: Options) => writeTags(session, options, await loadPcsc())))
}

/** Writes the chips. Returns exit code 1 when one of them could not be made a tag. */
export async function writeTags(session: Session, options: Options, pcsc: PcscPackage): Promise<number> {
  const { io } = session
  const { batch: batchId, from } = options
  const list = from === undefined ? null : await openChipList(session, resolve(io.cwd, from), options)
  const write = await createWriter(session, options, list)
  await assertActive(session, batchId)
  const count = Math.min(options.count ?? list?.left() ?? 1, list?.left() ?? Infinity)
  if (list !== null) io.err(`${list.left()} of ${list.size} chips of the file are to be written.`)
  const began = performance.now()
  const print = options.json === true ? io.err : io.out
  let written = 0
  let failed = 0
  try {
    if (count > 0) io.err('Put a blank chip on the reader …')
    for await (const transmit of count === 0
      ? []
      : chipsOn(pcsc, { signal: io.signal, onReader: (name) => io.err(`Reader: ${name}`) })) {
      try {
        print(await write(transmit))
        written++
        if (list !== null) io.err(formatProgress({ written, count, failed, ms: performance.now() - began }))
      } catch (error) {
        if (!(error instanceof ChipError)) throw error
        failed++
        io.err(error.message)
      }
      if (written === count) break
    }
  } finally {
    await list?.close()
  }
  if (options.json === true)
    io.out(formatJson({ batch: batchId, count, written, failed, report: list?.report ?? null }))
  print(`${written} of ${count} tags written${failed === 0 ? '' : `, ${failed} tries failed`}.`)
  if (list !== null) print(`Report: ${list.report}`)
  return written === count ? 0 : 1
}

async function assertActive({ store }: Pick<Session, 'store'>, id: string): Promise<void> {
  const batch = await store.tags.batch(id)
  if (batch !== undefined && batch.status !== 'active')
    throw new CommandError(`Batch ${id} is not active: make new tags in another batch.`)
}

function formatProgress(state: { written: number; count: number; failed: number; ms: number }): string {
  const { written, count, failed, ms } = state
  const each = ms / written
  const minutes = Math.ceil((each * (count - written)) / 60_000)
  return `  ${written} of ${count} written, ${failed} tries failed; ${(each / 1_000).toFixed(1)} s a chip, ${minutes} min left`
}

async function createWriter(session: Session, options: Options, list: ChipList | null) {
  const { store, config } = session
  const { tagKeys, tags } = store
  const { batch: batchId, originality = false } = options
  const batch = await getBatch(store, batchId)
  const shared = list === null ? layOut(requiredAddress(options), batch) : null
  const masters = await getMasters(store, batch)
  const urls = new Map<string, string>()
  const journal = openChipJournal(config.dataDir, { batch: batchId, urlOf: (uid) => urls.get(uid) ?? '' })
  const authenticate = createAuthenticate({ keys: tagKeys.keys })
  const keysOf = (uid: Uint8Array) => deriveTagKeys(batch, uid, masters)

  async function templateOf(uid: Uint8Array): Promise<TagTemplate> {
    const name = toHex(uid)
    const template = shared ?? list?.templateOf(name)
    if (template === undefined) throw new ChipError(`Chip ${name} is not in the file: put it aside.`)
    if (list?.isWritten(name) === true) throw new ChipError(`Chip ${name} was written before: put the next one.`)
    await assertActive(session, batchId)
    await getBatch(store, batchId) // its keys may be others by now
    const known = await tags.tagOfUid(uid)
    if (known !== undefined && registrationRefusal(known, { epoch: batch.epoch, batchId }) !== null)
      throw new ChipError(
        `Chip ${name} is registered in batch ${known.batchId}, epoch ${known.epoch}: write it for that batch, or put it aside.`,
      )
    urls.set(name, template.url)
    return template
  }

  return async function write(transmit: Transmit): Promise<string> {
    const { uid, address: shown } = await personalise({
      transmit,
      templateOf,
      keysOf,
      version: batch.epoch % 256,
      journal,
      ...(originality && { isOriginal }),
    })
    const name = toHex(uid)
    const tap = parseTapBytes(shown)
    const found = tap && (await authenticate(tap.picc, tap.cmac, { hint: tap.hint }))
    if (found?.genuine !== true || toHex(found.uid) !== name || found.batch.id !== batchId)
      throw new ChipError(
        `Chip ${name} was written but does not verify; touchstone tag doctor '${urls.get(name)}' may say why.`,
      )
    const registered = await tags.importTag({ uid, epoch: batch.epoch, batchId, baselineCounter: found.counter })
    if (registered.outcome === 'refused') throw new ChipError(`Chip ${name} is not registered: ${registered.because}.`)
    await journal.finish(name)
    await list?.written(name, found.counter)
    return `${name}  written, verified and registered in batch ${batchId} (counter ${found.counter})`
  }
}

/**
 * Opens the journal of unfinished chips (`keys/chips/` of the data folder). It holds no key: old keys are the factory's, new ones derive
 * from batch and UID. A chip that was begun for another batch or URL throws `CommandError`.
 */
function openChipJournal(
  dataDir: string,
  { batch, urlOf }: { batch: string; urlOf: (uid: string) => string },
): KeyJournal & { readonly finish: (uid: string) => Promise<void> } {
  const folder = join(dataDir, 'keys', 'chips')
  const fileOf = (uid: string) => join(folder, `${uid}.json`)
  return {
    async read(uid) {
      const text = await readFile(fileOf(uid), 'utf8').catch(ifMissing(null))
      if (text === null) return null
      const entry = parseEntry(text)
      if (entry === null) {
        const whole: Entry = { batch, url: urlOf(uid), begun: [0, 1, 2, 3, 4], confirmed: [] }
        throw new ChipError(
          `The journal ${fileOf(uid)} is damaged: put chip ${uid} aside. Restore the file from a backup. Without one, write this into it if the chip was begun for this batch and address, and put it back: ${JSON.stringify(whole)}`,
        )
      }
      const { batch: begunFor, url: begunWith, ...progress } = entry
      if (begunFor !== batch || begunWith !== urlOf(uid))
        throw new CommandError(`Chip ${uid} was begun for batch ${begunFor} and ${begunWith}; finish it with these.`)
      return progress
    },
    async write(uid, progress) {
      await makeFolder(folder)
      await writePrivateFile(fileOf(uid), JSON.stringify({ batch, url: urlOf(uid), ...progress } satisfies Entry))
    },
    finish: (uid) => rm(fileOf(uid), { force: true }),
  }
}

type Entry = KeyProgress & { batch: string; url: string }

/** Parses a file of the journal, or returns null where it is damaged. */
function parseEntry(text: string): Entry | null {
  const json = parseJson(text)
  if (!isObject(json)) return null
  const { batch, url, begun, confirmed } = json
  const isWhole = typeof batch === 'string' && typeof url === 'string' && [begun, confirmed].every(isSlots)
  return isWhole ? (json as Entry) : null
}

function isSlots(value: unknown): boolean {
  return Array.isArray(value) && value.every((slot) => [0, 1, 2, 3, 4].includes(slot as number))
}

/** The part of nfc-pcsc that is used here. */
type Reader = {
  autoProcessing: boolean
  readonly reader: { readonly name: string }
  readonly on: (event: 'card' | 'card.off' | 'error', listener: (value: unknown) => void) => unknown
  readonly transmit: (data: Buffer, maxLength: number) => Promise<Buffer>
  readonly close: () => void
}
type Nfc = {
  readonly on: (event: 'reader' | 'error', listener: (value: never) => void) => unknown
  readonly close: () => void
}
export type PcscPackage = { readonly NFC: new () => Nfc }

/** Imports the package. Throws a sentence with the command that installs it. */
async function loadPcsc(): Promise<PcscPackage> {
  const name = 'nfc-pcsc' // not among the dependencies: only a personalisation station needs it
  const pcsc = await import(name).catch(() => {
    throw new CommandError('Writing tags needs a PC/SC reader and its package: npm install --no-save nfc-pcsc')
  })
  if (process.platform === 'linux') await assertServiceRuns()
  return pcsc as PcscPackage
}

/** Yields every chip that is put on a reader, until `signal` aborts. Throws one sentence when the reader fails. */
async function* chipsOn(
  { NFC }: PcscPackage,
  { signal, onReader }: { signal: AbortSignal; onReader: (name: string) => void },
): AsyncGenerator<Transmit> {
  const chips: Transmit[] = []
  let failure: Error | undefined
  let wake = () => {}
  const fail = (error: unknown) => {
    failure = new CommandError(pcscSentence(error))
    wake()
  }
  const nfc = new NFC()
  const readers: Reader[] = []
  nfc.on('error', fail)
  nfc.on('reader', (reader: Reader) => {
    readers.push(reader)
    reader.autoProcessing = false
    onReader(reader.reader.name)
    reader.on('error', () => {}) // a chip that is taken away shows in its own transmit
    let present = 0 // a command for one chip must never reach the next one
    reader.on('card.off', () => void present++)
    reader.on('card', () => {
      const mine = ++present
      chips.push((command) => transmit(reader, mine === present ? command : null))
      wake()
    })
  })
  signal.addEventListener('abort', () => wake())
  try {
    while (!signal.aborted) {
      const chip = chips.shift()
      if (chip !== undefined) yield chip
      else if (failure !== undefined) throw failure
      else await new Promise<void>((resolve) => (wake = resolve))
    }
  } finally {
    for (const reader of readers) reader.close() // each has a thread, which keeps the process alive
    nfc.close()
  }
}

/** Sends a command. Null means that its chip was removed. */
async function transmit(reader: Reader, command: Uint8Array | null): Promise<Uint8Array> {
  if (command === null) throw new ChipError(removed)
  const answer = await reader.transmit(Buffer.from(command), 258).catch((error: unknown) => {
    throw new ChipError(pcscSentence(error, removed))
  })
  if (answer.length < 2) throw new ChipError(removed) // an answer ends with two bytes of status
  return Uint8Array.from(answer)
}
