/**
 * Which token ids may be attested. The raw signature covers 128 bytes that begin with the id, and a buyer chooses the id: a crafted one
 * makes those bytes an unsigned transaction, which the signature would then authorise.
 */

/**
 * False where id (32 bytes, big-endian), state, chain id and timestamp could be read as a transaction: a type byte and a list of 125
 * bytes (EIP-2718: 00–7f, f8 7d), or a legacy list of 126 bytes (f8 7e). One random id in 43,000; the registry mints none of them.
 */
export function isAttestable(tokenId: bigint): boolean {
  const head = tokenId.toString(16).padStart(64, '0').slice(0, 6)
  return !head.startsWith('f87e') && !/^[0-7][0-9a-f]f87d/.test(head)
}
