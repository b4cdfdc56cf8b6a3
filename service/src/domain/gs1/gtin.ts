/** GTIN-14, the product class key of a GS1 Digital Link (spec §4.5; GS1 General Specifications §7.9, check digit). */

/** A GTIN, or why the text is not one. The answer is 400 for each; the passport's names what is wrong. */
export type GtinResult =
  | { readonly ok: true; readonly gtin: string }
  | { readonly ok: false; readonly error: 'gtin-format' | 'gtin-check-digit' }

/** Parses exactly 14 ASCII digits with a right check digit; nothing is decoded or trimmed. */
export function parseGtin(text: string): GtinResult {
  if (!/^[0-9]{14}$/.test(text)) return { ok: false, error: 'gtin-format' }
  if (gtinCheckDigit(text.slice(0, 13)) !== text[13]) return { ok: false, error: 'gtin-check-digit' }
  return { ok: true, gtin: text }
}

/** Pads the 8, 12 or 13 digits below a bar code, typed with or without spaces, to a GTIN-14 (GS1 General Specifications §3.3.2). */
export function parseTypedGtin(text: string): string | null {
  const digits = text.replace(/[\s-]/g, '')
  if (![8, 12, 13, 14].includes(digits.length)) return null
  const parsed = parseGtin(digits.padStart(14, '0'))
  return parsed.ok ? parsed.gtin : null
}

/** Returns the check digit of 13 digits: weights 3, 1, 3, … from the right, filled up to the next ten. */
export function gtinCheckDigit(digits: string): string {
  const weighted = Array.from(digits, (digit, index) => Number(digit) * (index % 2 === 0 ? 3 : 1))
  const sum = weighted.reduce((total, part) => total + part, 0)
  return String((10 - (sum % 10)) % 10)
}
