/**
 * AES-128 blocks and AES-CMAC (RFC 4493) over reusable key schedules of noble's block cipher.
 * The SUN check uses them (spec §4.4; NXP AN12196 calls the MAC CMAC and the block mode CBC with a zero IV).
 */
import { randomBytes } from 'node:crypto'
import { cbc, unsafe } from '@noble/ciphers/aes.js'

/** A result that software returns at once and a remote key store by promise. */
export type Bytes = Uint8Array | Promise<Uint8Array>

/**
 * A block as four little-endian words, as noble's ciphers compute with it. Its functions over bytes make a view of each block, which costs
 * as much as the cipher.
 */
type Words = Int32Array

/** A key that can be used but not read. */
export interface AesKeyRef {
  ecbDecrypt: (block: Uint8Array) => Bytes
  cmac: (message: Uint8Array) => Bytes
  /** Returns the first byte of a decrypted block: a third of the cost of `ecbDecrypt`. */
  firstByte?: (block: Words) => number
  /** Returns the key's bytes, for schemes that are not built from AES. Only an embedded key has them. */
  secret?: () => Uint8Array
  /** Overwrites the key when another one replaces it. A search in progress then finds no tap of it genuine. */
  destroy?: () => void
  /** Aborts when the key is destroyed, for everything that was derived from it. */
  destroyed?: AbortSignal
}

/** An expanded AES-128 key. `destroy` overwrites the schedules; the key is useless afterwards. */
export type AesKey = Readonly<{
  encryptBlock: (block: Uint8Array) => Uint8Array
  ecbDecrypt: (block: Uint8Array) => Uint8Array
  firstByte: (block: Words) => number
  cmac: (message: Uint8Array) => Uint8Array
  destroy: () => void
}>

/** Expands a 16-byte key once for many blocks and MACs. Throws a `RangeError` for another length. */
export function createAesKey(key: Uint8Array): AesKey {
  const forward = expandForward(key)
  let backward: Uint32Array | undefined
  const raw = key.slice()
  const schedule = () => (backward ??= expand(unsafe.expandKeyDecLE, raw))
  return {
    encryptBlock: (block) => bytesOf(encrypt(forward.schedule, wordsOf(block))),
    ecbDecrypt: (block) => bytesOf(decrypt(schedule(), wordsOf(block))),
    firstByte: ([a = 0, b = 0, c = 0, d = 0]) => unsafe.decrypt(schedule(), a, b, c, d).s0 & 0xff,
    cmac: (message) => cmacWith(forward, message),
    destroy: () => {
      for (const secret of [raw, forward.schedule, forward.k1, forward.k2, backward]) secret?.fill(0)
    },
  }
}

/** Returns a block as its words. Throws a `RangeError` for another length than 16. */
export function wordsOf(block: Uint8Array): Words {
  if (block.length !== 16) throw new RangeError('An AES block has 16 bytes.')
  const words = zeroBlock()
  mix(words, block)
  return words
}

/**
 * Makes a key in this process that is readable for the schemes that need its bytes. Other lengths than 16 only have bytes. The key takes
 * over the array: `destroy` fills it with zeros.
 */
export function embeddedKey(key: Uint8Array): AesKeyRef {
  const ending = new AbortController()
  let bytes = key
  let aes = key.length === 16 ? createAesKey(key) : null
  function usable(): AesKey {
    if (aes === null) throw new RangeError('This key is not an AES-128 key.')
    return aes
  }
  return {
    ecbDecrypt: (block) => usable().ecbDecrypt(block),
    cmac: (message) => usable().cmac(message),
    firstByte: (block) => usable().firstByte(block),
    secret: () => bytes,
    destroy: () => {
      aes?.destroy()
      key.fill(0)
      // Zeros are a key that anyone can use. A random one signs nothing that a search in progress could accept.
      bytes = Uint8Array.from(randomBytes(key.length))
      aes = aes && createAesKey(bytes)
      ending.abort()
    },
    destroyed: ending.signal,
  }
}

/** Computes a CMAC under a key that is used once, such as a session key. */
export function cmacOnce(key: Uint8Array, message: Uint8Array): Uint8Array {
  const forward = expandForward(key)
  const mac = cmacWith(forward, message)
  forward.schedule.fill(0)
  return mac
}

