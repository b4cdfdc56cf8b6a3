/** Texts of requests and suppliers: instants, days, what a person typed, and lines that are shown. */
import { cleanText } from '@touchstone/verdict'
import { memoize } from '../lib/memoize.ts'
import { clampSeconds } from './chain-index.ts'

/** Parses an instant and returns it in UTC with microseconds, `2026-03-01T12:00:00.000000Z`, or null. */
export function parseInstant(text: string): string | null {
  const [, day = '', time = '', fraction = '', offset = ''] =
    /^(\d{4}-\d\d-\d\d)[Tt]((?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d)(\.\d{1,9})?([Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/.exec(
      text,
    ) ?? []
  if (parseDay(day) === null) return null
  const at = new Date(`${day}T${time}${offset.toUpperCase()}`)
  const second = at.toISOString().slice(0, 19)
  return /^(?!0000)\d{4}-/.test(second) ? `${second}${fraction.slice(0, 7).padEnd(1, '.').padEnd(7, '0')}Z` : null
}

/** Formats unix seconds of the chain by RFC 3339. A time beyond the calendar becomes the last one that it has. */
export function formatInstant(seconds: bigint): string {
  return new Date(Number(clampSeconds(seconds)) * 1_000).toISOString()
}

/** Formats unix seconds by RFC 3339 without a fraction. */
export function formatSecond(seconds: number): string {
  return `${new Date(seconds * 1_000).toISOString().slice(0, 19)}Z`
}

/** Returns a day as it is, or null when the calendar has no such day, as 2026-02-30. */
export function parseDay(text: string): string | null {
  const at = /^(?!0000)\d{4}-\d\d-\d\d$/.test(text) ? new Date(`${text}T00:00:00Z`) : null
  return at !== null && !Number.isNaN(at.getTime()) && at.toISOString().startsWith(text) ? text : null
}

/** Returns what a person typed or pasted: trimmed, without marks of direction, and with digits such as ٥ as ASCII. */
export function typedText(text: string): string {
  return text
    .replace(/\p{Bidi_Control}/gu, '')
    .trim()
    .replace(/[\p{Nd}--[0-9]]/gv, (digit) => asciiDigit(digit))
}

/** Unicode orders the digits of a script from zero to nine, and whole sets of ten may follow each other. */
const asciiDigit = memoize(
  (digit: string) => {
    const point = digit.codePointAt(0) ?? 0
    let zero = point
    while (/\p{Nd}/u.test(String.fromCodePoint(zero - 1))) zero--
    return String((point - zero) % 10)
  },
  { max: 1_000 },
)

const longestLine = 200
/** Printable ASCII with single spaces, which cleaning does not change. */
const plain = /^[!-~]+(?: [!-~]+)*$/

/** Cleans one line of supplier text (spec §2.3). */
export function cleanLine(text: string): string {
  return text.length <= longestLine && plain.test(text) ? text : cleanOther(text)
}

/** An answer has the texts of one product very often. */
const cleanOther = memoize((text: string) => cleanText(text, { max: longestLine }), {
  max: 10_000,
  maxLength: 2_000_000,
})
