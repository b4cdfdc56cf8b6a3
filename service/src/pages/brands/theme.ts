/**
 * Brand themes of the operator: which issuer's products wear which name, mark and colours. A theme is refused when its texts could not be
 * read, or when it could be taken for a verdict: verdict colours, strip, frames and order are the same on every page.
 */
import { createHash } from 'node:crypto'
import type { Hex } from '@touchstone/verdict'
import { z } from 'zod'
import { parseHttpsUrl } from '../../domain/https-url.ts'
import { trustedHtml } from '../html.ts'
import type { PageTheme } from '../theme.ts'

/** A theme with the products that wear it. */
export type BrandTheme = PageTheme & {
  /** Accounts that mint the brand's tokens, in lower case. */
  readonly issuers: readonly Hex[]
  /** First digits of the brand's GTIN-14s; none: every product of the issuers. */
  readonly gtinPrefixes: readonly string[]
  /** Brands in the metadata of its products; none: any. */
  readonly brands: readonly string[]
  /** Style sheet of the theme. */
  readonly css: string
  /** The typeface, under its path; null: none. */
  readonly typeface: { readonly path: string; readonly bytes: Uint8Array } | null
}

const colour = z
  .string()
  .regex(/^#[0-9a-fA-F]{6}$/, 'must be a colour such as #4a2315')
  .transform((text) => text.toLowerCase())
const colours = z.strictObject({
  ground: colour,
  surface: colour,
  ink: colour,
  ink2: colour,
  line: colour,
  accent: colour,
  onAccent: colour,
  stage: colour,
  stageLine: colour,
  stageInk: colour,
})
type Colours = z.infer<typeof colours>

const link = z
  .string()
  .max(500)
  .refine(
    (text) => parseHttpsUrl(text) !== null || /^mailto:[\w.+-]+@[\w.-]+$/.test(text),
    'must be an https URL without a user name, or mailto: and an address',
  )
  .optional()

const schema = z.strictObject({
  name: z.string().min(1).max(60),
  issuers: z
    .array(z.string().regex(/^0x[0-9a-fA-F]{40}$/, 'must be an address'))
    .min(1)
    .max(50),
  gtinPrefixes: z
    .array(z.string().regex(/^\d{4,13}$/, 'must be the first 4 to 13 digits of a GTIN-14'))
    .max(50)
    .default([]),
  brands: z.array(z.string().min(1).max(200)).max(50).default([]),
  style: z.enum(['classic', 'modern', 'plain']).default('plain'),
  links: z.strictObject({ contact: link, support: link, claim: link, privacy: link }).default({}),
  light: colours,
  dark: colours,
})

/** Paths of the style sheets. A hash of the text is part of each. */
export const themesPrefix = '/assets/themes/'

/** The whole page has 60 kB. */
const maxTypefaceBytes = 16_000

/** Parses a theme file, its mark and its typeface. Throws an Error of one sentence that names what is wrong. */
export function parseTheme(id: string, text: unknown, mark: string, woff2: Uint8Array | null = null): BrandTheme {
  if (!/^[a-z0-9-]{1,40}$/.test(id)) throw new Error('Its file name must have letters a-z, digits and hyphens.')
  const parsed = schema.safeParse(text)
  if (!parsed.success) {
    const [issue] = parsed.error.issues
    throw new Error(`${issue?.path.join('.') || 'The file'}: ${issue?.message ?? 'not valid'}.`)
  }
  const { name, issuers, gtinPrefixes, brands, style, links, light, dark } = parsed.data
  checkColours('light', light)
  checkColours('dark', dark)
  const typeface = woff2 && parseTypeface(id, woff2)
  const css = `${typeface === null ? '' : faceOf(typeface.path)}:root{${withTypeface(styles[style], typeface !== null)}${declarations(light)}}@media (prefers-color-scheme:dark){:root{${declarations(dark)}}}`
  return {
    id,
    name,
    links,
    typeface,
    hasTypeface: typeface !== null,
    stylesheet: pathOf(css, `${id}.css`),
    mark: trustedHtml(parseMark(mark)),
    issuers: issuers.map((issuer) => issuer.toLowerCase() as Hex),
    gtinPrefixes,
    brands,
    css,
  }
}

/** Names a file by the hash of its content. */
function pathOf(content: string | Uint8Array, name: string): string {
  return `${themesPrefix}${createHash('sha256').update(content).digest('hex').slice(0, 16)}/${name}`
}

function parseTypeface(id: string, bytes: Uint8Array): NonNullable<BrandTheme['typeface']> {
  if (Buffer.from(bytes.subarray(0, 4)).toString('latin1') !== 'wOF2') throw new Error('Its typeface is not WOFF2.')
  if (bytes.length > maxTypefaceBytes)
    throw new Error(
      `Its typeface has more than ${maxTypefaceBytes} bytes: leave out letters that the brand does not use.`,
    )
  return { path: pathOf(bytes, `${id}.woff2`), bytes }
}

/** A typeface that comes late is used on the next page, so that no line moves. */
function faceOf(path: string): string {
  return `@font-face{font-family:brand;font-display:optional;src:url(${path}) format("woff2")}`
}

function withTypeface(style: string, isLoaded: boolean): string {
  if (!isLoaded) return style
  return style.includes('--font-display:')
    ? style.replace('--font-display:', '--font-display:brand,')
    : `--font-display:brand,var(--sans);${style}`
}

/** Texts of the verdicts in both schemes, as page.css has them. A test compares. */
export const verdictTexts = {
  light: { go: '#0f5f3f', own: '#1d4d7e', hold: '#7a4900', stop: '#9c1524', none: '#49535f' },
  dark: { go: '#83d3a9', own: '#9cc4ef', hold: '#edbd6a', stop: '#ff9d9d', none: '#b3bdc8' },
} as const

function checkColours(scheme: 'light' | 'dark', all: Colours): void {
  const texts: Readonly<Record<string, string>> = { ink: all.ink, ink2: all.ink2, ...verdictTexts[scheme] }
  const pairs = [
    ...Object.entries(texts).flatMap(([name, text]) => [
      [name, text, 'ground', all.ground] as const,
      [name, text, 'surface', all.surface] as const,
    ]),
    ['ink', all.ink, 'stage', all.stage] as const,
    ['onAccent', all.onAccent, 'accent', all.accent] as const,
    ['stageInk', all.stageInk, 'stage', all.stage] as const,
  ]
  for (const [name, text, groundName, ground] of pairs) {
    const ratio = contrastOf(text, ground)
    if (ratio < 4.5)
      throw new Error(
        `${scheme}: ${name} on ${groundName} has a contrast of ${ratio.toFixed(1)}; text needs 4.5 (WCAG 2.2).`,
      )
  }
  for (const [name, tone] of Object.entries(verdictTexts[scheme]))
    if (name !== 'none' && name !== 'own' && areAlike(all.accent, tone))
      throw new Error(`${scheme}: accent looks like the colour of a verdict (${name}); a button would pass for one.`)
}

/** Two colours of the same hue, within 25 degrees, and of like lightness and chroma. */
function areAlike(one: string, other: string): boolean {
  const [left, right] = [hslOf(one), hslOf(other)]
  const turn = Math.abs(left.hue - right.hue)
  const isHue = Math.min(turn, 360 - turn) < 25
  return isHue && Math.abs(left.lightness - right.lightness) < 0.1 && Math.abs(left.chroma - right.chroma) < 0.2
}

function hslOf(colourText: string): { hue: number; lightness: number; chroma: number } {
  const [red, green, blue] = sharesOf(colourText)
  const [max, min] = [Math.max(red, green, blue), Math.min(red, green, blue)]
  const chroma = max - min
  const sixth =
    chroma === 0
      ? 0
      : max === red
        ? ((green - blue) / chroma + 6) % 6
        : max === green
          ? (blue - red) / chroma + 2
          : (red - green) / chroma + 4
  return { hue: sixth * 60, lightness: (max + min) / 2, chroma }
}

/** Writes the colours as custom properties: `onAccent` is `--on-accent`. */
function declarations(all: Colours): string {
  return Object.entries(all)
    .map(([name, value]) => `--${name.replace(/[A-Z0-9]/, (sign) => `-${sign.toLowerCase()}`)}:${value};`)
    .join('')
}

/** Fonts, sizes and corners. System fonts only, so that no request is needed. */
const styles: Readonly<Record<'classic' | 'modern' | 'plain', string>> = {
  classic:
    '--font-display:Didot,"Bodoni 72","Noto Serif Display","Hoefler Text",Baskerville,"Noto Serif","Times New Roman",serif;--font-text:"Avenir Next",Avenir,"Segoe UI",Roboto,"Noto Sans",system-ui,sans-serif;--display-weight:400;--display-track:-.012em;--t-word:3.25rem;--t-thing:1.625rem;--t-h2:1.75rem;--label-track:.16em;--label-case:uppercase;--radius:1px;--radius-btn:1px;--radius-tab:1px;--shadow:none;--align:center;--items:center;--bar-start:1fr;--brand-font:400 .9375rem/1.2 var(--font-display);--brand-track:.2em;--brand-case:uppercase;--card-bg:transparent;--card-line:0 solid transparent;--card-pad:24px 0;--frame:1px;',
  modern:
    '--font-display:"Avenir Next","Segoe UI Variable Display","Segoe UI",Roboto,"Noto Sans Display","Noto Sans",system-ui,sans-serif;--font-text:"Avenir Next","Segoe UI",Roboto,"Noto Sans",system-ui,sans-serif;--display-weight:800;--display-track:-.028em;--t-word:2.875rem;--t-thing:1.5rem;--t-h2:1.375rem;--label-track:.02em;--radius:18px;--stage-radius:22px;--stage-inset:12px;--stage-edge:1px;--radius-btn:999px;--shadow:0 1px 2px rgb(10 30 45 / 5%),0 10px 28px -18px rgb(10 30 45 / 28%);--brand-font:800 1.1875rem/1.1 var(--font-display);--brand-track:.06em;--brand-case:uppercase;',
  plain: '',
}

const shapes = ['svg', 'g', 'path', 'circle', 'rect', 'ellipse', 'line', 'polygon', 'polyline']
const attributes =
  'viewBox d cx cy r rx ry x y x1 y1 x2 y2 width height points transform fill stroke stroke-width stroke-linecap stroke-linejoin stroke-dasharray opacity fill-rule clip-rule'.split(
    ' ',
  )

/** Parses a mark: one SVG of plain shapes in `currentColor`, which cannot run or load anything. Throws an Error of one sentence. */
function parseMark(text: string): string {
  const source = text.trim().replace(/^<svg xmlns="[^"]*"/, '<svg')
  if (source.length > 8_000) throw new Error('Its mark has more than 8,000 characters.')
  if (!source.startsWith('<svg ') || !source.endsWith('</svg>')) throw new Error('Its mark is not one svg element.')
  const rest = source.replace(
    /<(\/?)([a-z]+)((?: [a-zA-Z0-9-]+="[^"<>&]*")*) ?\/?>/g,
    (tag, _close, name: string, all: string) => {
      const names = [...all.matchAll(/ ([a-zA-Z0-9-]+)="([^"]*)"/g)]
      const isPlain =
        shapes.includes(name) &&
        names.every(([, key = '', value = '']) => attributes.includes(key) && /^[\w\s.,()%+-]*$/.test(value))
      return isPlain ? '' : tag
    },
  )
  if (rest.trim() !== '')
    throw new Error(`Its mark holds more than plain shapes in currentColor: ${rest.trim().slice(0, 60)}`)
  return source.replace('<svg ', '<svg aria-hidden="true" focusable="false" ')
}

/** A product as its theme is chosen: the GTIN by which it is registered, and the brand in its metadata. Null members are unknown. */
type Themed = { readonly gtin: string | null; readonly brand: string | null }

/**
 * Returns the theme of a product, or null. `isIssuer` is true for the account that minted it. The metadata selects no theme, but rules out one
 * that lists other brands: API keys of several brands mint by one account, and each may set any new GTIN.
 */
export function themeOf(
  themes: readonly BrandTheme[],
  { gtin, brand }: Themed,
  isIssuer: (account: Hex) => boolean,
): BrandTheme | null {
  const fits = (theme: BrandTheme) =>
    hasGtin(theme, gtin) && (theme.brands.length === 0 || (brand !== null && theme.brands.includes(brand)))
  return themes.find((theme) => fits(theme) && theme.issuers.some(isIssuer)) ?? null
}

/** Returns whether products with this GTIN may wear a theme. */
export function hasGtin({ gtinPrefixes }: BrandTheme, gtin: string | null): boolean {
  return gtinPrefixes.length === 0 || (gtin !== null && gtinPrefixes.some((prefix) => gtin.startsWith(prefix)))
}

/** Contrast of two colours (WCAG 2.2, «contrast ratio» and «relative luminance»), 1 to 21. Colours are `#rrggbb`. */
export function contrastOf(one: string, other: string): number {
  const [light, dark] = [luminanceOf(one), luminanceOf(other)].toSorted((left, right) => right - left) as [
    number,
    number,
  ]
  return (light + 0.05) / (dark + 0.05)
}

function luminanceOf(colour: string): number {
  const linear = (share: number) => (share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4)
  const [red, green, blue] = sharesOf(colour)
  return 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue)
}

/** Returns red, green and blue of `#rrggbb`, each from 0 to 1. */
function sharesOf(colour: string): readonly [red: number, green: number, blue: number] {
  const shareAt = (at: number) => Number.parseInt(colour.slice(at, at + 2), 16) / 255
  return [shareAt(1), shareAt(3), shareAt(5)]
}
