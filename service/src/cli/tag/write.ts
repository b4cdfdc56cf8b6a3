/** `touchstone tag write`: blank chips on a PC/SC reader become tags of a batch, verified and registered (spec §4.4). */
import { mkdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Command } from 'commander'
import { argument, defineCommand } from '../session/command.ts'
import { CommandError, type RunWork, type Session } from '../session/session.ts'
import { getBatch, getMasters } from './keys.ts'
import { pcscSentence, removed } from './pcsc.ts'
import { addAddressOptions, type AddressOptions, layOut, requiredAddress } from './template.ts'
import { parseTapUrl } from './verify.ts'
import {
  ChipError,
  type KeyJournal,
  type KeyProgress,
  personalise,
  type Transmit,
} from '../../tap/provisioning/personalise.ts'
import { parseHex } from '../../lib/bytes.ts'
import { writePrivateFile } from '../../lib/sealed-file.ts'
import { toHex } from '../../tap/bytes.ts'
import { deriveTagKeys } from '../../tap/provisioning/key-rows.ts'
import { createAuthenticate } from '../../tap/sun/authenticate.ts'

type Options = AddressOptions & { readonly batch: string; readonly count: number }

export function writeCommand(run: RunWork): Command {
  const command = defineCommand(
    'write',
    'Writes blank NTAG 424 DNA chips on a PC/SC reader: address, settings, all five keys; then registers them.',
    {
      notes: `It needs the package nfc-pcsc (npm install --no-save nfc-pcsc) and the reader on this machine. Each change of a key is
written down before it is sent: a chip that was taken away too early is finished by putting it back and running this again.
A finished chip is verified and registered, its counter used up; asset bind or tag import brings it onto the chain.`,
      examples: ['touchstone tag write --batch 2026-watches --host verify.example.com --count 200'],
    },
  )
  return addAddressOptions(command)
    .requiredOption('--batch <id>', 'batch of the tags', argument.batchId)
    .option('--count <n>', 'chips to write, one after another', argument.count(100_000), 1)
    .action((options: Options) => {
      const address = requiredAddress(options)
      return run(async (session) => writeTags(session, address, options, await loadPcsc()))
    })
}

/** Writes the chips. Returns exit code 1 when one of them could not be made a tag. */
export async function writeTags(
  session: Session,
  address: string,
  { batch: batchId, count }: Pick<Options, 'batch' | 'count'>,
  pcsc: PcscPackage,
): Promise<number> {
  const { io, store } = session
  const write = await createWriter(session, address, batchId)
  if ((await store.tags.batches()).some(({ id, status }) => id === batchId && status !== 'active'))
    throw new CommandError(`Batch ${batchId} is not active: make new tags in another batch.`)
  let written = 0
  let failed = 0
  io.err('Put a blank chip on the reader …')
  for await (const transmit of chipsOn(pcsc, { signal: io.signal, onReader: (name) => io.err(`Reader: ${name}`) })) {
    try {
      io.out(await write(transmit))
      written++
    } catch (error) {
      if (!(error instanceof ChipError)) throw error
      failed++
      io.err(error.message)
    }
    if (written === count) break
  }
  io.out(`${written} of ${count} tags written${failed === 0 ? '' : `, ${failed} tries failed`}.`)
  return written === count ? 0 : 1
}

