/**
 * The originality signature of a chip (NXP AN12196 §7, NT4H2421Gx §10.9). It is ECDSA over secp224r1 of the UID itself, without a hash,
 * made by NXP at production. It shows that the chip is NXP's; keys and taps do not depend on it.
 */
import { ecdsa, weierstrass } from '@noble/curves/abstract/weierstrass.js'
import { sha256 } from '@noble/hashes/sha2.js'
import { hexToBytes } from '@noble/hashes/utils.js'

/** Read_Sig. The chip answers with 56 bytes and status 9190. */
export const readSignature = hexToBytes('903C0000010000')

/** Returns whether NXP signed this UID for an NTAG 424 DNA. `signature` has 56 bytes, r and s. */
export function isOriginal(uid: Uint8Array, signature: Uint8Array): boolean {
  if (uid.length !== 7 || signature.length !== 56) return false
  return p224.verify(signature, uid, nxpKey, { prehash: false, lowS: false })
}

/** secp224r1, SEC 2 §2.6. The hash is for messages, which are not used here. */
const p224 = ecdsa(
  weierstrass({
    p: 0xffffffffffffffffffffffffffffffff000000000000000000000001n,
    n: 0xffffffffffffffffffffffffffff16a2e0b8f03e13dd29455c5c2a3dn,
    h: 1n,
    a: 0xfffffffffffffffffffffffffffffffefffffffffffffffffffffffen,
    b: 0xb4050a850c04b3abf54132565044b0b7d7bfd8ba270b39432355ffb4n,
    Gx: 0xb70e0cbd6bb4bf7f321390b94a03c1d356c21122343280d6115c1d21n,
    Gy: 0xbd376388b5f723fb4c22dfe6cd4375a05a07476444d5819985007e34n,
  }),
  sha256,
)

/** NXP's public key of the NTAG 424 DNA (AN12196 §7.2). */
const nxpKey = hexToBytes(
  '048A9B380AF2EE1B98DC417FECC263F8449C7625CECE82D9B916C992DA209D68422B81EC20B65A66B5102A61596AF3379200599316A00A1410',
)
