/**
 * An NTAG 424 DNA in software, for demos and tests (spec §4.4; NXP NT4H2421Gx): answers SELECT and READ BINARY, mirrors UID, counter
 * and MAC into file 02 by its own file settings. It holds keys in the open, so it is made for demo batches only.
 */
import { randomBytes } from 'node:crypto'
import { createAesKey } from './aes.ts'
import { hexOf, join, littleEndian, textBytes } from './bytes.ts'
import { sessionVector, sunMac } from './sun.ts'
import { addressOf } from './template.ts'

export type SoftwareTag = Readonly<{
  /** One ISO 7816 command, one answer with its status word. */
  transmit: (command: Uint8Array) => Uint8Array
  /** What a phone does: select, read, open. `null` when the chip refuses or holds no address. */
  tap: () => string | null
  /** Starts a new life of the counter, as the chip does. */
  changeFileSettings: (settings: Uint8Array) => void
  counter: () => number
}>

export type SoftwareTagOptions = Readonly<{
  uid: Uint8Array
  metaKey: Uint8Array
  fileKey: Uint8Array
  /** File 02 from offset 0, with placeholders. */
  ndef: Uint8Array
  /** Data of ChangeFileSettings, without the file number. */
  settings: Uint8Array
  /** Counts so far. */
  counter?: number
  /** Source of the padding. */
  random?: (length: number) => Uint8Array
}>

export function createSoftwareTag(options: SoftwareTagOptions): SoftwareTag {
  const { uid, random = randomBytes } = options
  const meta = createAesKey(options.metaKey)
  const fileKey = createAesKey(options.fileKey)
  const stored = new Uint8Array(256)
  stored.set(options.ndef)
  let sdm = readSettings(options.settings)
  let counter = options.counter ?? 0
  let selected: 'nothing' | 'application' | 'capabilities' | 'address' = 'nothing'
  let shown: Uint8Array | null = null

  /** File 02 with its mirrors, for as long as only reads follow each other. */
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
    file.set(textBytes(hexOf(picc)), sdm.piccOffset)
    const session = fileKey.cmac(sessionVector(sdm.mirrorsUid ? uid : null, sdm.mirrorsCounter ? counter : null))
    const mac = sunMac(session, file.subarray(sdm.macInputOffset, sdm.macOffset))
    file.set(textBytes(hexOf(mac)), sdm.macOffset)
    shown = file
    return file
  }

  function transmit(command: Uint8Array): Uint8Array {
    const head = hexOf(command.subarray(0, 4))
    if (command[1] === 0xb0) return readBinary(command)
    shown = null
    if (head.startsWith('00A4')) {
      const name = hexOf(command.subarray(5, 5 + (command[4] ?? 0)))
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
    tap: () => {
      for (const select of [selectApplication, selectAddressFile]) transmit(select)
      const answer = transmit(readAll)
      return answer.length > 2 ? addressOf(answer.subarray(0, -2)) : null
    },
    changeFileSettings: (settings) => {
      sdm = readSettings(settings)
      counter = 0
      shown = null
    },
    counter: () => counter,
  }
}

/** The settings a mirror follows: options byte, then the offsets in their order (encrypted PICC, MAC over plain data). */
function readSettings(settings: Uint8Array) {
  const options = settings[3] ?? 0
  const offset = (index: number) => (settings[index] ?? 0) | ((settings[index + 1] ?? 0) << 8)
  if (settings[0] !== 0x40 || settings.length !== 15)
    throw new RangeError('The software tag knows SDM with encrypted PICC data only.')
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

/** Valid and last: after it the chip answers with an error for ever. */
const lastCounter = 0xffffff

const fileNames: Readonly<Record<string, 'application' | 'capabilities' | 'address'>> = {
  D2760000850101: 'application',
  E103: 'capabilities',
  E104: 'address',
}
const selectApplication = Uint8Array.from(Buffer.from('00A4040C07D276000085010100', 'hex'))
const selectAddressFile = Uint8Array.from(Buffer.from('00A4000C02E104', 'hex'))
const readAll = Uint8Array.from(Buffer.from('00B0000000', 'hex'))
const capabilityContainer = Uint8Array.from(Buffer.from('001720010000FF0406E104010000000506E10500808283', 'hex'))
