/** Amounts of USDC: millionths of a dollar internally, dollars for people. */

/** Parses dollars up to 999999.999999, or returns null. */
export function parseDollars(text: string): bigint | null {
  const [, whole, part = ''] = /^(\d{1,6})(?:\.(\d{1,6}))?$/.exec(text) ?? []
  return whole === undefined ? null : BigInt(whole) * 1_000_000n + BigInt(part.padEnd(6, '0'))
}

/** Formats dollars without trailing zeros: 10000n is `0.01`. */
export function formatDollars(amount: bigint): string {
  return formatFixed(amount, 6).replace(/\.?0+$/, '')
}

/** Formats an amount with all its decimals: 10000n with 6 is `0.010000`. */
export function formatFixed(amount: bigint, decimals: number): string {
  const text = amount.toString().padStart(decimals + 1, '0')
  return `${text.slice(0, -decimals)}.${text.slice(-decimals)}`
}
