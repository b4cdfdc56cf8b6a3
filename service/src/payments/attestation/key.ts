/** Keys that sign attestations (spec §4.8), in memory or in a key management service, behind the same function. */
import { createPublicKey } from 'node:crypto'
import { attestationKeyId, type Hex } from '@touchstone/verdict'
import { bytesToHex, hexToBytes } from 'viem'
import { privateKeyToAddress, publicKeyToAddress } from 'viem/accounts'
import type { AttestationKey } from './attest.ts'
import { recoverSigner, signDigest } from '../../lib/secp256k1.ts'

const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n

/** Makes a key in memory. Returns `null` when the bytes are not a private key of secp256k1. */
export function localKey(privateKey: Uint8Array): AttestationKey | null {
  if (privateKey.length !== 32) return null
  const hex = bytesToHex(privateKey)
  if (BigInt(hex) === 0n || BigInt(hex) >= order) return null
  return keyOf(privateKeyToAddress(hex), async (hash) => signDigest(hash, privateKey))
}

/**
 * A key in a key management service (secp256k1, ECDSA over a digest). `publicKey` is its SubjectPublicKeyInfo in DER;
 * `signDigest` returns the DER signature over the 32 bytes, s in either half. The adapter sets deadline and retries.
 */
export type KmsSigner = {
  readonly publicKey: Uint8Array
  readonly signDigest: (digest: Uint8Array) => Promise<Uint8Array>
}

/** Returns `null` when the public key is not of secp256k1. `sign` throws when the service returns another key's signature. */
export function kmsKey({ publicKey, signDigest }: KmsSigner): AttestationKey | null {
  const address = addressFromSpki(publicKey)
  if (address === null) return null
  return keyOf(address, async (hash) => {
    const parts = parseDerSignature(await signDigest(hexToBytes(hash)))
    const signature = parts && withRecoveryByte(hash, parts, address)
    if (signature === null) throw new Error('The key management service returned a signature of another key.')
    return signature
  })
}

function keyOf(address: Hex, signHash: (hash: Hex) => Promise<Hex>): AttestationKey {
  return {
    address,
    keyId: attestationKeyId(address),
    sign: signHash,
  }
}

function addressFromSpki(der: Uint8Array): Hex | null {
  try {
    const { crv, x, y } = createPublicKey({ key: Buffer.from(der), format: 'der', type: 'spki' }).export({
      format: 'jwk',
    })
    if (crv !== 'secp256k1' || x === undefined || y === undefined) return null
    return publicKeyToAddress(`0x04${hexOfBase64(x)}${hexOfBase64(y)}`)
  } catch {
    return null
  }
}

/** Parses the Ecdsa-Sig-Value of RFC 3279 §2.2.3: a sequence of the integers r and s, each below 2^256. */
function parseDerSignature(der: Uint8Array): { r: bigint; s: bigint } | null {
  if (der[0] !== 0x30 || der[1] !== der.length - 2 || der.length > 72) return null
  const r = integerAt(der, 2)
  const s = r === null ? null : integerAt(der, r.end)
  return r !== null && s?.end === der.length ? { r: r.value, s: s.value } : null
}

function integerAt(der: Uint8Array, at: number): { value: bigint; end: number } | null {
  const length = der[at + 1] ?? 0
  const end = at + 2 + length
  if (der[at] !== 0x02 || length < 1 || length > 33 || end > der.length) return null
  return { value: BigInt(bytesToHex(der.subarray(at + 2, end))), end }
}

/** Returns 65 bytes with s in the lower half. Of the two values of v, one recovers the address from the digest. */
function withRecoveryByte(hash: Hex, { r, s }: { r: bigint; s: bigint }, address: Hex): Hex | null {
  const low = s > order / 2n ? order - s : s
  if (r >= 1n << 256n || low <= 0n) return null
  const word = (value: bigint) => value.toString(16).padStart(64, '0')
  const candidates = ['1b', '1c'].map((v): Hex => `0x${word(r)}${word(low)}${v}`)
  return candidates.find((signature) => recoverSigner(hash, signature) === address.toLowerCase()) ?? null
}

function hexOfBase64(text: string): string {
  return Buffer.from(text, 'base64url').toString('hex')
}
