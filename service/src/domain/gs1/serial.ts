/** GS1 serial number, application identifier 21: 1 to 20 characters of CSET 82, case-sensitive (spec §4.5; GS1 Digital Link URI Syntax 1.4). */

/** The GTIN-14 and the serial of one item. The serial is decoded, as it is printed on the item. */
export type ItemKey = { readonly gtin: string; readonly serial: string }

export type SerialError = 'serial-encoding' | 'serial-charset' | 'serial-length'
export type SerialResult =
  | { readonly ok: true; readonly serial: string }
  | { readonly ok: false; readonly error: SerialError }

const outsideCset82 = /[^\x21-\x22\x25-\x2f\x30-\x3f\x41-\x5a\x5f\x61-\x7a]/
const longest = 20

/** Parses a serial as it is printed and stored. The other qualifiers of a GTIN differ in length only. */
export function parseSerial(text: string, max = longest): SerialResult {
  if (outsideCset82.test(text)) return { ok: false, error: 'serial-charset' }
  if (text.length < 1 || text.length > max) return { ok: false, error: 'serial-length' }
  return { ok: true, serial: text }
}

/**
 * Returns whether a registration may use this serial: CSET 82, but not `.` or `..`. URL parsers remove those (`%2e%2e` too) from
 * a path before the request is sent, so the item's link could not be opened.
 */
export function isRegistrableSerial(text: string): boolean {
  return parseSerial(text).ok && text !== '.' && text !== '..'
}

/** Encodes a serial as a path segment: all but `A-Z a-z 0-9 - . _` is percent-encoded. */
export function encodeSerial(serial: string): string {
  return serial.replace(/[^A-Za-z0-9\-._]/g, (character) => `%${hexOf(character)}`)
}

/** Parses one raw path segment: percent-decoded exactly once, hex digits of either case, `+` is a plus. */
export function decodeSerial(segment: string, max = longest): SerialResult {
  if (/%(?![0-9a-fA-F]{2})/.test(segment)) return { ok: false, error: 'serial-encoding' }
  // A byte above 7F is no character of CSET 82, so decoding byte by byte never misreads UTF-8.
  return parseSerial(
    segment.replace(/%([0-9a-fA-F]{2})/g, (_escape, digits: string) =>
      String.fromCharCode(Number.parseInt(digits, 16)),
    ),
    max,
  )
}

function hexOf(character: string): string {
  return character.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')
}
