/**
 * Identifiers of items in the text of a scanned code, or of a line that a person typed. A text is a link of this host, a GS1 element string, a
 * token id, a GTIN or a serial. Nothing is looked up here. A link of another host is never taken for one of this host.
 */
import { parseTokenId } from '@touchstone/verdict'
import { parseTypedGtin } from '../domain/gs1/gtin.ts'
import { isRegistrableSerial } from '../domain/gs1/serial.ts'
import { typedText } from '../domain/text.ts'
import { type LinkTarget, parseDigitalLink } from './digital-link.ts'
import type { ItemKey } from '../domain/gs1/serial.ts'

export type Identifier =
  | LinkTarget
  | { readonly kind: 'token'; readonly tokenId: bigint }
  | { readonly kind: 'serial'; readonly serial: string }
  /** Digits alone may be each of the three. */
  | { readonly kind: 'number'; readonly tokenId: bigint; readonly gtin: string | null; readonly serial: string | null }
  /** A link of another host. */
  | { readonly kind: 'foreign' }
  | { readonly kind: 'unreadable' }

/** A longer text names no item. */
export const maxIdentifierLength = 2_000
const unreadable = { kind: 'unreadable' } as const

/** Parses one text. `baseUrl` is the public origin of this host; the scheme of a link may differ from it. */
export function parseIdentifier(text: string, baseUrl: string): Identifier {
  const trimmed = typedText(text)
  if (trimmed === '' || trimmed.length > maxIdentifierLength) return unreadable
  if (/^(?:[a-z][a-z0-9+.-]*:\/\/|www\.)/i.test(trimmed)) return parseLink(trimmed, baseUrl)
  if (/^\/(?:01|token)\//.test(trimmed)) return parsePath(trimmed)
  return parseElements(trimmed) ?? parseBare(trimmed)
}

/** Parses a GTIN as it is typed, and a serial; null when either is none. */
export function parseItem(gtinText: string, serialText: string): ItemKey | null {
  const [gtin, serial] = [parseTypedGtin(typedText(gtinText)), typedText(serialText)]
  return gtin !== null && isRegistrableSerial(serial) ? { gtin, serial } : null
}

function parseLink(text: string, baseUrl: string): Identifier {
  const [, origin = '', rest = ''] = /^(https?:\/\/[^/?#\\]+)(.*)$/is.exec(text) ?? []
  const url = URL.parse(origin)
  if (url === null || url.username !== '' || url.password !== '' || url.host !== new URL(baseUrl).host)
    return { kind: 'foreign' }
  return parsePath(rest)
}

/** Parses the path of a link in its raw spelling; the query, and with it a tap, is left out. */
function parsePath(target: string): Identifier {
  const path = target.split(/[?#]/, 1)[0] ?? ''
  const [, token] = /^\/(?:api\/asset|api\/dpp\/token|token)\/([0-9]{1,78})\/?$/.exec(path) ?? []
  if (token !== undefined) return tokenOf(token)
  const link = parseDigitalLink(path.replace(/^\/api\/(?:dpp|product)(?=\/01\/)/, ''))
  return link.kind === 'malformed' || link.kind === 'unsupported' ? unreadable : link
}

function tokenOf(text: string): Identifier {
  const tokenId = parseTokenId(text)
  return tokenId === null ? unreadable : { kind: 'token', tokenId }
}

function parseBare(text: string): Identifier {
  const tokenId = parseTokenId(text)
  const gtin = parseTypedGtin(text)
  const serial = isRegistrableSerial(text) ? text : null
  if (tokenId !== null) return { kind: 'number', tokenId, gtin, serial }
  // A bar code is often copied with spaces or hyphens between its digits.
  if (gtin !== null && serial === null) return { kind: 'class', gtin }
  return serial === null ? unreadable : { kind: 'serial', serial }
}

/** Lengths of the values of application identifiers that no FNC1 ends: dates and variants (GS1 General Specifications §7.8.5). */
const fixedLength = new Map([11, 12, 13, 15, 16, 17].map((ai) => [String(ai), 6])).set('20', 2)
const separator = '\u001d'
/** Symbology identifiers of GS1 DataMatrix, QR code, GS1-128 and DataBar; some readers only return FNC1 (ISO/IEC 15424). */
const scannerPrefixes = [']d2', ']Q3', ']C1', ']e0', separator]

/** Parses a GS1 element string that begins with a GTIN. It has brackets, as printed, or FNC1, as scanners return it. */
function parseElements(text: string): Identifier | null {
  const begin = scannerPrefixes.find((prefix) => text.startsWith(prefix))
  const scanned = begin === undefined ? undefined : withoutSeparator(text.slice(begin.length))
  if (scanned === undefined && !text.startsWith('(01)')) return null
  const elements = scanned === undefined ? bracketed(text) : unbracketed(scanned)
  const gtin = elements?.get('01')
  if (elements === null || gtin?.length !== 14 || parseTypedGtin(gtin) === null) return unreadable
  const [serial, batch] = [elements.get('21'), elements.get('10')]
  if (serial !== undefined) return isRegistrableSerial(serial) ? { kind: 'item', gtin, serial } : unreadable
  if (batch !== undefined) return isRegistrableSerial(batch) ? { kind: 'batch', gtin, batch } : unreadable
  return { kind: 'class', gtin }
}

type Elements = ReadonlyMap<string, string>

function bracketed(text: string): Elements | null {
  const found = [...text.matchAll(/\((01|10|1[1-7]|20|21)\)((?:(?!\((?:01|10|1[1-7]|20|21)\)).)+)/g)]
  const length = found.reduce((sum, [element]) => sum + element.length, 0)
  return length === text.length ? unique(found.map(([, ai = '', value = '']) => [ai, value])) : null
}

function unbracketed(text: string): Elements | null {
  const elements: [string, string][] = []
  let rest = text
  while (rest !== '') {
    const ai = rest.slice(0, 2)
    const fixed = ai === '01' ? 14 : fixedLength.get(ai)
    if (fixed === undefined && ai !== '10' && ai !== '21') return null
    const end = fixed === undefined ? (rest + separator).indexOf(separator) : 2 + fixed
    elements.push([ai, rest.slice(2, end)])
    rest = withoutSeparator(rest.slice(end))
  }
  return unique(elements)
}

function withoutSeparator(text: string): string {
  return text.startsWith(separator) ? text.slice(1) : text
}

/** Returns null for an element string that names one identifier twice. */
function unique(elements: readonly (readonly [string, string])[]): Elements | null {
  const map = new Map(elements)
  return map.size === elements.length ? map : null
}
