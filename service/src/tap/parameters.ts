/** Reads the parameters of a tap from a link, for all tap routes and commands alike (spec §4.4). */
import { parseHex } from '../lib/bytes.ts'
import type { TapRequest } from './verify-tap.ts'

/** Characters of a query that are read. A longer one has no tap: a repeated parameter in the rest would not be noticed. */
export const longestTapQuery = 4_000

/** Parses the start of a raw query as URL parsers do: a second question mark is part of a name. */
export function parseRawQuery(query: string): URLSearchParams {
  return new URLSearchParams(`?${query.slice(0, longestTapQuery)}`)
}

/** The query as chips write it; anything else is parsed as a general query. */
const usualQuery = /^(?:b=([0-9a-z]{1,16})&)?picc=([0-9a-fA-F]{32})&cmac=([0-9a-fA-F]{16})$/

type TapParameters = Pick<TapRequest, 'picc' | 'cmac' | 'hint'>

/** Parses the tap parameters of a raw query with every value, so that a repeated one is noticed. */
export function parseTapParameters(query: string): TapParameters {
  const [, hint, picc, cmac] = usualQuery.exec(query) ?? []
  if (picc !== undefined && cmac !== undefined) return { picc, cmac, hint }
  if (query.length > longestTapQuery) return { picc: undefined, cmac: undefined }
  const values = parseRawQuery(query)
  return { picc: values.getAll('picc'), cmac: values.getAll('cmac'), hint: values.get('b')?.slice(0, 16) }
}

/** Parses the tap parameters of a URL. */
export function parseTapUrl(url: string): TapParameters {
  return parseTapParameters(new URL(url).search.slice(1))
}

type TapBytes = Readonly<{ picc: Uint8Array; cmac: Uint8Array; hint: string | undefined }>

/** Parses PICC data and MAC of a URL to bytes, or returns null when they are not there once each. */
export function parseTapBytes(url: string): TapBytes | null {
  const { picc: piccs, cmac: cmacs, hint } = parseTapUrl(url)
  const [picc, cmac] = [piccs, cmacs].map((values) => parseHex([values ?? []].flat().join())) // none where repeated
  return picc?.length === 16 && cmac?.length === 8 ? { picc, cmac, hint } : null
}
