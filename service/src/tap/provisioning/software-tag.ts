/**
 * A software NTAG 424 DNA for demos and tests (spec §4.4; NXP NT4H2421Gx). It answers SELECT and READ BINARY and mirrors UID, counter
 * and MAC into file 02 by its own file settings. It holds keys in plain memory and is for demo batches only.
 */
import { randomBytes } from 'node:crypto'
import { type AesKeyRef, createAesKey } from '../sun/aes.ts'
import { hexToBytes, utf8ToBytes } from '@noble/hashes/utils.js'
import { toHex, join, littleEndian } from '../bytes.ts'
import { sessionVector, sunMac } from '../sun/sun.ts'
import { plainCommands } from './personalise.ts'
import { parseFileUrl, type TagTemplate } from './template.ts'
import { chipKeys, type BatchKeyRecord } from '../keys/batch.ts'

export type SoftwareTag = ReturnType<typeof createSoftwareTag>

type SoftwareTagOptions = Readonly<{
  uid: Uint8Array
  metaKey: Uint8Array
  fileKey: Uint8Array
  /** File 02 from offset 0, with placeholders. */
  ndef: Uint8Array
  /** Data of ChangeFileSettings, without the file number. */
  settings: Uint8Array
  /** Number of reads so far. */
  counter?: number
  /** Source of the random padding. */
  random?: (length: number) => Uint8Array
}>

export function createSoftwareTag(options: SoftwareTagOptions) {
  const { uid, random = randomBytes } = options
  const meta = createAesKey(options.metaKey)
  const fileKey = createAesKey(options.fileKey)
  const stored = new Uint8Array(256)
  stored.set(options.ndef)
  const sdm = parseSettings(options.settings)
  let counter = options.counter ?? 0
  let selected: 'nothing' | 'application' | 'capabilities' | 'address' = 'nothing'
  let shown: Uint8Array | null = null

  /** Returns file 02 with its mirrors. Consecutive reads return the same tap; `null` when the counter is used up. */
  function mirrored(): Uint8Array | null {
    if (shown !== null) return shown
    if (counter >= lastCounter) return null
    counter += 1
    const file = stored.slice()
    const uidPart = sdm.mirrorsUid ? uid : new Uint8Array(0)
    const counterPart = sdm.mirrorsCounter ? littleEndian(counter, 3) : new Uint8Array(0)
    const tagByte = (sdm.mirrorsUid ? 0x87 : 0) | (sdm.mirrorsCounter ? 0x40 : 0)
    const block = join([tagByte], uidPart, counterPart)
    const picc = meta.encryptBlock(join(block, random(16 - block.length)))
    file.set(utf8ToBytes(toHex(picc)), sdm.piccOffset)
    const session = fileKey.cmac(sessionVector(sdm.mirrorsUid ? uid : null, sdm.mirrorsCounter ? counter : null))
    const mac = sunMac(session, file.subarray(sdm.macInputOffset, sdm.macOffset))
    file.set(utf8ToBytes(toHex(mac)), sdm.macOffset)
    shown = file
    return file
  }

  /** Executes one ISO 7816 command and returns the answer with its status word. */
  function transmit(command: Uint8Array): Uint8Array {
    const head = toHex(command.subarray(0, 4))
    if (command[1] === 0xb0) return readBinary(command)
    shown = null
    if (head.startsWith('00A4')) {
      const name = toHex(command.subarray(5, 5 + (command[4] ?? 0)))
      const next = fileNames[name]
      if (next === undefined || (next !== 'application' && selected === 'nothing')) return status(0x6a82)
      selected = next
      return status(0x9000)
    }
    return status(0x6d00)
  }

  function readBinary(command: Uint8Array): Uint8Array {
    if (selected !== 'capabilities' && selected !== 'address') return status(0x6986)
    const file = selected === 'address' ? mirrored() : capabilityContainer
    if (file === null) return status(0x6982)
    const offset = ((command[2] ?? 0) << 8) | (command[3] ?? 0)
    const length = command[4] === 0 || command[4] === undefined ? 256 : command[4]
    if (offset >= file.length) return status(0x6b00)
    return join(file.subarray(offset, offset + length), status(0x9000))
  }

  return {
    transmit,
    /** Selects and reads file 02 as a phone does. Returns `null` when the chip rejects the read or holds no URL. */
    tap: (): string | null => {
      transmit(plainCommands.selectApplication)
      transmit(plainCommands.selectAddressFile)
      const answer = transmit(readAll)
      return answer.length > 2 ? parseFileUrl(answer.subarray(0, -2)) : null
    },
    counter: () => counter,
  }
}

/** Parses the settings: options byte, then the offsets in their order (encrypted PICC, MAC over plain data). */
function parseSettings(settings: Uint8Array) {
  const options = settings[3] ?? 0
  const offset = (index: number) => (settings[index] ?? 0) | ((settings[index + 1] ?? 0) << 8)
  if (settings[0] !== 0x40 || settings.length !== 15)
    throw new RangeError('The software tag supports SDM with encrypted PICC data only.')
  return {
    mirrorsUid: (options & 0x80) !== 0,
    mirrorsCounter: (options & 0x40) !== 0,
    piccOffset: offset(6),
    macInputOffset: offset(9),
    macOffset: offset(12),
  }
}

function status(word: number): Uint8Array {
  return Uint8Array.of(word >> 8, word & 0xff)
}

/** The last valid counter; after it the chip answers with an error for ever. */
const lastCounter = 0xffffff

const fileNames: Readonly<Record<string, 'application' | 'capabilities' | 'address'>> = {
  D2760000850101: 'application',
  E103: 'capabilities',
  E104: 'address',
}
const readAll = hexToBytes('00B0000000')
const capabilityContainer = hexToBytes('001720010000FF0406E104010000000506E10500808283')

/** Creates a software tag personalised as a chip of this batch. Throws a `RangeError` for a batch that is not a demo batch. */
export async function createDemoTag(options: {
  batch: BatchKeyRecord
  /** A file master that is in a token. */
  fileMaster?: AesKeyRef | undefined
  uid: Uint8Array
  template: TagTemplate
  /** Number of reads so far. */
  counter?: number
  random?: (length: number) => Uint8Array
}): Promise<SoftwareTag> {
  const { batch, fileMaster, uid, template, ...rest } = options
  if (!batch.demo) throw new RangeError('Only tags of demo batches can be emulated.')
  const { ndef, settings } = template
  return createSoftwareTag({ uid, ...(await chipKeys(batch, uid, fileMaster)), ndef, settings, ...rest })
}
