/** Brand themes: contrast, marks, and the products that wear them. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { markupOf } from '../html.ts'
import { contrastOf, type BrandTheme, parseTheme, themeOf, verdictTexts } from './theme.ts'

const demo = new URL('../../cli/dev/themes/', import.meta.url)
type Theme = Record<string, unknown> & { light: Record<string, string>; dark: Record<string, string> }
const fileOf = (name: string) => JSON.parse(readFileSync(new URL(`${name}.json`, demo), 'utf8')) as Theme
const markOf = (name: string) => readFileSync(new URL(`${name}.svg`, demo), 'utf8')
const orvelle = fileOf('orvelle')
const mark = markOf('orvelle')

describe('contrastOf', () => {
  it('is the ratio of WCAG', () => {
    assert.equal(contrastOf('#000000', '#ffffff'), 21)
    assert.equal(contrastOf('#ffffff', '#ffffff'), 1)
    assert.equal(contrastOf('#777777', '#ffffff').toFixed(2), '4.48')
  })
})

describe('parseTheme', () => {
  for (const name of ['orvelle', 'norrvik'])
    it(`takes the demonstration's ${name}`, () => {
      const theme = parseTheme(name, fileOf(name), markOf(name))
      assert.match(theme.stylesheet, /^\/assets\/themes\/[0-9a-f]{16}\/(orvelle|norrvik)\.css$/)
      assert.match(theme.css, /^:root\{.*\}@media \(prefers-color-scheme:dark\)\{:root\{.*\}\}$/)
      assert.match(markupOf(theme.mark), /^<svg aria-hidden="true"/)
    })

  const rejected: readonly (readonly [string, Partial<Theme>, RegExp])[] = [
    [
      'text that cannot be read',
      { light: { ...orvelle.light, ink2: '#b0a89c' } },
      /light: ink2 on ground has a contrast of/,
    ],
    [
      'a ground on which a verdict cannot be read',
      { dark: { ...orvelle.dark, ground: '#5c6b60' } },
      /dark: .* contrast/,
    ],
    ['a button in the green of a verdict', { light: { ...orvelle.light, accent: '#0f5f3f' } }, /looks like .*\(go\)/],
    ['a button in the red of a verdict', { light: { ...orvelle.light, accent: '#a01020' } }, /looks like .*\(stop\)/],
    ['no issuer', { issuers: [] }, /issuers/],
    ['a colour by name', { light: { ...orvelle.light, ink: 'black' } }, /light.ink: must be a colour/],
    ['a link that runs', { links: { contact: 'javascript:alert(1)' } }, /links.contact: must be an https URL/],
    ['a link to nowhere known', { links: { imprint: 'https://a.example' } }, /links/],
    ['style of its own', { css: 'body{}' }, /css|Unrecognized/],
  ]
  for (const [what, change, message] of rejected)
    it(`refuses ${what}`, () => assert.throws(() => parseTheme('a', { ...orvelle, ...change }, mark), message))

  it('loads a typeface of its own, bounded, from this host', () => {
    const font = (length: number) => Buffer.concat([Buffer.from('wOF2'), Buffer.alloc(length - 4)])
    const { css, typeface, hasTypeface } = parseTheme('a', orvelle, mark, font(16_000))
    assert.match(typeface?.path ?? '', /^\/assets\/themes\/[0-9a-f]{16}\/a\.woff2$/)
    assert.ok(hasTypeface && css.includes(`url(${typeface?.path})`) && css.includes('--font-display:brand,Didot'))
    assert.match(
      parseTheme('a', { ...orvelle, style: 'plain' }, mark, font(9)).css,
      /--font-display:brand,var\(--sans\)/,
    )
    assert.throws(() => parseTheme('a', orvelle, mark, font(16_001)), /more than 16000 bytes/)
    assert.throws(() => parseTheme('a', orvelle, mark, Buffer.from('OTTO')), /not WOFF2/)
    assert.equal(parseTheme('a', orvelle, mark).typeface, null)
  })

  const marks = [
    '<svg viewBox="0 0 1 1"><script>alert(1)</script></svg>',
    '<svg viewBox="0 0 1 1" onload="alert(1)"></svg>',
    '<svg viewBox="0 0 1 1"><path d="M0 0" style="fill:red"/></svg>',
    '<svg viewBox="0 0 1 1"><use href="https://a.example/b.svg#c"/></svg>',
    '<svg viewBox="0 0 1 1"><path fill="url(https://a.example)"/></svg>',
    '<svg viewBox="0 0 1 1"><foreignObject></foreignObject></svg>',
    '<img src="x">',
    `<svg viewBox="0 0 1 1"><path d="${'M0 0'.repeat(3_000)}"/></svg>`,
  ]
  for (const text of marks)
    it(`refuses the mark ${text.slice(0, 60)}`, () => assert.throws(() => parseTheme('a', orvelle, text), /mark/))

  it('checks against the colours that the pages have', () => {
    const css = readFileSync(new URL('../browser/page.css', import.meta.url), 'utf8')
    const [light = '', dark = ''] = css.split('@media (prefers-color-scheme: dark)')
    for (const [name, colour] of Object.entries(verdictTexts.light)) assert.ok(light.includes(`--${name}: ${colour};`))
    for (const [name, colour] of Object.entries(verdictTexts.dark)) assert.ok(dark.includes(`--${name}: ${colour};`))
  })
})

describe('themeOf', () => {
  const [issuer, stranger] = [`0x${'0a'.repeat(20)}`, `0x${'0b'.repeat(20)}`] as const
  const themeFor = (gtinPrefixes: readonly string[], brands: readonly string[] = []): BrandTheme =>
    parseTheme('a', { ...orvelle, issuers: [issuer.toUpperCase().replace('0X', '0x')], gtinPrefixes, brands }, mark)
  const of = (gtin: string | null, brand: string | null = null) => ({ gtin, brand })
  const by = (minter: string) => (account: string) => account === minter

  it('is that of the account that minted the token, and of no other', () => {
    const all = [themeFor([])]
    assert.equal(themeOf(all, of(null), by(issuer))?.name, 'Maison Orvelle')
    assert.equal(themeOf(all, of(null), by(stranger)), null)
  })

  it('is that of the first digits of the GTIN where the operator names them', () => {
    const some = [themeFor(['09520003'])]
    assert.equal(themeOf(some, of('09520003000001'), by(issuer))?.name, 'Maison Orvelle')
    assert.equal(themeOf(some, of('09520004000000'), by(issuer)), null)
    assert.equal(themeOf(some, of(null), by(issuer)), null)
  })

  it('is not that of another brand that mints by the same account and gives a GTIN of the theme', () => {
    const some = [themeFor(['09520003'], ['Maison Orvelle'])]
    assert.equal(themeOf(some, of('09520003000001', 'Maison Orvelle'), by(issuer))?.name, 'Maison Orvelle')
    for (const brand of ['Norrvik', 'maison orvelle', null])
      assert.equal(themeOf(some, of('09520003000001', brand), by(issuer)), null)
  })
})
