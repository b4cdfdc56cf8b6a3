/** Software tags of demo batches that remember how often they were tapped: in `keys/demo-tags.json` of the data folder. */
import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { hexOf } from '../tap/bytes.ts'
import { createDemoTag } from '../tap/demo-tag.ts'
import { writePrivateFile } from '../tap/sealed-file.ts'
import { templateOf } from './tag-address.ts'
import { batchOf } from './tag-keys.ts'
import { CommandError, type Session } from './store-command.ts'

export type Emulated = { readonly uid: string; readonly urls: readonly string[]; readonly counter: number }

/**
 * Taps the software tag of a demo batch `count` times, as a phone does. `address` is what `tag template` takes; without it the
 * addresses open on this service. The counters are written down before an address is given, so that none comes twice.
 */
export async function emulateTaps(
  session: Pick<Session, 'store' | 'dataDir' | 'baseUrl' | 'inTurn'>,
  { batchId, uid, address, count }: { batchId: string; uid: Uint8Array; address: string | null; count: number },
): Promise<Emulated> {
  const { store, dataDir, baseUrl, inTurn } = session
  const batch = batchOf(store, batchId)
  if (!batch.demo) throw new CommandError(`Only tags of demo batches can be emulated; ${batchId} is none.`)
  const template = templateOf(address ?? serviceAddress(baseUrl), batch.macInput)
  return inTurn(async () => {
    const counters = await readCounters(dataDir)
    const name = `${hexOf(uid)}.${batch.epoch}`
    const known = await store.tags.tagOfUid(uid)
    if (known !== undefined && known.epoch > batch.epoch)
      throw new CommandError(`Tag ${hexOf(uid)} lives in batch ${known.batchId} now; its life in ${batchId} is over.`)
    const seen = known !== undefined && known.epoch === batch.epoch ? known.lastCounter : 0
    const tag = await createDemoTag({ batch, uid, template, counter: Math.max(counters[name] ?? 0, seen) })
    const urls = Array.from({ length: count }, () => openable(tag.tap(), baseUrl))
    await writeCounters(dataDir, { ...counters, [name]: tag.counter() })
    return { uid: hexOf(uid), urls, counter: tag.counter() }
  })
}

/** Where a demo tag points when nothing else is said. Chips know https only. */
function serviceAddress(baseUrl: string): string {
  return `${baseUrl.replace(/^http:/, 'https:')}/api/verify?picc={picc}&cmac={cmac}`
}

/** A chip's address always says https and its own host; on this machine the service is at its own address, and the MAC covers neither. */
function openable(address: string | null, baseUrl: string): string {
  if (address === null) throw new CommandError('This tag has counted to its end (FFFFFF); take another UID.')
  const { hostname } = new URL(baseUrl)
  const isHere = hostname === 'localhost' || hostname === '[::1]' || hostname.startsWith('127.')
  if (!isHere) return address
  return `${baseUrl}${address.slice(address.indexOf('/', 'https://'.length))}`
}

type Counters = Readonly<Record<string, number>>

async function readCounters(dataDir: string): Promise<Counters> {
  try {
    return JSON.parse(await readFile(fileOf(dataDir), 'utf8')) as Counters
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {}
    throw new CommandError(`${fileOf(dataDir)} cannot be read; remove it, the store knows the counters that were used.`)
  }
}

async function writeCounters(dataDir: string, counters: Counters): Promise<void> {
  await mkdir(join(dataDir, 'keys'), { recursive: true, mode: 0o700 })
  await writePrivateFile(fileOf(dataDir), JSON.stringify(counters))
}

function fileOf(dataDir: string): string {
  return join(dataDir, 'keys', 'demo-tags.json')
}
