/**
 * Personalises a blank NTAG 424 DNA as a tag of a batch (spec §4.4; NXP AN12196 §5, NT4H2421Gx). Every change that could lock the chip is
 * written to the journal before it is sent, so that a chip taken off the reader at any moment is finished by putting it back.
 * It never switches LRP on, because that cannot be undone. The caller owns the reader.
 */
import { crc32 } from 'node:zlib'
import { randomBytes } from 'node:crypto'
import { hexToBytes } from '@noble/hashes/utils.js'
import { sleep } from '../../lib/async/sleep.ts'
import { constantTimeEqual } from '../../lib/bytes.ts'
import { join, littleEndian, toHex, xor } from '../bytes.ts'
import { readSignature } from './originality.ts'
import { parseFileUrl, type TagTemplate } from './template.ts'
import { cbcDecrypt, cbcEncrypt, cmacOnce, createAesKey } from '../sun/aes.ts'
import { oddBytes } from '../sun/sun.ts'

/** Sends one command and returns the answer with its status word. Throws when the chip was removed. */
export type Transmit = (command: Uint8Array) => Promise<Uint8Array>

/** The slots whose new key was sent, and those of them that the chip confirmed. */
export type KeyProgress = Readonly<{ begun: readonly number[]; confirmed: readonly number[] }>
export type KeyJournal = Readonly<{
  /** Returns null for a chip that was never begun. */
  read: (uid: string) => Promise<KeyProgress | null>
  /** Resolves when the progress is durable. */
  write: (uid: string, progress: KeyProgress) => Promise<void>
}>

type Personalisation = Readonly<{
  transmit: Transmit
  /** Returns the template of the chip with this UID. It may throw `ChipError` for a chip that must not be written. */
  templateOf: (uid: Uint8Array) => Promise<TagTemplate>
  /** Checks NXP's signature of a UID; left out: it is not read. */
  isOriginal?: ((uid: Uint8Array, signature: Uint8Array) => boolean) | undefined
  /** Returns the five keys of the chip with this UID, by slot. */
  keysOf: (uid: Uint8Array) => Promise<readonly Uint8Array[]>
  /** Version byte of every key: the epoch modulo 256. */
  version: number
  journal: KeyJournal
  random?: (length: number) => Uint8Array
}>

/** The chip could not be personalised. The message is one sentence. */
export class ChipError extends Error {}

const noTag = 'The chip answers too briefly for an NTAG 424 DNA: put it aside.'

