/** Token ids as decimal text (spec §4.1, §8). */

/** The largest token id, 2^256 − 1 (spec §8). */
export const maxTokenId: bigint = 2n ** 256n - 1n

/** Digits of 2^256 − 1; a longer text is refused even when it only starts with zeros. */
const maxDigits = 78

/**
 * Reads a decimal token id (spec §4.1): ASCII digits only, 0 to 2^256 − 1, at most 78 digits. Leading zeros are legal:
 * `00042` is 42. Returns `null` when the text is not a token id.
 */
export function parseTokenId(text: string): bigint | null {
  if (text.length > maxDigits || !/^[0-9]+$/.test(text)) return null
  const id = BigInt(text)
  return id <= maxTokenId ? id : null
}

/** Returns the token id that a caller asked for, as decimal text without leading zeros. */
export function askedTokenId(tokenId: bigint | string): string {
  return String(parseTokenId(String(tokenId)) ?? 'no token id')
}
