/**
 * AES-128 blocks and AES-CMAC (RFC 4493) over reusable key schedules of noble's block cipher.
 * The SUN check uses them (spec §4.4; NXP AN12196 calls the MAC CMAC and the block mode CBC with a zero IV).
 */
import { randomBytes } from 'node:crypto'
import { cbc, unsafe } from '@noble/ciphers/aes.js'

/** A result that software returns at once and a remote key store by promise. */
export type Bytes = Uint8Array | Promise<Uint8Array>

/** A key that can be used but not read. */
export interface AesKeyRef {
  ecbDecrypt: (block: Uint8Array) => Bytes
  cmac: (message: Uint8Array) => Bytes
  /** Returns the first byte of a decrypted block, given as four little-endian words: a third of the cost of `ecbDecrypt`. */
  firstByte?: (block: Uint32Array) => number
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
  firstByte: (block: Uint32Array) => number
  cmac: (message: Uint8Array) => Uint8Array
  destroy: () => void
}>

/** Expands a 16-byte key once for many blocks and MACs. Throws a `RangeError` for another length. */
export function createAesKey(key: Uint8Array): AesKey {
  const forward = expandForward(key)
  let backward: Uint32Array | undefined
  const raw = key.slice()
  const schedule = () => (backward ??= unsafe.expandKeyDecLE(raw))
  return {
    encryptBlock: (block) => encryptBlock(forward.schedule, block),
    ecbDecrypt: (block) => unsafe.decryptBlock(schedule(), copyOfBlock(block)),
    firstByte: ([a = 0, b = 0, c = 0, d = 0]) => unsafe.decrypt(schedule(), a, b, c, d).s0 & 0xff,
    cmac: (message) => cmacWith(forward, message),
    destroy: () => {
      for (const secret of [raw, forward.schedule, forward.k1, forward.k2, backward]) secret?.fill(0)
    },
  }
}

/** Returns a block as the words that `firstByte` reads. */
export function littleEndianWords(block: Uint8Array): Uint32Array {
  const view = new DataView(block.buffer, block.byteOffset, block.length)
  return Uint32Array.from({ length: 4 }, (_word, index) => view.getUint32(4 * index, true))
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
  mix(padded.subarray(16), k2, 0, 16)
  const state = encryptBlock(schedule, padded.subarray(0, 16))
  mix(state, padded, 16, 16)
  unsafe.encryptBlock(schedule, state)
  schedule.fill(0)
  return state
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
  const schedule = unsafe.expandKeyLE(key)
  const k1 = unsafe.dbl(encryptBlock(schedule, zeroBlock))
  return { schedule, k1, k2: unsafe.dbl(k1.slice()) }
}

const zeroBlock = new Uint8Array(16)

function encryptBlock(schedule: Uint32Array, block: Uint8Array): Uint8Array {
  return unsafe.encryptBlock(schedule, copyOfBlock(block))
}

/** Copies a block, because noble's block functions work in place and need it aligned. */
function copyOfBlock(block: Uint8Array): Uint8Array {
  if (block.length !== 16) throw new RangeError('An AES block has 16 bytes.')
  const copy = new Uint8Array(16)
  copy.set(block)
  return copy
}

/** Masks the last block with K1 when it is whole and with K2 when it is padded (RFC 4493 §2.4). */
function cmacWith({ schedule, k1, k2 }: CmacKey, message: Uint8Array): Uint8Array {
  const state = new Uint8Array(16)
  const last = Math.max(0, Math.ceil(message.length / 16) - 1) * 16
  for (let at = 0; at < last; at += 16) {
    mix(state, message, at, 16)
    unsafe.encryptBlock(schedule, state)
  }
  const rest = message.length - last
  mix(state, message, last, rest)
  if (rest < 16) state[rest] = (state[rest] ?? 0) ^ 0x80
  mix(state, rest < 16 ? k2 : k1, 0, 16)
  return unsafe.encryptBlock(schedule, state)
}

function mix(state: Uint8Array, source: Uint8Array, from: number, length: number): void {
  for (let index = 0; index < length; index++) state[index] = (state[index] ?? 0) ^ (source[from + index] ?? 0)
}