/** Personalises a chip and returns its UID and a URL that it showed at the end. Throws `ChipError`, and what `transmit` throws. */
export async function personalise(options: Personalisation): Promise<{ uid: Uint8Array; address: string }> {
  const { transmit, templateOf, isOriginal, keysOf, version, journal, random = randomBytes } = options

  async function send(command: Uint8Array, step: string, wanted = 0x9100): Promise<Uint8Array> {
    const answer = await transmit(command)
    if (statusOf(answer) !== wanted) throw new ChipError(`The chip refused to ${step} (${toHex(answer.subarray(-2))}).`)
    return answer.subarray(0, -2)
  }

  /** Returns null when the chip has another key in this slot. After failures the chip demands a pause; after a thousand it locks. */
  async function authenticate(keyNo: number, key: Uint8Array): Promise<ChipSession | null> {
    for (let tries = 0; tries < 50; tries++) {
      const first = await transmit(authenticateFirst(keyNo))
      if (statusOf(first) === 0x91ad) {
        await sleep(100)
        continue
      }
      if (statusOf(first) !== 0x91af) throw new ChipError(`The chip takes no key (${toHex(first.subarray(-2))}).`)
      const challenge = first.subarray(0, -2)
      if (challenge.length !== 16) throw new ChipError(noTag)
      const rndA = random(16)
      const second = await transmit(authenticateSecond(key, rndA, challenge))
      if (statusOf(second) === 0x91ad) continue
      if (statusOf(second) !== 0x9100) return null
      return openSession(key, rndA, challenge, second.subarray(0, -2))
    }
    throw new ChipError('The chip demands a longer pause; try it again later.')
  }

  async function asMaster(key: Uint8Array): Promise<ChipSession> {
    const session = await authenticate(0, key)
    if (session === null) throw new ChipError('The chip does not open with its master key; it is not blank.')
    return session
  }

  await send(plainCommands.selectApplication, 'select its application', 0x9000)
  await send(plainCommands.getVersion, 'report its version', 0x91af)
  await send(plainCommands.more, 'report its version', 0x91af)
  const uid = (await send(plainCommands.more, 'report its version')).slice(0, 7)
  if (uid.length !== 7) throw new ChipError(noTag)
  const name = toHex(uid)
  if (isOriginal?.(uid, await send(readSignature, 'show its originality signature', 0x9190)) === false)
    throw new ChipError(`Chip ${name} has no originality signature of NXP: it is no NTAG 424 DNA, put it aside.`)
  const template = await templateOf(uid)
  const known = await journal.read(name)
  let progress = known ?? { begun: [], confirmed: [] }
  const settings = await send(plainCommands.getFileSettings, 'report its file settings')
  if (known === null) await assertBlank(settings)
  const keys = await keysOf(uid)
  const keyOf = (slot: number) => keys[slot] ?? factoryKey

  if (!progress.begun.includes(0) || (await authenticate(0, factoryKey)) !== null) {
    let session = await asMaster(factoryKey)
    await journal.write(name, progress)
    if (!isSet(settings, template)) session = await writeAddress()
    for (const slot of [1, 2, 3, 4]) session = await change(slot, session)
    await changeLast(session)
  } else {
    await asMaster(keyOf(0)) // its answer was lost, not its change
  }
  return { uid, address: await readBack() }

  async function assertBlank(found: Uint8Array): Promise<void> {
    const versions: number[] = []
    for (const slot of [0, 1, 2, 3, 4])
      versions.push((await send(getKeyVersion(slot), 'report its key versions'))[0] ?? 255)
    if (((found[1] ?? 255) & 0x40) !== 0 || versions.some((one) => one !== 0))
      throw new ChipError(`Chip ${name} is not blank: SDM is on, or a key was changed.`)
  }

  /** Writes file 02, which is free to write on a blank chip. Selecting a file ends the session. */
  async function writeAddress(): Promise<ChipSession> {
    await send(plainCommands.selectAddressFile, 'open its address file', 0x9000)
    for (const command of updateBinary(template.ndef)) await send(command, 'take the address', 0x9000)
    await send(plainCommands.selectApplication, 'select its application', 0x9000)
    const session = await asMaster(factoryKey)
    await confirmed(session, changeFileSettings(session, template.settings), 'take the file settings')
    return nextCommand(session)
  }

  async function change(slot: number, session: ChipSession): Promise<ChipSession> {
    if (progress.confirmed.includes(slot)) return session
    if (progress.begun.includes(slot)) {
      const isChanged = (await authenticate(slot, keyOf(slot))) !== null
      session = await asMaster(factoryKey)
      if (isChanged) {
        await note('confirmed', slot)
        return session
      }
    }
    await note('begun', slot)
    const order = { keyNo: slot, oldKey: factoryKey, newKey: keyOf(slot), version }
    await confirmed(session, changeKey(session, order), `take key ${slot}`)
    await note('confirmed', slot)
    return nextCommand(session)
  }

  /** Changes key 0, which ends the session. Its answer carries no MAC. */
  async function changeLast(session: ChipSession): Promise<void> {
    await note('begun', 0)
    const order = { keyNo: 0, oldKey: factoryKey, newKey: keyOf(0), version }
    await send(changeKey(session, order), 'take its master key')
    await note('confirmed', 0)
  }

  async function note(list: keyof KeyProgress, slot: number): Promise<void> {
    progress = { ...progress, [list]: [...new Set([...progress[list], slot])] }
    await journal.write(name, progress)
  }

  async function confirmed(session: ChipSession, command: Uint8Array, step: string): Promise<void> {
    if (!isAnswerValid(session, await send(command, step)))
      throw new ChipError(`The chip's answer is not genuine (${step}); put it back.`)
  }

  async function readBack(): Promise<string> {
    await send(plainCommands.selectApplication, 'select its application', 0x9000)
    await send(plainCommands.selectAddressFile, 'open its address file', 0x9000)
    const halves = [
      await send(readHalf(0x00), 'show its address', 0x9000),
      await send(readHalf(0x80), 'show its address', 0x9000),
    ]
    const address = parseFileUrl(join(...halves))
    if (address === null) throw new ChipError(`Chip ${name} shows no address.`)
    return address
  }
}

