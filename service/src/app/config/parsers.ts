/** Parsers of setting texts. Each says in words what it accepts, for the error message and the handbook. */
import { isIP } from 'node:net'
import { availableParallelism } from 'node:os'
import type { Hex } from '@touchstone/verdict'
import { parseAddress } from '../../domain/address.ts'
import { decodePercent, isPlaceholder } from '../../lib/bytes.ts'
import { parseServers } from '../../db/postgres/server-list.ts'
import { createTrust } from '../../http/client-ip.ts'

export type Parser<T> = {
  /** The text that stands for a setting that is not set. */
  readonly fallback: string
  /** Completes «NAME must be …». */
  readonly want: string
  /** Returns `undefined` for a text that is not accepted. */
  readonly parse: (text: string) => T | undefined
}

export function textThat(want: string, holds: (text: string) => boolean, fallback = ''): Parser<string> {
  return { fallback, want, parse: (text) => (holds(text) ? text : undefined) }
}

export function pattern(expression: RegExp, want: string, fallback = ''): Parser<string> {
  return textThat(want, (text) => expression.test(text), fallback)
}

/** Accepts a whole number of up to 12 digits within bounds. */
export function whole(from: number, to: number, fallback: number): Parser<number> {
  const isWhole = (text: string) => /^\d{1,12}$/.test(text) && Number(text) >= from && Number(text) <= to
  return mapped(textThat(`a whole number from ${from} to ${to}`, isWhole, String(fallback)), Number)
}

/** Accepts one of some words. The first is the default. */
export function choice<const T extends string>(...values: readonly [T, ...T[]]): Parser<T> {
  return {
    fallback: values[0],
    want: `one of ${values.join(', ')}`,
    parse: (text) => values.find((value) => value === text),
  }
}

export function toggle(fallback: 'on' | 'off'): Parser<boolean> {
  const words = fallback === 'on' ? choice('on', 'off') : choice('off', 'on')
  return mapped<'on' | 'off', boolean>(words, (word) => word === 'on')
}

/** Accepts items separated by commas; an empty text is an empty list. */
export function list(want: string, isItem: (text: string) => boolean, fallback = ''): Parser<string[]> {
  return mapped(
    textThat(`${want}, separated by commas`, (text) => splitList(text).every(isItem), fallback),
    splitList,
  )
}

/** Accepts distinct words of a closed list; an empty text stands for all of them. */
export function someOf<const T extends string>(words: readonly T[]): Parser<readonly T[]> {
  return {
    fallback: '',
    want: `some of ${words.join(', ')}, separated by commas`,
    parse: (text) => {
      if (text.trim() === '') return words
      const named = text.split(',').map((word) => word.trim())
      const known = words.filter((word) => named.includes(word))
      return known.length === new Set(named).size ? known : undefined
    },
  }
}

/** Accepts words of a closed list; an empty text stands for none of them. */
export function anyOf<const T extends string>(words: readonly T[], noun = 'some'): Parser<ReadonlySet<T>> {
  const isWord = (text: string) => words.some((word) => word === text)
  return mapped(
    list(`${noun} of ${words.join(', ')}`, isWord),
    (named) => new Set(words.filter((word) => named.includes(word))),
  )
}

/** Accepts an address in lower case or with its checksum (EIP-55), and returns it in lower case. */
export function address(fallback = ''): Parser<Hex> {
  const want = 'an address (0x and 40 hex digits), in lower case or with its right checksum'
  return { fallback, want, parse: (text) => parseAddress(text) ?? undefined }
}

/** Accepts addresses as `address` does, and returns each once. */
export const addresses = (fallback = ''): Parser<Hex[]> =>
  mapped(
    list(
      'addresses (0x and 40 hex digits), in lower case or with their right checksums',
      (text) => parseAddress(text) !== null,
      fallback,
    ),
    (texts) => [...new Set(texts.map((text) => text.toLowerCase() as Hex))],
  )

/** Accepts `least` to `most` bytes in hex, with or without `0x`. */
export function hexBytes(least: number, most: number): Parser<Uint8Array> {
  const digits = new RegExp(`^(?:0x)?((?:[0-9a-fA-F]{2}){${least},${most}})$`)
  return mapped(pattern(digits, `${least === most ? least : `${least} to ${most}`} bytes in hex`), (text) =>
    Uint8Array.from(Buffer.from(digits.exec(text)?.[1] ?? '', 'hex')),
  )
}

