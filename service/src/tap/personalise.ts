/**
 * Commands that make a blank NTAG 424 DNA one of ours (spec §4.4; NXP AN12196 §5, NT4H2421Gx): pure functions over bytes.
 * They build commands and check answers; the reader and the journal of keys belong to whoever sends them.
 */
import { cbcDecrypt, cbcEncrypt, cmacOnce, createAesKey } from './aes.ts'
import { join, littleEndian, sameBytes, xor } from './bytes.ts'
import { oddBytes } from './sun.ts'

/** A session after AuthenticateEV2First. `counter` counts commands; each builder gives the session to use next. */
export type ChipSession = Readonly<{
  transactionId: Uint8Array
  encryptionKey: Uint8Array
  macKey: Uint8Array
  counter: number
}>

/** Commands that need no session, in the order of personalisation. */
export const plainCommands = {
  selectApplication: bytes('00A4040C07D276000085010100'),
  selectAddressFile: bytes('00A4000C02E10400'),
  getVersion: bytes('9060000000'),
  more: bytes('90AF000000'),
  readSignature: bytes('903C0000010000'),
  getFileSettings: bytes('90F50000010200'),
} as const

/** GetKeyVersion for slots 0 to 4: a blank chip answers 00 to each. */
export function getKeyVersion(keyNo: number): Uint8Array {
  return wrap(0x64, Uint8Array.of(keyNo))
}

/** ISO UpdateBinary of the selected file, at most 255 bytes a command. */
export function updateBinary(data: Uint8Array): Uint8Array[] {
  const commands: Uint8Array[] = []
  for (let at = 0; at < data.length; at += 0xf8) {
    const part = data.subarray(at, at + 0xf8)
    commands.push(join([0x00, 0xd6, at >> 8, at & 0xff, part.length], part))
  }
  return commands
}

/** First half of AuthenticateEV2First: asks for the chip's challenge. */
export function authenticateFirst(keyNo: number): Uint8Array {
  return join([0x90, 0x71, 0x00, 0x00, 0x02, keyNo, 0x00, 0x00])
}

/** Second half: proves the key with `rndA` (16 random bytes) and the chip's encrypted challenge. */
export function authenticateSecond(key: Uint8Array, rndA: Uint8Array, encryptedRndB: Uint8Array): Uint8Array {
  const rndB = cbcDecrypt(key, zeroIv, encryptedRndB)
  return wrap(0xaf, cbcEncrypt(key, zeroIv, join(rndA, rotated(rndB))))
}

/** The session, or `null` when the answer shows that the chip does not hold the key. `answer` is without its status word. */
export function openSession(
  key: Uint8Array,
  rndA: Uint8Array,
  encryptedRndB: Uint8Array,
  answer: Uint8Array,
): ChipSession | null {
  if (answer.length !== 32) return null
  const plain = cbcDecrypt(key, zeroIv, answer)
  if (!sameBytes(plain.subarray(4, 20), rotated(rndA))) return null
  const rndB = cbcDecrypt(key, zeroIv, encryptedRndB)
  return { transactionId: plain.slice(0, 4), ...sessionKeys(key, rndA, rndB), counter: 0 }
}

/** The two session keys of AN12196 §5.6: CMAC over A55A… and 5AA5…. */
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

/** ChangeFileSettings of file 02 under full protection. */
export function changeFileSettings(session: ChipSession, settings: Uint8Array): Uint8Array {
  return fullCommand(session, 0x5f, Uint8Array.of(0x02), settings)
}

/**
 * ChangeKey for slots 1 to 4: the new key masked with the old one, its version, and the checksum of the new key.
 * For slot 0 the old key is not needed; the chip ends the session with it, so it comes last.
 */
export function changeKey(
  session: ChipSession,
  { keyNo, oldKey, newKey, version }: { keyNo: number; oldKey: Uint8Array; newKey: Uint8Array; version: number },
): Uint8Array {
  const data = keyNo === 0 ? join(newKey, [version]) : join(xor(newKey, oldKey), [version], crc32nk(newKey))
  return fullCommand(session, 0xc4, Uint8Array.of(keyNo), data)
}

/** The session for the command after this one. */
export function nextCommand(session: ChipSession): ChipSession {
  return { ...session, counter: session.counter + 1 }
}

/** Whether a protected answer (data, MAC, status 9100) belongs to the command sent with this session. */
export function answerHolds(session: ChipSession, answer: Uint8Array): boolean {
  if (answer.length < 10 || answer.at(-2) !== 0x91 || answer.at(-1) !== 0x00) return false
  const data = answer.subarray(0, -10)
  const { transactionId, macKey, counter } = session
  const mac = cmacOnce(macKey, join([0x00], littleEndian(counter + 1, 2), transactionId, data))
  return sameBytes(oddBytes(mac), answer.subarray(-10, -2))
}

/** CRC-32 as NXP uses it for keys: the usual polynomial without the final inversion, least significant byte first. */
export function crc32nk(data: Uint8Array): Uint8Array {
  let crc = 0xffffffff
  for (const byte of data) {
    crc ^= byte
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0)
  }
  return littleEndian(crc >>> 0, 4)
}

/** CommMode.Full: data encrypted under an IV made of the command counter, then everything under the MAC. */
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

function bytes(hex: string): Uint8Array {
  return Uint8Array.from(Buffer.from(hex, 'hex'))
}

const zeroIv = new Uint8Array(16)