/** Computes the MAC of AN10922 §2.2 over at most 16 bytes. It pads them to two blocks, where CMAC pads to one. */
export function twoBlockMac(key: Uint8Array, message: Uint8Array): Uint8Array {
  if (message.length > 16) throw new RangeError('A short diversification input has at most 16 bytes.')
  const { schedule, k2 } = expandForward(key)
  const padded = new Uint8Array(32)
  padded.set(message)
  padded[message.length] = 0x80
  const state = encrypt(schedule, wordsOf(padded.subarray(0, 16)))
  mix(state, padded, 16)
  mix(state, k2)
  const mac = bytesOf(encrypt(schedule, state))
  schedule.fill(0)
  return mac
}

/** Encrypts whole blocks with AES-128-CBC without padding, for secure messaging with a chip. */
export function cbcEncrypt(key: Uint8Array, iv: Uint8Array, plain: Uint8Array): Uint8Array {
  return cbc(key, iv, { disablePadding: true }).encrypt(plain)
}

/** Decrypts what `cbcEncrypt` encrypted. */
export function cbcDecrypt(key: Uint8Array, iv: Uint8Array, cipher: Uint8Array): Uint8Array {
  return cbc(key, iv, { disablePadding: true }).decrypt(cipher)
}

type CmacKey = Readonly<{ schedule: Uint32Array; k1: Uint8Array; k2: Uint8Array }>

/** Expands the schedule and the two subkeys of RFC 4493 §2.3. */
function expandForward(key: Uint8Array): CmacKey {
  if (key.length !== 16) throw new RangeError('An AES-128 key has 16 bytes.')
  const schedule = expand(unsafe.expandKeyLE, key)
  const k1 = unsafe.dbl(bytesOf(encrypt(schedule, zeroBlock())))
  return { schedule, k1, k2: unsafe.dbl(Uint8Array.from(k1)) }
}

/** Expands a copy of the key and overwrites it. Noble makes a view of what it expands: one array for all costs least. */
function expand(by: (key: Uint8Array) => Uint32Array, key: Uint8Array): Uint32Array {
  keyCopy.set(key)
  const schedule = by(keyCopy)
  keyCopy.fill(0)
  return schedule
}

const keyCopy = new Uint8Array(new ArrayBuffer(16))

/** Masks the last block with K1 when it is whole and with K2 when it is padded (RFC 4493 §2.4). */
function cmacWith({ schedule, k1, k2 }: CmacKey, message: Uint8Array): Uint8Array {
  const state = zeroBlock()
  const last = Math.max(0, Math.ceil(message.length / 16) - 1) * 16
  for (let at = 0; at < last; at += 16) {
    mix(state, message, at)
    encrypt(schedule, state)
  }
  const rest = message.length - last
  mix(state, message, last, rest)
  if (rest < 16) mix(state, padding, 0, 1, rest)
  mix(state, rest < 16 ? k2 : k1)
  return bytesOf(encrypt(schedule, state))
}

const padding = Uint8Array.of(0x80)

const zeroBlock = (): Words => new Int32Array(4)

/** XORs bytes of a source into a block, from its byte `to`. */
function mix(state: Words, source: Uint8Array, from = 0, length = 16, to = 0): void {
  for (let index = 0; index < length; index++) {
    const at = to + index
    state[at >> 2] = (state[at >> 2] ?? 0) ^ ((source[from + index] ?? 0) << (8 * (at & 3)))
  }
}

function bytesOf(block: Words): Uint8Array {
  const bytes = new Uint8Array(16)
  for (let index = 0; index < 16; index++) bytes[index] = (block[index >> 2] ?? 0) >> (8 * (index & 3))
  return bytes
}

/** Encrypts a block in place. */
function encrypt(schedule: Uint32Array, block: Words): Words {
  return set(block, unsafe.encrypt(schedule, block[0] ?? 0, block[1] ?? 0, block[2] ?? 0, block[3] ?? 0))
}

/** Decrypts a block in place. */
function decrypt(schedule: Uint32Array, block: Words): Words {
  return set(block, unsafe.decrypt(schedule, block[0] ?? 0, block[1] ?? 0, block[2] ?? 0, block[3] ?? 0))
}

function set(block: Words, { s0, s1, s2, s3 }: ReturnType<typeof unsafe.encrypt>): Words {
  block[0] = s0
  block[1] = s1
  block[2] = s2
  block[3] = s3
  return block
}
