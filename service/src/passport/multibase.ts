/** Multibase texts of keys, proofs and status lists (W3C Controlled Identifiers 1.0 §2.4). */

const alphabet = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz'

/** base58btc with its prefix `z`. For short values only: the work grows with the square of the length. */
export function base58Multibase(bytes: Uint8Array): string {
  let value = BigInt(`0x0${Buffer.from(bytes).toString('hex')}`)
  let digits = ''
  for (; value > 0n; value /= 58n) digits = (alphabet[Number(value % 58n)] ?? '') + digits
  const zeros = bytes.findIndex((byte) => byte !== 0)
  return `z${'1'.repeat(zeros === -1 ? bytes.length : zeros)}${digits}`
}

/** base64url without padding, with its prefix `u`. */
export function base64urlMultibase(bytes: Uint8Array): string {
  return `u${Buffer.from(bytes).toString('base64url')}`
}

/** An Ed25519 public key as a Multikey: the multicodec prefix ed01, then the key. */
export function ed25519Multikey(publicKey: Uint8Array): string {
  return base58Multibase(Buffer.concat([Buffer.of(0xed, 0x01), publicKey]))
}
