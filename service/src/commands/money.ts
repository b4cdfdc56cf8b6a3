/** Amounts of USDC: millionths of a dollar inside, dollars for people. */

/** Null for what is no amount; up to 999999.999999. */
export function microDollars(text: string): bigint | null {
  const [, whole, part = ''] = /^(\d{1,6})(?:\.(\d{1,6}))?$/.exec(text) ?? []
  return whole === undefined ? null : BigInt(whole) * 1_000_000n + BigInt(part.padEnd(6, '0'))
}

/** Without zeros at the end: 10000n is `0.01`. */
export function dollars(amount: bigint): string {
  const text = amount.toString().padStart(7, '0')
  return `${text.slice(0, -6)}.${text.slice(-6)}`.replace(/\.?0+$/, '')
}