async function createWriter({ store, dataDir }: Session, address: string, batchId: string) {
  const { tagKeys, tags } = store
  const batch = getBatch(store, batchId)
  const template = layOut(address, batch)
  const masters = await getMasters(store, batch)
  const journal = openChipJournal(dataDir, { batch: batchId, url: template.url })
  const authenticate = createAuthenticate({ keys: tagKeys.keys })
  const keysOf = (uid: Uint8Array) => deriveTagKeys(batch, uid, masters)

  return async function write(transmit: Transmit): Promise<string> {
    const personalisation = { transmit, template, keysOf, version: batch.epoch % 256, journal }
    const { uid, address: shown } = await personalise(personalisation)
    const name = toHex(uid)
    const { picc, cmac } = parseTapUrl(shown)
    const bytes = ([text = '']: readonly string[]) => parseHex(text) ?? new Uint8Array()
    const found = await authenticate(bytes(picc), bytes(cmac))
    if (!found.genuine || toHex(found.uid) !== name || found.batch.id !== batchId)
      throw new ChipError(
        `Chip ${name} was written but does not verify; touchstone tag doctor '${template.url}' may say why.`,
      )
    const registered = await tags.importTag({ uid, epoch: batch.epoch, batchId, baselineCounter: found.counter })
    if (registered.outcome === 'refused') throw new ChipError(`Chip ${name} is not registered: ${registered.because}.`)
    await journal.finish(name)
    return `${name}  written, verified and registered in batch ${batchId} (counter ${found.counter})`
  }
}

/**
 * Opens the journal of unfinished chips (`keys/chips/` of the data folder). It holds no key: old keys are the factory's, new ones derive
 * from batch and UID. A chip that was begun for another batch or URL throws `CommandError`.
 */
function openChipJournal(
  dataDir: string,
  { batch, url }: { batch: string; url: string },
): KeyJournal & { readonly finish: (uid: string) => Promise<void> } {
  const folder = join(dataDir, 'keys', 'chips')
  const fileOf = (uid: string) => join(folder, `${uid}.json`)
  return {
    async read(uid) {
      const text = await readFile(fileOf(uid), 'utf8').catch((error: NodeJS.ErrnoException) => {
        if (error.code === 'ENOENT') return null
        throw error
      })
      if (text === null) return null
      const { batch: begunFor, url: begunWith, ...progress } = JSON.parse(text) as Entry
      if (begunFor !== batch || begunWith !== url)
        throw new CommandError(`Chip ${uid} was begun for batch ${begunFor} and ${begunWith}; finish it with these.`)
      return progress
    },
    async write(uid, progress) {
      await mkdir(folder, { recursive: true, mode: 0o700 })
      await writePrivateFile(fileOf(uid), JSON.stringify({ batch, url, ...progress } satisfies Entry))
    },
    finish: (uid) => rm(fileOf(uid), { force: true }),
  }
}

type Entry = KeyProgress & { batch: string; url: string }

/** The part of nfc-pcsc that is used here. */
type Reader = {
  autoProcessing: boolean
  readonly reader: { readonly name: string }
  readonly on: (event: 'card' | 'card.off' | 'error', listener: (value: unknown) => void) => unknown
  readonly transmit: (data: Buffer, maxLength: number) => Promise<Buffer>
}
type Nfc = {
  readonly on: (event: 'reader' | 'error', listener: (value: never) => void) => unknown
  readonly close: () => void
}
export type PcscPackage = { readonly NFC: new () => Nfc }

/** Imports the package. Throws a sentence with the command that installs it. */
async function loadPcsc(): Promise<PcscPackage> {
  const name = 'nfc-pcsc' // not among the dependencies: only a personalisation station needs it
  try {
    return (await import(name)) as PcscPackage
  } catch {
    throw new CommandError('Writing tags needs a PC/SC reader and its package: npm install --no-save nfc-pcsc')
  }
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
  nfc.on('error', fail)
  nfc.on('reader', (reader: Reader) => {
    reader.autoProcessing = false
    onReader(reader.reader.name)
    reader.on('error', () => {}) // a chip taken away in the middle shows in its own transmit
    // A command for one chip must never reach the next one.
    let present = 0
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
    nfc.close()
  }
}

/** Sends a command. Null means that its chip was removed. */
async function transmit(reader: Reader, command: Uint8Array | null): Promise<Uint8Array> {
  if (command === null) throw new ChipError(removed)
  try {
    return Uint8Array.from(await reader.transmit(Buffer.from(command), 258))
  } catch (error) {
    throw new ChipError(pcscSentence(error, removed))
  }
}
