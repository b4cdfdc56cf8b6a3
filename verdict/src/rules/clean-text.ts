/**
 * Takes out of supplier text what hides, reorders or commands (spec §2.3). These are control sequences, ANSI escapes,
 * bidi overrides, TAG characters and invisible code points. Visible text stays as it is: nothing is decoded, folded or
 * normalised. Every step is linear, and cleaning a result again changes nothing.
 */

/** Longest text that is looked at, in multiples of the cap. */
const inputFactor = 8

/**
 * A sequence that appears when another is removed is removed too, this often. What is left loses its ESC and is plain
 * text.
 */
const ansiPasses = 4

const mostMarks = 8

/**
 * This pattern matches the sequences of ECMA-48. They are CSI; the strings OSC, DCS, SOS, PM and APC up to BEL or ST;
 * charset switches and other two-character escapes. A string holds no introducer, so no text is scanned twice; an
 * unterminated string loses its introducer only.
 */
const ansi =
  // oxlint-disable-next-line no-control-regex
  /(?:\x1B\[|\x9B)[0-?]*[ -/]*[@-~]|(?:\x1B[PX\]^_]|[\x90\x98\x9D-\x9F])[^\x07\x1B\x90\x98\x9B-\x9F]*(?:\x07|\x1B\\|\x9C)|\x1B[ -/]*[0-~]/g

/** Dropped wherever they stand: all but line feeds, joiners and VS15/VS16, which are judged elsewhere. */
const dropped =
  /(?![\n\p{Join_Control}\u{FE0E}-\u{FE0F}])[\p{Cc}\p{Cs}\p{Co}\p{Noncharacter_Code_Point}\p{Default_Ignorable_Code_Point}\u{FFF0}-\u{FFFC}]/gu

/** Marks in a row; joiners and selectors neither count nor part two rows, because they may fall out later. */
const markRow = /[\p{M}\p{Join_Control}]+/gu

const selector = /[\u{FE0E}-\u{FE0F}]/u
const joiner = /\p{Join_Control}/u

/** Joiners and selectors in a row, with the code point after them. */
const joinerRow = /[\p{Join_Control}\u{FE0E}-\u{FE0F}]+(?=(.?))/gsu

/** Letters of the scripts in which a joiner is spelling, and all marks. */
const joining =
  /(?=\p{L})[\p{sc=Arab}\p{sc=Syrc}\p{sc=Mong}\p{sc=Deva}\p{sc=Beng}\p{sc=Guru}\p{sc=Gujr}\p{sc=Orya}\p{sc=Taml}\p{sc=Telu}\p{sc=Knda}\p{sc=Mlym}\p{sc=Sinh}\p{sc=Khmr}\p{sc=Mymr}\p{sc=Tibt}]|\p{M}/u

/**
 * Cleans one supplier text (spec §2.3). `max` is the cap in code points; a longer text ends with `…`.
 * `multiline` keeps line feeds; otherwise they become spaces. The result may be empty: leave the field out then.
 */
export function cleanText(text: string, { max, multiline = false }: { max: number; multiline?: boolean }): string {
  let clean = text.slice(0, inputFactor * max)
  clean = clean.replace(/\r\n?|\x85/g, '\n').replace(multiline ? /\t/g : /[\t\n]/g, ' ')
  for (let pass = 0; pass < ansiPasses; pass += 1) clean = clean.replace(ansi, '')
  clean = clean.replace(/[\u{2028}\u{2029}\u{2800}]/gu, ' ').replace(dropped, '')
  clean = clean.replace(markRow, capMarks).replace(joinerRow, judgeJoiners)
  clean = clean.replace(/\p{Zs}{2,}/gu, ' ').replace(/\p{Zs}?\n\p{Zs}?/gu, '\n')
  return capLength(clean.replace(/\n{3,}/g, '\n\n').trim(), max)
}

/** Keeps the first marks of a row: more only pile up over the neighbouring lines. */
function capMarks(row: string): string {
  let marks = 0
  return Array.from(row, (char) => {
    if (joiner.test(char) || selector.test(char)) return char
    marks += 1
    return marks <= mostMarks ? char : ''
  }).join('')
}

/** Keeps at most one selector after an emoji and one joiner between letters that join, or between pictographs. */
function judgeJoiners(row: string, after: string, at: number, text: string): string {
  const before = Array.from(text.slice(Math.max(0, at - 2), at)).at(-1) ?? '' // Safari before 16.4 has no lookbehind
  const style = /\p{Emoji}/u.test(before) ? (selector.exec(row)?.[0] ?? '') : ''
  if (joining.test(before) && joining.test(after)) return style + (joiner.exec(row)?.[0] ?? '')
  const pictographs =
    /[\p{Extended_Pictographic}\p{Emoji_Modifier}]/u.test(before) && /\p{Extended_Pictographic}/u.test(after)
  return pictographs && row.includes('\u{200D}') ? `${style}\u{200D}` : style
}

/** A joiner or space that the cut leaves at the end goes too: nothing follows that would keep it. */
function capLength(text: string, max: number): string {
  const points = Array.from(text)
  if (points.length <= max) return text
  const kept = points.slice(0, max - 1)
  while (/^[\p{Zs}\n\p{Join_Control}]$/u.test(kept.at(-1) ?? '')) kept.pop()
  return `${kept.join('')}…`
}
