/**
 * Keys that can be used but not read (spec §5). The private half is in a file or a setting of this service, or in a PKCS#11 token; both
 * adapters have these types. `name` is the setting's word for a key, and its label in a token.
 */

/** Curves: secp256k1 (operator, attester, facilitator, attestation), P-256 and Ed25519 (issuer). */
export const curves = ['secp256k1', 'P-256', 'Ed25519'] as const
export type Curve = (typeof curves)[number]

export type SigningKey = Readonly<{
  name: string
  curve: Curve
  /** The uncompressed point, 65 bytes that begin with 04; 32 bytes for Ed25519 (RFC 8032). */
  publicKey: Uint8Array
  /** Returns 64 bytes. They are r || s of ECDSA over a digest of 32 bytes, s in either half, or R || S of Ed25519 over the message. */
  sign: (input: Uint8Array) => Promise<Uint8Array>
}>

/** An AES-128 key. A block has 16 bytes; the MAC is that of RFC 4493. */
export type AesKeyHandle = Readonly<{
  ecbDecrypt: (block: Uint8Array) => Promise<Uint8Array>
  cmac: (message: Uint8Array) => Promise<Uint8Array>
}>

/** A key store that makes keys and never reveals them. Every call throws KEY_STORE_UNAVAILABLE when the store does not answer in time. */
export type KeyStore = Readonly<{
  /** Returns null when there is no such key. Throws a KeyStoreError when there are several, or it is on a curve that is not ours. */
  signingKey: (name: string) => Promise<SigningKey | null>
  /** Returns the signing keys whose names begin with `prefix`, in the order of their names. */
  signingKeys: (prefix: string) => Promise<readonly SigningKey[]>
  /** Returns null when there is no such key. */
  aesKey: (name: string) => Promise<AesKeyHandle | null>
  /** Returns whether the store makes keys on this curve. */
  supports: (curve: Curve) => Promise<boolean>
  /** Makes a key pair that cannot be extracted. Throws a KeyStoreError when the name is taken or the token lacks the mechanism. */
  generateSigningKey: (name: string, curve: Curve) => Promise<SigningKey>
  /** Makes an AES-128 key that cannot be extracted. */
  generateAesKey: (name: string) => Promise<AesKeyHandle>
}>

/** The key store rejects a call. The message is one sentence for the operator and holds no secret. */
export class KeyStoreError extends Error {}
