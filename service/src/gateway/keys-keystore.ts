/** A private key from a password-protected file: Web3 Secret Storage Definition, version 3 (geth, clef, cast, MetaMask exports). */
import { createDecipheriv, pbkdf2, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'
import { scryptAsync } from '@noble/hashes/scrypt.js'
import { bytesToHex, keccak256 } from 'viem'
import { privateKeyToAddress } from 'viem/accounts'

/** The key, or why there is none, without quoting the file or the password. */
export type KeystoreResult =
  | { readonly ok: true; readonly privateKey: Uint8Array }
  | { readonly ok: false; readonly reason: string }

const longest = 16_384
/** geth's standard scrypt takes 256 MiB; a file that asks for more than twice that is no keystore anyone made. */
const mostMemory = 512 * 1024 * 1024
/** Eight times that scrypt. */
const mostWork = 8 * 262_144 * 8
const mostRounds = 10_000_000

/** Takes up to some seconds: that is the point of the format. */
export async function readKeystore(text: string, password: string): Promise<KeystoreResult> {
  const stored = parse(text)
  if (typeof stored === 'string') return refused(stored)
  const { cipherText, iv, mac, derive, address } = stored
  const key = await derive(password)
  const found = keccak256(Buffer.concat([key.subarray(16, 32), cipherText]), 'bytes')
  if (!timingSafeEqual(found, mac)) return refused('the password is wrong, or the file is damaged')
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
  const file = text.length <= longest ? objectOf(text) : null
  if (file === null) return 'it is not a JSON object'
  if (file['version'] !== 3) return 'it is not of version 3'
  const crypto = memberOf(file, 'crypto') ?? memberOf(file, 'Crypto')
  if (crypto === null || crypto['cipher'] !== 'aes-128-ctr') return 'its cipher is not aes-128-ctr'
  const cipherText = bytesOf(crypto['ciphertext'], 32)
  const iv = bytesOf(memberOf(crypto, 'cipherparams')?.['iv'], 16)
  const mac = bytesOf(crypto['mac'], 32)
  if (cipherText === null || iv === null || mac === null) return 'it is incomplete'
  const derive = deriveOf(crypto['kdf'], memberOf(crypto, 'kdfparams') ?? {})
  if (derive === null) return 'its key derivation is neither scrypt nor pbkdf2 with usual parameters'
  const { address } = file
  return { cipherText, iv, mac, derive, address: typeof address === 'string' ? plain(address) : null }
}

function deriveOf(kdf: unknown, { dklen, salt: saltText, n, r, p, c, prf }: Record<string, unknown>) {
  const salt = bytesOf(saltText)
  if (dklen !== 32 || salt === null) return null
  if (kdf === 'scrypt' && isWhole(n, mostMemory) && isWhole(r, 64) && isWhole(p, 64)) {
    if (n < 2 || (n & (n - 1)) !== 0 || 128 * n * r > mostMemory || n * r * p > mostWork) return null
    // Not the one of node:crypto: OpenSSL refuses n from 2^(16 r) on, and so the test vector of the definition.
    return (password: string) => scryptAsync(password, salt, { N: n, r, p, dkLen: 32, maxmem: 2 * mostMemory })
  }
  if (kdf === 'pbkdf2' && prf === 'hmac-sha256' && isWhole(c, mostRounds))
    return (password: string) => promisify(pbkdf2)(password, salt, c, 32, 'sha256')
  return null
}

function isWhole(value: unknown, most: number): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= most
}

function bytesOf(text: unknown, size?: number): Uint8Array | null {
  if (typeof text !== 'string' || !/^(?:[0-9a-f]{2}){1,256}$/i.test(text)) return null
  const bytes = Uint8Array.from(Buffer.from(text, 'hex'))
  return size === undefined || bytes.length === size ? bytes : null
}

function objectOf(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? value : null
  } catch {
    return null
  }
}

function memberOf(object: Record<string, unknown>, name: string): Record<string, unknown> | null {
  const value = object[name]
  return isObject(value) ? value : null
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Empty for 32 bytes that are no private key. */
function addressOf(privateKey: Uint8Array): string {
  try {
    return plain(privateKeyToAddress(bytesToHex(privateKey)))
  } catch {
    return ''
  }
}

/** Addresses stand there with and without 0x, in any case of letters. */
function plain(address: string): string {
  return address.toLowerCase().replace(/^0x/, '')
}

function refused(reason: string): KeystoreResult {
  return { ok: false, reason }
}