/** Accepts bytes as `hexBytes` does, but no placeholder. */
export function secretBytes(least: number, most: number): Parser<Uint8Array> {
  const inner = hexBytes(least, most)
  return {
    ...inner,
    want: `${inner.want.replace('bytes', 'random bytes')} (openssl rand -hex 32)`,
    parse: (text) => {
      const key = inner.parse(text)
      return key === undefined || isPlaceholder(key) ? undefined : key
    },
  }
}

export const serverUrl = textThat('a URL (postgres, postgresql)', (text) => isUrl(text, ['postgres', 'postgresql']))

/** Accepts a URL that pages show, or that `fetch` takes. The error of `fetch` for one with a user has its password. */
export const openUrl = textThat(
  'a URL (http, https) without user and password',
  (text) => isHttpUrl(text) && new URL(text).username + new URL(text).password === '',
)

/** A client decodes the account of a provider's URL. */
export const isProviderUrl = (text: string): boolean => isHttpUrl(text) && hasReadableAccount(new URL(text))

export const isHttpUrl = (text: string): boolean => isUrl(text, ['http', 'https'])
/** A URL with a fragment, even an empty one, makes no socket. */
export const isWebSocketUrl = (text: string): boolean => isUrl(text, ['ws', 'wss']) && !text.includes('#')

/** Accepts a URL of PostgreSQL, also of a primary and its standbys. */
export const databaseUrl = textThat(
  'a URL (postgres, postgresql), or one of several hosts with ?target_session_attrs=read-write',
  (text) => parseServers(text) !== null,
)

/** Accepts `redis://` or `rediss://` with a host and, optionally, an account, a port and a database number. */
export const redisUrl = textThat('a Redis URL such as redis://user:password@host:6379/0', isRedisUrl)

/** Returns whether a URL has scheme, host and port, and nothing more. */
const isOrigin = (text: string): boolean => isHttpUrl(text) && new URL(text).href === `${new URL(text).origin}/`

/** Accepts origins, and returns each as a browser sends it; `*` stands for all of them. */
export const origins: Parser<string[]> = mapped(
  list(
    'origins such as https://chat.example.com, or *',
    (text) => text === '*' || (isOrigin(text) && !text.includes('*')),
  ),
  (texts) => texts.map((text) => (text === '*' ? text : new URL(text).origin)),
)

export function origin(example: string): Parser<string> {
  return mapped(
    textThat(`an http or https URL without path, such as ${example}`, isOrigin),
    (text) => new URL(text).origin,
  )
}

export const ipAddress = (fallback: string): Parser<string> =>
  textThat('an IP address', (text) => isIP(text) !== 0, fallback)

/** Accepts a number of processes; `auto` is one for each core. */
export const processes: Parser<number> = {
  fallback: '1',
  want: 'auto or a whole number from 1 to 256',
  parse: (text) => (text === 'auto' ? availableParallelism() : whole(1, 256, 1).parse(text)),
}

/** Accepts an empty text as `null`. */
export function optional<T>(inner: Parser<T>): Parser<T | null> {
  return {
    fallback: '',
    want: `${inner.want}, or empty`,
    parse: (text) => (text === '' ? null : inner.parse(text)),
  }
}

export function mapped<T, R>(inner: Parser<T>, convert: (value: T) => R): Parser<R> {
  return {
    ...inner,
    parse: (text) => {
      const value = inner.parse(text)
      return value === undefined ? undefined : convert(value)
    },
  }
}

export function isRange(text: string): boolean {
  try {
    createTrust([text])
    return true
  } catch {
    return false
  }
}

function splitList(text: string): string[] {
  return text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '')
}

function isUrl(text: string, schemes: readonly string[]): boolean {
  return URL.canParse(text) && schemes.includes(new URL(text).protocol.slice(0, -1))
}

function isRedisUrl(text: string): boolean {
  if (!isUrl(text, ['redis', 'rediss'])) return false
  const { hostname, pathname, search, hash } = new URL(text)
  return (
    hasReadableAccount(new URL(text)) &&
    hostname !== '' &&
    /^\/?\d{0,4}$/.test(pathname) &&
    search === '' &&
    hash === ''
  )
}

/** A % of the password must be written as %25. */
function hasReadableAccount({ username, password }: URL): boolean {
  return decodePercent(`${username}:${password}`) !== null
}

/** Parses the path of a file or folder; empty is none. */
export const file = optional(pattern(/./, 'a file'))
