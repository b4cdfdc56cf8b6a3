/** `touchstone tag emulate`: taps a software tag of a demo batch (spec §4.4). Its counters are in `keys/demo-tags.json` of the data folder. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Command } from 'commander'
import { makeFolder } from '../../lib/private-folder.ts'
import { writePrivateFile } from '../../lib/sealed/file.ts'
import { toHex } from '../../tap/bytes.ts'
import { createDemoTag } from '../../tap/provisioning/software-tag.ts'
import { demoBatch, demoUid } from '../dev/products.ts'
import { argument, defineCommand, inSession } from '../session/command.ts'
import type { RunWork, Session } from '../session/session.ts'
import { CommandError, formatJson } from '../session/output.ts'
import { addAddressOptions, layOut, optionalAddress, type AddressOptions } from './template.ts'
import { getBatch } from './keys.ts'

type Options = AddressOptions & {
  readonly batch?: string
  readonly uid?: Uint8Array
  readonly tap?: true
  readonly count?: number
  readonly json?: true
}

export function emulateCommand(run: RunWork): Command {
  const description = 'Taps a software tag of a demo batch and prints the address that a phone would open.'
  const command = defineCommand('emulate', description, {
    notes: `The default tag is that of the first bound product of npm start. The tag counts on from one call to the
next, as a chip does. An address for a host of your own is printed so that it opens on the service of this machine.`,
    examples: [
      'touchstone tag emulate --tap',
      'curl "$(touchstone tag emulate --tap)"',
      'touchstone tag emulate --batch demo --uid 04112233445566 --count 3',
    ],
  })
  return addAddressOptions(command)
    .option('--tap', 'tap the tag once: prints an address that verifies once')
    .option('--count <n>', 'tap it n times: one address a line', argument.count(1_000))
    .option('--batch <id>', 'demo batch of the tag', argument.batchId)
    .option('--uid <uid>', 'UID of the tag, 04 and 12 more hex digits; any you like', argument.uid)
    .option('--json', 'print a JSON object')
    .action(inSession(run, emulate))
}

async function emulate(session: Session, options: Options): Promise<void> {
  if (options.tap !== true && options.count === undefined)
    throw new CommandError('Give --tap for one tap, or --count for several.')
  const address = optionalAddress(options)
  const { batchId, uid } = await chooseTag(session, options)
  const { urls, counter, uid: name } = await emulateTaps(session, { batchId, uid, address, count: options.count ?? 1 })
  if (options.json === true) return session.io.out(formatJson({ uid: name, batch: batchId, counter, urls }))
  for (const url of urls) session.io.out(url)
}

async function chooseTag({ store }: Session, { batch, uid }: Options): Promise<{ batchId: string; uid: Uint8Array }> {
  if (batch !== undefined && uid !== undefined) return { batchId: batch, uid }
  if (batch !== undefined || uid !== undefined) throw new CommandError('--batch and --uid belong together.')
  for (let index = 0; index < 100; index++) {
    if ((await store.tags.tagOfUid(demoUid(index))) !== undefined) return { batchId: demoBatch, uid: demoUid(index) }
  }
  throw new CommandError('There is no demo product here (npm start makes some): name a tag with --batch and --uid.')
}

/**
 * Taps the software tag of a demo batch `count` times. `address` has placeholders as in `tag template`; the default opens on this service.
 * The counter is stored before a URL is returned, so that none is repeated.
 */
export async function emulateTaps(
  session: Pick<Session, 'store' | 'config' | 'baseUrl' | 'inTurn'>,
  { batchId, uid, address, count }: { batchId: string; uid: Uint8Array; address: string | null; count: number },
): Promise<{ readonly uid: string; readonly urls: readonly string[]; readonly counter: number }> {
  const { store, baseUrl, inTurn } = session
  const batch = await getBatch(store, batchId)
  if (!batch.demo) throw new CommandError(`Only tags of demo batches can be emulated; ${batchId} is none.`)
  const ownAddress = `${baseUrl.replace(/^http:/, 'https:')}/api/verify?picc={picc}&cmac={cmac}` // chips support https only
  const template = layOut(address ?? ownAddress, batch)
  const folder = join(session.config.dataDir, 'keys')
  const path = join(folder, 'demo-tags.json')
  return inTurn(async () => {
    const counters = await readCounters(path)
    const name = `${toHex(uid)}.${batch.epoch}`
    const known = await store.tags.tagOfUid(uid)
    if (known !== undefined && known.epoch > batch.epoch)
      throw new CommandError(`Tag ${toHex(uid)} belongs to batch ${known.batchId} now; ${batchId} is an older epoch.`)
    const seen = known !== undefined && known.epoch === batch.epoch ? known.lastCounter : 0
    const fileMaster = store.tagKeys.fileMaster(batchId)
    const tag = await createDemoTag({ batch, fileMaster, uid, template, counter: Math.max(counters[name] ?? 0, seen) })
    const urls = Array.from({ length: count }, () => toOpenable(tag.tap(), baseUrl))
    await makeFolder(folder)
    await writePrivateFile(path, JSON.stringify({ ...counters, [name]: tag.counter() }))
    return { uid: toHex(uid), urls, counter: tag.counter() }
  })
}

/** Replaces https and host of the URL when the service is on this machine. The MAC covers neither. */
function toOpenable(url: string | null, baseUrl: string): string {
  if (url === null) throw new CommandError('This tag has counted to its end (FFFFFF); take another UID.')
  const { hostname } = new URL(baseUrl)
  const isLocal = hostname === 'localhost' || hostname === '[::1]' || hostname.startsWith('127.')
  return isLocal ? `${baseUrl}${url.slice(url.indexOf('/', 'https://'.length))}` : url
}

async function readCounters(path: string): Promise<Readonly<Record<string, number>>> {
  try {
    return JSON.parse(await readFile(path, 'utf8')) as Record<string, number>
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {}
    throw new CommandError(`${path} cannot be read; remove it, the store has the counters that were used.`)
  }
}
