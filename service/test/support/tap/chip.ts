/**
 * A blank NTAG 424 DNA in software, for tests of personalisation (NXP NT4H2421Gx; AN12196 §5). It checks every MAC, decrypts what is
 * protected, changes its own keys and settings, and mirrors taps through the software tag once SDM is on.
 */
import { randomBytes } from 'node:crypto'
import { cbcDecrypt, cbcEncrypt, cmacOnce, createAesKey } from '../../../src/tap/sun/aes.ts'
import { constantTimeEqual } from '../../../src/lib/bytes.ts'
import { toHex, join, littleEndian, xor } from '../../../src/tap/bytes.ts'
import { crc32nk, sessionKeys, type ChipSession } from '../../../src/tap/provisioning/personalise.ts'
import { createSoftwareTag, type SoftwareTag } from '../../../src/tap/provisioning/software-tag.ts'
import { oddBytes } from '../../../src/tap/sun/sun.ts'

export type Chip = ReturnType<typeof createChip>

const zero = new Uint8Array(16)
const factorySettings = Uint8Array.from(Buffer.from('0000E0EE000100', 'hex'))

export function createChip({
  uid,
  signature = new Uint8Array(56),
  random = randomBytes,
}: {
  uid: Uint8Array
  /** NXP's originality signature. */
  signature?: Uint8Array
  random?: (length: number) => Uint8Array
}) {
  const keys: Uint8Array[] = Array.from({ length: 5 }, () => zero)
  const versions = [0, 0, 0, 0, 0]
  const file = new Uint8Array(256)
  let settings: Uint8Array = factorySettings
  let isFileSelected = false
  let frames: Uint8Array[] = []
  let challenge: { keyNo: number; rndB: Uint8Array } | null = null
  let session: (ChipSession & { keyNo: number }) | null = null
  let tag: SoftwareTag | null = null
  let failures = 0

  function transmit(command: Uint8Array): Uint8Array {
    const data = command.subarray(5, 5 + (command[4] ?? 0))
    if (command[0] === 0x00) return iso(command, data)
    const code = command[1] ?? 0
    if (code === 0xaf) return challenge === null ? nextFrame() : prove(data)
    challenge = null
    const handle = native[code]
    return handle === undefined ? status(0x911c) : handle(data, code)
  }

  function iso(command: Uint8Array, data: Uint8Array): Uint8Array {
    if (command[1] === 0xa4) {
      isFileSelected = toHex(data) === 'E104'
      if (!isFileSelected) session = null
      tag?.transmit(Uint8Array.from(Buffer.from('00A4040C07D276000085010100', 'hex')))
      tag?.transmit(Uint8Array.from(Buffer.from('00A4000C02E104', 'hex')))
      return status(isFileSelected || toHex(data) === 'D2760000850101' ? 0x9000 : 0x6a82)
    }
    if (!isFileSelected) return status(0x6986)
    if (command[1] === 0xb0)
      return tag?.transmit(command) ?? join(file.subarray(command[3] ?? 0, (command[3] ?? 0) + 128), status(0x9000))
    if (command[1] !== 0xd6) return status(0x6d00)
    if ((settings[3] ?? 0) !== 0xee) return status(0x6982) // writing is no longer free
    file.set(data, ((command[2] ?? 0) << 8) | (command[3] ?? 0))
    return status(0x9000)
  }

  const native: Readonly<Record<number, (data: Uint8Array, code: number) => Uint8Array>> = {
    0x60: () => {
      frames = [new Uint8Array(7).fill(4), join(uid, new Uint8Array(7))]
      return join(new Uint8Array(7).fill(4), status(0x91af))
    },
    0x3c: () => join(signature, status(0x9190)),
    0xf5: () => join(settings, status(0x9100)),
    0x64: (data) => join([versions[data[0] ?? 0] ?? 0], status(0x9100)),
    0x71: (data) => {
      if (failures > 50) return status(0x91ad)
      session = null
      challenge = { keyNo: data[0] ?? 0, rndB: random(16) }
      return join(cbcEncrypt(keys[challenge.keyNo] ?? zero, zero, challenge.rndB), status(0x91af))
    },
    0x5f: (data) =>
      protectedCommand(0x5f, data, (plain) => {
        settings = join([0x00], plain.subarray(0, 3), [0x00, 0x01, 0x00], plain.subarray(3))
        tag = null
        return true
      }),
    0xc4: (data) => protectedCommand(0xc4, data, (plain) => changeKey(data[0] ?? 0, plain)),
  }

  function nextFrame(): Uint8Array {
    const frame = frames.shift()
    return frame === undefined ? status(0x911c) : join(frame, status(frames.length > 0 ? 0x91af : 0x9100))
  }

  function prove(data: Uint8Array): Uint8Array {
    const { keyNo, rndB } = challenge ?? { keyNo: 0, rndB: zero }
    challenge = null
    const key = keys[keyNo] ?? zero
    const plain = cbcDecrypt(key, zero, data)
    const rndA = plain.slice(0, 16)
    if (!constantTimeEqual(plain.subarray(16), rotated(rndB))) {
      failures++
      return status(0x91ae)
    }
    const transactionId = random(4)
    session = { keyNo, transactionId, ...sessionKeys(key, rndA, rndB), counter: 0 }
    return join(cbcEncrypt(key, zero, join(transactionId, rotated(rndA), new Uint8Array(12))), status(0x9100))
  }

  function protectedCommand(code: number, data: Uint8Array, apply: (plain: Uint8Array) => boolean): Uint8Array {
    if (session === null || session.keyNo !== 0) return status(0x919d)
    const { transactionId, encryptionKey, macKey, counter } = session
    const count = littleEndian(counter, 2)
    const sealed = data.subarray(1, -8)
    const mac = cmacOnce(macKey, join([code], count, transactionId, data.subarray(0, 1), sealed))
    if (!constantTimeEqual(oddBytes(mac), data.subarray(-8))) return status(0x911e)
    const iv = createAesKey(encryptionKey).encryptBlock(join([0xa5, 0x5a], transactionId, count, new Uint8Array(8)))
    const plain = cbcDecrypt(encryptionKey, iv, sealed)
    if (!apply(plain.subarray(0, plain.lastIndexOf(0x80)))) return status(0x919e)
    if (code === 0xc4 && data[0] === 0) {
      session = null
      return status(0x9100)
    }
    session = { ...session, counter: counter + 1 }
    return join(oddBytes(cmacOnce(macKey, join([0], littleEndian(counter + 1, 2), transactionId))), status(0x9100))
  }

  function changeKey(slot: number, plain: Uint8Array): boolean {
    const newKey = slot === 0 ? plain.slice(0, 16) : xor(plain.subarray(0, 16), keys[slot] ?? zero)
    if (slot !== 0 && !constantTimeEqual(crc32nk(newKey), plain.subarray(17))) return false
    keys[slot] = newKey
    versions[slot] = plain[16] ?? 0
    tag = null
    return true
  }

  /** File 02 as a phone sees it, once the chip mirrors. */
  function mirroring(command: Uint8Array): Uint8Array {
    const isReading = command[0] === 0 && (command[1] === 0xb0 || command[1] === 0xa4)
    if (isReading && tag === null && ((settings[1] ?? 0) & 0x40) !== 0)
      tag = createSoftwareTag({
        uid,
        metaKey: keys[1] ?? zero,
        fileKey: keys[2] ?? zero,
        ndef: file,
        settings: join(settings.subarray(1, 4), settings.subarray(7)),
      })
    return transmit(command)
  }

  return {
    transmit: mirroring,
    keys: () => keys.map(toHex),
    versions: () => [...versions],
    settings: () => toHex(settings),
    failures: () => failures,
    /** Puts the chip into the middle of a session, for published examples. */
    enter: (next: ChipSession, slots: Readonly<Record<number, Uint8Array>> = {}) => {
      session = { ...next, keyNo: 0 }
      for (const [slot, key] of Object.entries(slots)) keys[Number(slot)] = key
    },
  }
}

function rotated(block: Uint8Array): Uint8Array {
  return join(block.subarray(1), block.subarray(0, 1))
}

function status(word: number): Uint8Array {
  return Uint8Array.of(word >> 8, word & 0xff)
}
