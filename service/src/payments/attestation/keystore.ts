/** Reads a private key from a password-protected file: Web3 Secret Storage Definition, version 3 (geth, clef, cast, MetaMask exports). */
import { createDecipheriv, pbkdf2 } from 'node:crypto'
import { promisify } from 'node:util'
import { scryptAsync } from '@noble/hashes/scrypt.js'
import { bytesToHex, keccak256 } from 'viem/utils'
import { privateKeyToAddress } from 'viem/accounts'
import { constantTimeEqual, parseHex } from '../../lib/bytes.ts'
import { isObject, parseJsonObject, type JsonObject } from '../../lib/json.ts'

/** The key, or a reason that quotes neither the file nor the password. */
type KeystoreResult =
  | { readonly ok: true; readonly privateKey: Uint8Array }
  | { readonly ok: false; readonly reason: string }

const maxLength = 16_384
/** Twice the memory of geth's standard scrypt. */
const maxMemory = 512 * 1024 * 1024
/** Eight times the work of geth's standard scrypt. */
const maxWork = 8 * 262_144 * 8
const maxRounds = 10_000_000

/** Takes up to some seconds, by design of the format. */
export async function readKeystore(text: string, password: string): Promise<KeystoreResult> {
  const stored = parse(text)
  if (typeof stored === 'string') return refused(stored)
  const { cipherText, iv, mac, derive, address } = stored
  const key = await derive(password)
  const found = keccak256(Buffer.concat([key.subarray(16, 32), cipherText]), 'bytes')
  if (!constantTimeEqual(found, mac)) return refused('the password is wrong, or the file is damaged')
  const decipher = createDecipheriv('aes-128-ctr', key.subarray(0, 16), iv)
  const privateKey = Uint8Array.from(Buffer.concat([decipher.update(cipherText), decipher.final()]))
  if (address !== null && address !== addressOf(privateKey)) return refused('it holds the key of another address')
  return { ok: true, privateKey }
}

type Stored = {
  readonly cipherText: Uint8Array
  readonly iv: Uint8Array
  readonly mac: Uint8Array
  readonly derive: (password: string) => Promise<Uint8Array>
  readonly address: string | null
}

function parse(text: string): Stored | string {
  const file = text.length <= maxLength ? parseJsonObject(text) : null
  if (file === null) return 'it is not a JSON object'
  if (file['version'] !== 3) return 'it is not of version 3'
  const crypto = memberOf(file, 'crypto') ?? memberOf(file, 'Crypto')
  if (crypto === null || crypto['cipher'] !== 'aes-128-ctr') return 'its cipher is not aes-128-ctr'
  const cipherText = parseBytes(crypto['ciphertext'], 32)
  const iv = parseBytes(memberOf(crypto, 'cipherparams')?.['iv'], 16)
  const mac = parseBytes(crypto['mac'], 32)
  if (cipherText === null || iv === null || mac === null) return 'it is incomplete'
  const derive = parseDerivation(crypto['kdf'], memberOf(crypto, 'kdfparams') ?? {})
  if (derive === null) return 'its key derivation is neither scrypt nor pbkdf2 with usual parameters'
  const { address } = file
  return { cipherText, iv, mac, derive, address: typeof address === 'string' ? plain(address) : null }
}

function parseDerivation(kdf: unknown, { dklen, salt: saltText, n, r, p, c, prf }: JsonObject) {
  const salt = parseBytes(saltText)
  if (dklen !== 32 || salt === null) return null
  if (kdf === 'scrypt' && isWhole(n, maxMemory) && isWhole(r, 64) && isWhole(p, 64)) {
    if (n < 2 || (n & (n - 1)) !== 0 || 128 * n * r > maxMemory || n * r * p > maxWork) return null
    // OpenSSL, and so node:crypto, rejects n from 2^(16 r) on, and with it the test vector of the definition.
    return (password: string) => scryptAsync(password, salt, { N: n, r, p, dkLen: 32, maxmem: 2 * maxMemory })
  }
  if (kdf === 'pbkdf2' && prf === 'hmac-sha256' && isWhole(c, maxRounds))
    return (password: string) => promisify(pbkdf2)(password, salt, c, 32, 'sha256')
  return null
}

function isWhole(value: unknown, max: number): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= max
}

function parseBytes(text: unknown, size?: number): Uint8Array | null {
  const bytes = typeof text === 'string' && text !== '' && text.length <= 512 ? parseHex(text) : null
  return bytes === null || size === undefined || bytes.length === size ? bytes : null
}

function memberOf(object: JsonObject, name: string): JsonObject | null {
  const value = object[name]
  return isObject(value) ? value : null
}

/** Returns '' for 32 bytes that are not a private key. */
function addressOf(privateKey: Uint8Array): string {
  try {
    return plain(privateKeyToAddress(bytesToHex(privateKey)))
  } catch {
    return ''
  }
}

/** Normalizes an address that is written with or without 0x, in any case of letters. */
function plain(address: string): string {
  return address.toLowerCase().replace(/^0x/, '')
}

function refused(reason: string): KeystoreResult {
  return { ok: false, reason }
}
