/** The recovery of the address that signed an attestation (spec §4.8). */
import { secp256k1 } from '@noble/curves/secp256k1.js'
import { bytesOf, type Hex, keccak256 } from '../lib/hex.ts'

/**
 * Returns the lower-case address that signed a digest, or `null` when this is no such signature. A signature is 65
 * bytes r‖s‖v, s in the lower half of the curve order (EIP-2), v 27 or 28. Compare the address with the gateway's
 * published keys.
 */
export function attestationSigner(digest: Hex, signature: Hex): Hex | null {
  const hash = bytesOf(digest)
  const bytes = bytesOf(signature)
  const recovery = (bytes?.[64] ?? 0) - 27
  if (hash?.length !== 32 || bytes?.length !== 65 || (recovery !== 0 && recovery !== 1)) return null
  try {
    const parts = secp256k1.Signature.fromBytes(bytes.subarray(0, 64), 'compact').addRecoveryBit(recovery)
    if (parts.hasHighS()) return null
    const point = parts.recoverPublicKey(hash).toBytes(false)
    return `0x${keccak256(point.subarray(1)).slice(26)}`
  } catch {
    return null // r or s out of range, or no point has this x
  }
}
