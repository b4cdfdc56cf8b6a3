/** Words of the contract ABI: 64 hex digits without a prefix, for calls that are encoded on a hot path. */

/** Encodes an unsigned integer, or throws a RangeError when it does not fit. */
export function encodeWord(value: bigint | number): string {
  const digits = value.toString(16)
  if (digits.length > 64 || value < 0) throw new RangeError('The number does not fit into 256 bits.')
  return digits.padStart(64, '0')
}

/** Encodes an address, which has a prefix and any case. */
export function encodeAddress(address: string): string {
  return address.slice(2).toLowerCase().padStart(64, '0')
}

/** Pads hex without a prefix with zero bytes to whole words. */
export function padToWords(hex: string): string {
  return hex.padEnd(Math.ceil(hex.length / 64) * 64, '0')
}
