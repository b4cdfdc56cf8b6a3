/** The kinds of settings: how a text of the environment is read, and what is asked for when it cannot be. */
import { BlockList, isIP } from 'node:net'
import type { Hex } from '@touchstone/verdict'

export type Setting<T> = {
  readonly help: string
  readonly fallback: string
  readonly read: (text: string) => T | null
  readonly want: string
  readonly secret?: boolean
}

export const setting = <T>(
  fallback: string,
  want: string,
  read: (text: string) => T | null,
  help: string,
): Setting<T> => ({
  fallback,
  want,
  read,
  help,
})
export const whole = (from: number, to: number, fallback: number, help: string) =>
  setting(
    String(fallback),
    `a whole number from ${from} to ${to}`,
    (text) => {
      const value = Number(text)
      return /^\d{1,12}$/.test(text) && value >= from && value <= to ? value : null
    },
    help,
  )
export const choice = <const T extends string>(values: readonly [T, ...T[]], help: string) =>
  setting<T>(values[0], `one of ${values.join(', ')}`, (text) => values.find((value) => value === text) ?? null, help)
export const list = (want: string, isItem: (text: string) => boolean, help: string) =>
  setting(
    '',
    `${want}, separated by commas`,
    (text) => {
      const items = text
        .split(',')
        .map((item) => item.trim())
        .filter((item) => item !== '')
      return items.every(isItem) ? items : null
    },
    help,
  )
export const address = (fallback: string, help: string) =>
  setting(
    fallback,
    'a contract address (0x and 40 hex digits)',
    (text) => (/^0x[0-9a-fA-F]{40}$/.test(text) ? (text.toLowerCase() as Hex) : null),
    help,
  )
export const optional = <T>(inner: Setting<T>): Setting<T | null> => ({
  ...inner,
  fallback: '',
  want: `${inner.want}, or empty`,
  read: (text) => (text === '' ? null : inner.read(text)),
})
export const secret = <T>(inner: Setting<T>): Setting<T> => ({ ...inner, secret: true })
export const hexBytes = (least: number, most: number, help: string) =>
  setting(
    '',
    `${least === most ? least : `${least} to ${most}`} bytes in hex`,
    (text) => {
      const digits = text.replace(/^0x/, '')
      return /^([0-9a-fA-F]{2})+$/.test(digits) && digits.length >= 2 * least && digits.length <= 2 * most
        ? Uint8Array.from(Buffer.from(digits, 'hex'))
        : null
    },
    help,
  )
export const url = (schemes: readonly string[], help: string) =>
  setting('', `a URL (${schemes.join(', ')})`, (text) => (isUrl(text, schemes) ? text : null), help)

/** `redis://` or `rediss://` with a host, perhaps an account, a port and the number of a database. */
export const redisUrl = (help: string) =>
  setting('', 'a Redis URL such as redis://user:password@host:6379/0', (text) => (isRedisUrl(text) ? text : null), help)

function isRedisUrl(text: string): boolean {
  if (!isUrl(text, ['redis', 'rediss'])) return false
  const { hostname, pathname, username, password, search, hash } = new URL(text)
  try {
    decodeURIComponent(username + password)
  } catch {
    return false // a % of the password must be written as %25
  }
  return hostname !== '' && /^\/?\d{0,4}$/.test(pathname) && search === '' && hash === ''
}

/** Scheme, host and port; null for a URL that says more. */
export function originOf(text: string): string | null {
  if (!isUrl(text, ['http', 'https'])) return null
  const url = new URL(text)
  return url.href === `${url.origin}/` ? url.origin : null
}

export function isUrl(text: string, schemes: readonly string[]): boolean {
  return URL.canParse(text) && schemes.includes(new URL(text).protocol.slice(0, -1))
}

export function isRange(text: string): boolean {
  const [address = '', bits] = text.split('/')
  if (isIP(address) === 0) return false
  if (bits === undefined) return true
  try {
    new BlockList().addSubnet(address, Number(bits), isIP(address) === 6 ? 'ipv6' : 'ipv4')
    return /^\d{1,3}$/.test(bits)
  } catch {
    return false
  }
}
