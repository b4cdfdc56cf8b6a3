/**
 * Values as PostgreSQL takes and returns them. Whole columns are array literals, one parameter each, for `unnest($1::bigint[], …)`;
 * they are joined by hand, because a range of the index has hundreds of thousands of values.
 */
import type { Hex } from '@touchstone/verdict'

/** Runs one statement and returns its rows. */
export type SqlQuery = <Row>(text: string, values?: readonly unknown[]) => Promise<Row[]>

/** Formats an array of numbers, or of decimal texts. */
export function numbers(values: readonly (number | bigint | string | null)[]): string {
  let text = ''
  for (const value of values) text += value === null ? ',NULL' : `,${value}`
  return `{${text.slice(1)}}`
}

/** Formats a `bytea` array. The backslash of each value is escaped by another. */
export function bytes(values: readonly (Hex | null)[]): string {
  let text = ''
  for (const value of values) text += value === null ? ',NULL' : `,\\\\x${value.slice(2)}`
  return `{${text.slice(1)}}`
}

/** Formats a text array. No value may contain U+0000, which PostgreSQL cannot store. */
export function texts(values: readonly (string | null)[]): string {
  let text = ''
  for (const value of values) text += value === null ? ',NULL' : `,"${value.replace(/["\\]/g, '\\$&')}"`
  return `{${text.slice(1)}}`
}

/** Converts trusted hex into one `bytea` parameter. */
export function hexToBytes(hex: Hex): Uint8Array {
  return new Uint8Array(Buffer.from(hex.slice(2), 'hex'))
}

/** Converts a `bytea` column, in lower case. */
export function bytesToHex(stored: Uint8Array): Hex {
  return `0x${Buffer.from(stored.buffer, stored.byteOffset, stored.byteLength).toString('hex')}`
}

/** SQL for a `bytea` column as hex text. */
export const hex = (column: string): string => `'0x' || encode(${column}, 'hex')`

/** SQL for a time as RFC 3339 text in UTC, exact to the microsecond. A JS Date would cut it, and pages would skip or repeat rows. */
export const instant = (column: string): string =>
  `to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`

/** SQL for a time in whole unix seconds. */
export const seconds = (column: string): string => `extract(epoch from ${column})::bigint`

/**
 * SQL for whether a time of the database's clock lies at most `span` back. A time that is still to come was written before that clock was set
 * back, and is not recent: else it would hold until the clock is there again.
 */
export const isRecent = (column: string, span: string): string =>
  `(${column} > statement_timestamp() - ${span} and ${column} < statement_timestamp() + interval '1 minute')`

/**
 * SQL for the clock of the database or that of this machine, whichever is behind. `now` is SQL for the latter in unix seconds. What cannot be
 * taken back follows it, such as the deletion of old rows: a clock that is ahead would make all rows old.
 */
export const earlierClock = (now: string): string => `least(statement_timestamp(), to_timestamp(${now}::float8))`

/** The last row of the page before. It has its sort key, a time to the microsecond or a name, and its number. */
export type Keyset = readonly [at: string, pk: string]
/** A page from the row behind `after` on. Backward rows come nearest first. */
export type KeysetPage = Readonly<{ after: Keyset | null; backward: boolean; limit: number }>

/** Formats the condition that rows lie behind this one; its values are appended to `values`. `isText`: the key is no time. */
export function behindOf(
  columns: string,
  order: '<' | '>',
  [at, pk]: Keyset,
  values: unknown[],
  isText = false,
): string {
  const key = `$${values.push(at)}::text${isText ? ' collate "C"' : '::timestamptz'}`
  return `${columns} ${order} (${key}, $${values.push(pk)}::text::bigint)`
}

/** SQL for the zero hash, which stands for none. */
export const zeroHashSql = `'\\x${'00'.repeat(32)}'::bytea`
