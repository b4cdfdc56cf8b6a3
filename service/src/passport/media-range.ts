/** Reads an `Accept` header (RFC 9110 §12.5.1). */

export type MediaRange = { readonly type: string; readonly quality: number }

const longest = 2048

/** The media ranges of a header, in its order, in lower case without parameters; no header, or an absurdly long one, means anything goes. */
export function mediaRanges(accept: string | null): readonly MediaRange[] {
  if (accept === null || accept.trim() === '' || accept.length > longest) return [{ type: '*/*', quality: 1 }]
  const unquoted = accept.replace(/"(?:[^"\\]|\\.)*"/g, '""')
  return unquoted.split(',').flatMap((part) => {
    const [type = '', ...parameters] = part.split(';').map((piece) => piece.trim().toLowerCase())
    const weight = parameters.find((parameter) => /^q\s*=/.test(parameter))?.replace(/^q\s*=\s*/, '') ?? '1'
    if (!/^[^\s/]+\/[^\s/]+$/.test(type) || !/^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/.test(weight)) return []
    return [{ type, quality: Number(weight) }]
  })
}

/** The weight that the header gives a type by name; 0 when it does not name it. */
export function namedQuality(ranges: readonly MediaRange[], type: string): number {
  return Math.max(0, ...ranges.filter((range) => range.type === type).map((range) => range.quality))
}

/** The weight of a type by the most specific range that holds it; 0 when none does. */
export function qualityOf(ranges: readonly MediaRange[], type: string): number {
  const range = [type, type.replace(/\/.*/, '/*'), '*/*'].find((candidate) =>
    ranges.some((each) => each.type === candidate),
  )
  return range === undefined ? 0 : namedQuality(ranges, range)
}