function statusOf(answer: Uint8Array): number {
  return ((answer.at(-2) ?? 0) << 8) | (answer.at(-1) ?? 0)
}

/** Compares the settings. GetFileSettings adds a type byte in front and the file size after the access rights. */
function isSet(found: Uint8Array, { settings }: TagTemplate): boolean {
  return toHex(join(found.subarray(1, 4), found.subarray(7))) === toHex(settings)
}

/** Builds READ BINARY of a half. The chip mirrors the same tap into both, because consecutive reads count once. */
function readHalf(offset: number): Uint8Array {
  return Uint8Array.of(0x00, 0xb0, 0x00, offset, 0x80)
}

const factoryKey = new Uint8Array(16)

/** A session after AuthenticateEV2First. `counter` counts commands; see `nextCommand`. */
export type ChipSession = Readonly<{
  transactionId: Uint8Array
  encryptionKey: Uint8Array
  macKey: Uint8Array
  counter: number
}>

/** Commands that need no session, in the order of personalisation. */
export const plainCommands = {
  selectApplication: hexToBytes('00A4040C07D276000085010100'),
  selectAddressFile: hexToBytes('00A4000C02E10400'),
  getVersion: hexToBytes('9060000000'),
  more: hexToBytes('90AF000000'),
  getFileSettings: hexToBytes('90F50000010200'),
} as const

/** Builds GetKeyVersion for slots 0 to 4. A blank chip answers 00 to each. */
export function getKeyVersion(keyNo: number): Uint8Array {
  return wrap(0x64, Uint8Array.of(keyNo))
}

/** Builds ISO UpdateBinary of the selected file, at most 248 bytes per command. */
export function updateBinary(data: Uint8Array): Uint8Array[] {
  const commands: Uint8Array[] = []
  for (let at = 0; at < data.length; at += 0xf8) {
    const part = data.subarray(at, at + 0xf8)
    commands.push(join([0x00, 0xd6, at >> 8, at & 0xff, part.length], part))
  }
  return commands
}

/** Builds the first half of AuthenticateEV2First, which requests the chip's challenge. */
export function authenticateFirst(keyNo: number): Uint8Array {
  return join([0x90, 0x71, 0x00, 0x00, 0x02, keyNo, 0x00, 0x00])
}

/** Builds the second half, which proves the key with `rndA` (16 random bytes) and the chip's encrypted challenge. */
export function authenticateSecond(key: Uint8Array, rndA: Uint8Array, encryptedRndB: Uint8Array): Uint8Array {
  const rndB = cbcDecrypt(key, zeroIv, encryptedRndB)
  return wrap(0xaf, cbcEncrypt(key, zeroIv, join(rndA, rotated(rndB))))
}

/** Opens the session, or returns `null` when the chip does not hold the key. `answer` is without its status word. */
export function openSession(
  key: Uint8Array,
  rndA: Uint8Array,
  encryptedRndB: Uint8Array,
  answer: Uint8Array,
): ChipSession | null {
  if (answer.length !== 32) return null
  const plain = cbcDecrypt(key, zeroIv, answer)
  if (!constantTimeEqual(plain.subarray(4, 20), rotated(rndA))) return null
  const rndB = cbcDecrypt(key, zeroIv, encryptedRndB)
  return { transactionId: plain.slice(0, 4), ...sessionKeys(key, rndA, rndB), counter: 0 }
}

