/** `touchstone tag write`: blank chips on a PC/SC reader become tags of a batch, verified and registered (spec §4.4). */
import { Command } from 'commander'
import { createAuthenticate } from '../tap/authenticate.ts'
import { bytesOf, hexOf } from '../tap/bytes.ts'
import { tagKeys } from '../tap/key-rows.ts'
import { addAddressOptions, addressOfOptions, templateOf, type AddressOptions } from './tag-address.ts'
import { batchOf } from './tag-keys.ts'
import { tapOf } from './tag-verify.ts'
import { ChipError, personalise, type Transmit } from './tag-write-flow.ts'
import { openChipJournal } from './tag-write-journal.ts'
import { chipsOn, loadPcsc, type PcscPackage } from './tag-write-reader.ts'
import { argument } from './store-arguments.ts'
import { CommandError, type RunWork, type Session } from './store-command.ts'

type Options = AddressOptions & { readonly batch: string; readonly count: number }

export function writeCommand(run: RunWork): Command {
  return addAddressOptions(new Command('write'))
    .description(
      'Writes blank NTAG 424 DNA chips on a PC/SC reader: address, settings, all five keys; then registers them.',
    )
    .requiredOption('--batch <id>', 'batch of the tags', argument.batchId)
    .option('--count <n>', 'chips to write, one after another', argument.count(100_000), 1)
    .addHelpText(
      'after',
      `
It needs the package nfc-pcsc (npm install --no-save nfc-pcsc) and the reader on this machine. Each change of a key is
written down before it is sent: a chip that was taken away too early is finished by putting it back and running this again.
A finished chip is verified and registered, its counter used up; asset bind or tag import brings it onto the chain.

Example:
  touchstone tag write --batch 2026-watches --host verify.example.com --count 200`,
    )
    .action((options: Options) => {
      const address = addressOfOptions(options)
      if (address === null)
        throw new CommandError('Give the address: --host verify.example.com, or --url with a full one.')
      return run(async (session) => writeTags(session, address, options, await loadPcsc()))
    })
}

/** Exit code 1 when a chip could not be made a tag. */
export async function writeTags(
  session: Session,
  address: string,
  { batch: batchId, count }: Pick<Options, 'batch' | 'count'>,
  pcsc: PcscPackage,
): Promise<number> {
  const { io, store } = session
  const write = await writerFor(session, address, batchId)
  if ((await store.tags.batches()).some(({ id, status }) => id === batchId && status !== 'active'))
    throw new CommandError(`Batch ${batchId} is not active: make new tags in another batch.`)
  let written = 0
  let refused = 0
  io.err('Put a blank chip on the reader …')
  for await (const transmit of chipsOn(pcsc, { signal: io.signal, onReader: (name) => io.err(`Reader: ${name}`) })) {
    try {
      io.out(await write(transmit))
      written++
    } catch (error) {
      if (!(error instanceof ChipError)) throw error
      refused++
      io.err(error.message)
    }
    if (written === count) break
  }
  io.out(`${written} of ${count} tags written${refused === 0 ? '' : `, ${refused} tries failed`}.`)
  return written === count ? 0 : 1
}

async function writerFor({ store, dataDir }: Session, address: string, batchId: string) {
  const { fleet, tags } = store
  const batch = batchOf(store, batchId)
  const template = templateOf(address, batch.macInput)
  const appMaster = await fleet.appMaster(batchId)
  if (appMaster === undefined && batch.derivation !== 'boltcard')
    throw new CommandError(
      `The application keys of batch ${batchId} are not in this data folder: use the station that holds them.`,
    )
  const journal = openChipJournal(dataDir, { batch: batchId, url: template.url })
  const authenticate = createAuthenticate({ keys: fleet.keys })
  const keysOf = (uid: Uint8Array) => tagKeys(batch, uid, appMaster)

  return async function write(transmit: Transmit): Promise<string> {
    const { uid, address: shown } = await personalise({
      transmit,
      template,
      keysOf,
      version: batch.epoch % 256,
      journal,
    })
    const name = hexOf(uid)
    const [picc, cmac] = Object.values(tapOf(shown)).map(([text = '']) => bytesOf(text) ?? new Uint8Array())
    const found = await authenticate(picc ?? new Uint8Array(), cmac ?? new Uint8Array())
    if (!found.genuine || hexOf(found.uid) !== name || found.batch.id !== batchId)
      throw new ChipError(
        `Chip ${name} was written but does not verify; touchstone tag doctor '${template.url}' may say why.`,
      )
    const registered = await tags.importTag({ uid, epoch: batch.epoch, batchId, baselineCounter: found.counter })
    if (registered.outcome === 'refused') throw new ChipError(`Chip ${name} is not registered: ${registered.because}.`)
    await journal.finish(name)
    return `${name}  written, verified and registered in batch ${batchId} (counter ${found.counter})`
  }
}
