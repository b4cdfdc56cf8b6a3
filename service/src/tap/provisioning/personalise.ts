/**
 * Commands that personalise a blank NTAG 424 DNA (spec §4.4; NXP AN12196 §5, NT4H2421Gx). These pure functions build commands and check
 * answers; the caller owns the reader and the key journal.
 */
import { hexToBytes } from '@noble/hashes/utils.js'
import { cbcDecrypt, cbcEncrypt, cmacOnce, createAesKey } from '../sun/aes.ts'
import { constantTimeEqual } from '../../lib/bytes.ts'
import { join, littleEndian, xor } from '../bytes.ts'
import { oddBytes } from '../sun/sun.ts'

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
  readSignature: hexToBytes('903C0000010000'),
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

/** Returns whether a protected answer (data, MAC, status 9100) belongs to the command sent with this session. */
export function isAnswerValid(session: ChipSession, answer: Uint8Array): boolean {
  if (answer.length < 10 || answer.at(-2) !== 0x91 || answer.at(-1) !== 0x00) return false
  const data = answer.subarray(0, -10)
  const { transactionId, macKey, counter } = session
  const mac = cmacOnce(macKey, join([0x00], littleEndian(counter + 1, 2), transactionId, data))
  return constantTimeEqual(oddBytes(mac), answer.subarray(-10, -2))
}

/** Computes NXP's CRC-32 of keys: the usual polynomial without the final inversion, least significant byte first. */
export function crc32nk(data: Uint8Array): Uint8Array {
  let crc = 0xffffffff
  for (const byte of data) {
    crc ^= byte
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0)
  }
  return littleEndian(crc >>> 0, 4)
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
