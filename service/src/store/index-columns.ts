/**
 * Whole columns as one parameter each, for `unnest($1::bigint[], …)`: PostgreSQL's array literals, which both drivers send as they
 * are. Put together by hand, because a range of the index has hundreds of thousands of values.
 */
import type { Hex } from '@touchstone/verdict'

/** Of numbers, and of decimal text. */
export function numbers(values: readonly (number | bigint | string | null)[]): string {
  let text = ''
  for (const value of values) text += value === null ? ',NULL' : `,${value}`
  return `{${text.slice(1)}}`
}

/** Of `bytea`, whose text begins with a backslash; in an array it stands for itself only behind another. */
export function bytes(values: readonly (Hex | null)[]): string {
  let text = ''
  for (const value of values) text += value === null ? ',NULL' : `,\\\\x${value.slice(2)}`
  return `{${text.slice(1)}}`
}

/** Of any text; it must have no U+0000, which PostgreSQL cannot keep. */
export function texts(values: readonly (string | null)[]): string {
  let text = ''
  for (const value of values) text += value === null ? ',NULL' : `,"${value.replace(/["\\]/g, '\\$&')}"`
  return `{${text.slice(1)}}`
}

/** One `bytea` as a driver takes it. */
export function bytesOf(hex: Hex): Uint8Array {
  return new Uint8Array(Buffer.from(hex.slice(2), 'hex'))
}

export function hexOf(stored: Uint8Array): Hex {
  return `0x${Buffer.from(stored.buffer, stored.byteOffset, stored.byteLength).toString('hex')}`
}

/** The last second that every reader of times can write (year 9999); chains name later ones. */
const lastSecond = 253_402_300_799n

/** Unix seconds that fit a column. */
export function secondOf(time: bigint): bigint {
  return time < lastSecond ? time : lastSecond
}
