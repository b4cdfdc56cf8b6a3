/** Reads an `Accept` header (RFC 9110 §12.5.1). */

export type MediaRange = { readonly type: string; readonly quality: number }

const longest = 2048

/** Parses the media ranges of a header, in its order, in lower case without parameters. No header, or one over 2048 characters, is `*\/*`. */
export function mediaRanges(accept: string | null): readonly MediaRange[] {
  if (accept === null || accept.trim() === '' || accept.length > longest) return [{ type: '*/*', quality: 1 }]
  // A quote that is not closed goes to the end, so that the header is read once.
  const unquoted = accept.replace(/"(?:[^"\\]|\\.)*"?/g, '""')
  return unquoted.split(',').flatMap((part) => {
    const [type = '', ...parameters] = part.split(';').map((piece) => piece.trim().toLowerCase())
    const weight = parameters.find((parameter) => /^q\s*=/.test(parameter))?.replace(/^q\s*=\s*/, '') ?? '1'
    if (!/^[^\s/]+\/[^\s/]+$/.test(type) || !/^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/.test(weight)) return []
    return [{ type, quality: Number(weight) }]
  })
}

/** Returns the weight of a type that the header names; 0 when it does not name it. */
export function namedQuality(ranges: readonly MediaRange[], type: string): number {
  return Math.max(0, ...ranges.filter((range) => range.type === type).map((range) => range.quality))
}

/** Returns the weight of a type by the most specific range that matches it; 0 when none does. */
export function qualityOf(ranges: readonly MediaRange[], type: string): number {
  const range = [type, type.replace(/\/.*/, '/*'), '*/*'].find((candidate) =>
    ranges.some((each) => each.type === candidate),
  )
  return range === undefined ? 0 : namedQuality(ranges, range)
}

/**
 * Returns whether a browser navigates: it names HTML and XHTML, and prefers HTML to JSON. Programs that name HTML, as Java does by default,
 * do not name XHTML.
 */
export function prefersPage(accept: string | null): boolean {
  if (accept === null || !/application\/xhtml\+xml/i.test(accept)) return false // most programs, at a fraction of the cost
  const ranges = mediaRanges(accept)
  return namedQuality(ranges, 'text/html') > qualityOf(ranges, 'application/json')
}

/** Signed forms of a passport, best first: a JWS (VC-JOSE-COSE) and an embedded `eddsa-jcs-2022` proof. */
export const signedForms = ['application/vc+jwt', 'application/vc'] as const
export type SignedForm = (typeof signedForms)[number]
export type PassportForm = 'application/ld+json' | SignedForm

/**
 * Selects the form of a passport (spec §9), or null for 406. `offered` are the signed forms that this service has keys for.
 * A signed form is sent only when the header names it with a higher weight than the unsigned document has, so that clients
 * that do not know of signing see no change.
 */
export function negotiate(accept: string | null, offered: readonly SignedForm[]): PassportForm | null {
  const ranges = mediaRanges(accept)
  // A range for errors does not ask for the unsigned document.
  const wanted = ranges.filter(({ quality, type }) => quality > 0 && type !== 'application/problem+json')
  const onlySigned = wanted.length > 0 && wanted.every(({ type }) => signedForms.some((form) => form === type))
  const unsigned = Math.max(qualityOf(ranges, 'application/ld+json'), qualityOf(ranges, 'application/json'))
  let best: { readonly form: PassportForm | null; readonly quality: number } = {
    form: onlySigned ? null : 'application/ld+json',
    quality: onlySigned ? 0 : unsigned,
  }
  for (const form of signedForms) {
    const quality = offered.includes(form) ? namedQuality(ranges, form) : 0
    if (quality > best.quality) best = { form, quality }
  }
  return best.form
}