/** Derives the two session keys of AN12196 §5.6: CMAC over A55A… and 5AA5…. */
export function sessionKeys(
  key: Uint8Array,
  rndA: Uint8Array,
  rndB: Uint8Array,
): { encryptionKey: Uint8Array; macKey: Uint8Array } {
  const tail = join(
    rndA.subarray(0, 2),
    xor(rndA.subarray(2, 8), rndB.subarray(0, 6)),
    rndB.subarray(6, 16),
    rndA.subarray(8, 16),
  )
  const vector = (first: number, second: number) => join([first, second, 0x00, 0x01, 0x00, 0x80], tail)
  return { encryptionKey: cmacOnce(key, vector(0xa5, 0x5a)), macKey: cmacOnce(key, vector(0x5a, 0xa5)) }
}

/** Builds ChangeFileSettings of file 02 under full protection. */
export function changeFileSettings(session: ChipSession, settings: Uint8Array): Uint8Array {
  return fullCommand(session, 0x5f, Uint8Array.of(0x02), settings)
}

/**
 * Builds ChangeKey: the new key masked with the old one, its version, and the checksum of the new key.
 * Slot 0 takes the plain new key; it comes last because it ends the session.
 */
export function changeKey(
  session: ChipSession,
  { keyNo, oldKey, newKey, version }: { keyNo: number; oldKey: Uint8Array; newKey: Uint8Array; version: number },
): Uint8Array {
  const data = keyNo === 0 ? join(newKey, [version]) : join(xor(newKey, oldKey), [version], crc32nk(newKey))
  return fullCommand(session, 0xc4, Uint8Array.of(keyNo), data)
}

/** Returns the session for the next command. */
export function nextCommand(session: ChipSession): ChipSession {
  return { ...session, counter: session.counter + 1 }
}

/** Returns whether an answer without data and status word, its MAC alone, belongs to the command sent with this session. */
export function isAnswerValid({ transactionId, macKey, counter }: ChipSession, answer: Uint8Array): boolean {
  const mac = cmacOnce(macKey, join([0x00], littleEndian(counter + 1, 2), transactionId))
  return constantTimeEqual(oddBytes(mac), answer)
}

/** Computes NXP's CRC-32 of keys: the usual polynomial without the final inversion, least significant byte first. */
export function crc32nk(data: Uint8Array): Uint8Array {
  return littleEndian(~crc32(data) >>> 0, 4)
}

/** Protects a command by CommMode.Full: data encrypted under an IV made of the command counter, then a MAC over everything. */
function fullCommand(session: ChipSession, code: number, header: Uint8Array, data: Uint8Array): Uint8Array {
  const { transactionId, encryptionKey, macKey, counter } = session
  const count = littleEndian(counter, 2)
  const iv = createAesKey(encryptionKey).encryptBlock(join([0xa5, 0x5a], transactionId, count, new Uint8Array(8)))
  const sealed = cbcEncrypt(encryptionKey, iv, padded(data))
  const mac = cmacOnce(macKey, join([code], count, transactionId, header, sealed))
  return wrap(code, join(header, sealed, oddBytes(mac)))
}

function wrap(code: number, data: Uint8Array): Uint8Array {
  return join([0x90, code, 0x00, 0x00, data.length], data, [0x00])
}

function padded(data: Uint8Array): Uint8Array {
  const whole = new Uint8Array(Math.floor(data.length / 16 + 1) * 16)
  whole.set(data)
  whole[data.length] = 0x80
  return whole
}

function rotated(block: Uint8Array): Uint8Array {
  return join(block.subarray(1), block.subarray(0, 1))
}

const zeroIv = new Uint8Array(16)
