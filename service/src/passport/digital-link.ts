/**
 * GS1 Digital Links of this service: `/01/{gtin}/21/{serial}`, `/01/{gtin}/10/{batch}`, `/01/{gtin}` and the passport route `/api/dpp/01/…`
 * (spec §4.5, §4.6; GS1 Digital Link URI Syntax 1.4). They are parsed from the raw request path, which alone keeps `%2F` and `/` apart.
 */
import { parseGtin } from '../domain/gs1/gtin.ts'
import { decodeSerial, encodeSerial, type ItemKey, type SerialError } from '../domain/gs1/serial.ts'

type LinkError = 'path' | 'gtin-format' | 'gtin-check-digit' | SerialError

/** An item, a model or a batch, which have a path each. */
export type LinkTarget =
  | ({ readonly kind: 'item' } & ItemKey)
  | { readonly kind: 'class'; readonly gtin: string }
  | { readonly kind: 'batch'; readonly gtin: string; readonly batch: string }

export type DigitalLink =
  | LinkTarget
  /** A valid Digital Link of a kind that this service does not have. It is a variant, a third-party serial, a serial below a batch. */
  | { readonly kind: 'unsupported'; readonly gtin: string }
  | { readonly kind: 'malformed'; readonly error: LinkError }

/** A longer path is malformed; the longest legal item path has 82 characters. */
const maxLength = 512

/** Parses the raw path of a request as it stood in the request line, without its query. One trailing slash is tolerated. */
export function parseDigitalLink(rawPath: string): DigitalLink {
  return parseBelow('/', rawPath)
}

/** Parses `/api/dpp/01/…` in the same way. */
export function parsePassportPath(rawPath: string): DigitalLink {
  return parseBelow('/api/dpp/', rawPath)
}

/** Returns the path of an item's Digital Link in its canonical spelling. */
export function itemPath({ gtin, serial }: ItemKey): string {
  return `/01/${gtin}/21/${encodeSerial(serial)}`
}

export function classPath(gtin: string): string {
  return `/01/${gtin}`
}

function parseBelow(root: string, rawPath: string): DigitalLink {
  const path = rawPath.split(/[?#]/, 1)[0] ?? ''
  if (path.length > maxLength || !path.startsWith(`${root}01/`)) return malformed('path')
  const [gtinText = '', ...qualifiers] = path
    .slice(root.length + 3)
    .replace(/\/$/, '')
    .split('/')
  const parsed = parseGtin(gtinText)
  if (!parsed.ok) return malformed(parsed.error)
  const { gtin } = parsed
  if (qualifiers.length === 0) return { kind: 'class', gtin }
  if (qualifiers.length === 2 && qualifiers[0] === '21') {
    const decoded = decodeSerial(qualifiers[1] ?? '')
    return decoded.ok ? { kind: 'item', gtin, serial: decoded.serial } : malformed(decoded.error)
  }
  if (qualifiers.length === 2 && qualifiers[0] === '10') {
    const decoded = decodeSerial(qualifiers[1] ?? '') // a batch has the characters and the length of a serial
    return decoded.ok ? { kind: 'batch', gtin, batch: decoded.serial } : malformed('path')
  }
  return isValidQualifiers(qualifiers) ? { kind: 'unsupported', gtin } : malformed('path')
}

/**
 * Qualifiers of a GTIN with the maximum length of their values. They are in the order in which a path may name them (URI Syntax 1.4 §4.9).
 */
const sequences = [
  new Map([
    ['22', 20],
    ['10', 20],
    ['21', 20],
  ]),
  new Map([['235', 28]]),
] as const

function isValidQualifiers(qualifiers: readonly string[]): boolean {
  return sequences.some((sequence) => {
    const keys = [...sequence.keys()]
    let position = -1
    for (let at = 0; at < qualifiers.length; at += 2) {
      const key = qualifiers[at] ?? ''
      const next = keys.indexOf(key)
      if (next <= position || !decodeSerial(qualifiers[at + 1] ?? '', sequence.get(key) ?? 0).ok) return false
      position = next
    }
    return true
  })
}

function malformed(error: LinkError): DigitalLink {
  return { kind: 'malformed', error }
}
