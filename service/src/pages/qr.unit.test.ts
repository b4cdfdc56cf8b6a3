import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { markupOf } from './html.ts'
import { qrCode } from './qr.ts'

const qrSvg = (text: string, title: string) => markupOf(qrCode(text, title))

const link = 'https://verify.example/01/09520123456788/21/HFJ-000417'

describe('a QR code', () => {
  for (const text of [link, 'http://127.0.0.1:8080/token/1042000000000000000', `${link}${'%2F'.repeat(8)}`]) {
    it(`of ${text} is read back from the drawing`, () => assert.equal(readText(qrSvg(text, 'x')), text))
  }

  it('has four white modules around it', () => {
    const { size, dark } = drawing(qrSvg(link, 'x'))
    for (let at = 0; at < size; at += 1)
      for (const edge of [0, 1, 2, 3, size - 1, size - 2, size - 3, size - 4])
        assert.ok(!dark.has(`${at},${edge}`) && !dark.has(`${edge},${at}`))
    assert.ok(dark.has('4,4') && dark.has(`${size - 5},4`) && dark.has(`4,${size - 5}`))
  })

  it('is an image with a title, escaped, without style or script', () => {
    const svg = qrSvg(link, `Link of "A & B" <script>'`)
    const title = 'Link of &quot;A &amp; B&quot; &lt;script&gt;&#39;'
    assert.ok(
      svg.replace(/\s+/g, ' ').includes(`role="img" aria-label="${title}"`) && svg.includes(`<title>${title}</title>`),
    )
    assert.ok(!/<script|style=|href/.test(svg))
  })
})

/** The black modules of an SVG, as `column,row`. */
function drawing(svg: string): { size: number; dark: Set<string> } {
  const dark = new Set<string>()
  const path = /fill="#000" d="([^"]*)"/.exec(svg)?.[1] ?? ''
  for (const [, x, y, width] of path.matchAll(/M(\d+) (\d+)h(\d+)v1H\1z/g))
    for (let step = 0; step < Number(width); step += 1) dark.add(`${Number(x) + step},${y}`)
  return { size: Number(/viewBox="0 0 (\d+) /.exec(svg)?.[1]), dark }
}

/** Blocks and data codewords a block at error correction M, of the versions 2 to 6 (ISO/IEC 18004 table 9). */
const blocksOf = new Map([
  [2, [1, 28]],
  [3, [1, 44]],
  [4, [2, 32]],
  [5, [2, 43]],
  [6, [4, 27]],
])
const masks: readonly ((row: number, column: number) => boolean)[] = [
  (row, column) => (row + column) % 2 === 0,
  (row) => row % 2 === 0,
  (_row, column) => column % 3 === 0,
  (row, column) => (row + column) % 3 === 0,
  (row, column) => ((row >> 1) + Math.floor(column / 3)) % 2 === 0,
  (row, column) => ((row * column) % 2) + ((row * column) % 3) === 0,
  (row, column) => (((row * column) % 2) + ((row * column) % 3)) % 2 === 0,
  (row, column) => (((row + column) % 2) + ((row * column) % 3)) % 2 === 0,
]

/** Reads an undamaged code of byte mode, so without error correction. */
function readText(svg: string): string {
  const { size, dark } = drawing(svg)
  const count = size - 8
  const version = (count - 17) / 4
  const [blocks = 0, length = 0] = blocksOf.get(version) ?? []
  const isDark = (row: number, column: number) => dark.has(`${column + 4},${row + 4}`)
  const format = [0, 1, 2, 3, 4, 5, 7, 8].reduce((bits, row, bit) => bits | (Number(isDark(row, 8)) << bit), 0)
  const rest = [7, 5, 4, 3, 2, 1, 0].reduce(
    (bits, column, bit) => bits | (Number(isDark(8, column)) << (bit + 8)),
    format,
  )
  const mask = masks[((rest ^ 0x5412) >> 10) & 7]
  const alignment = count - 7
  const isFunction = (row: number, column: number) =>
    row === 6 ||
    column === 6 ||
    (row < 9 && (column < 9 || column >= count - 8)) ||
    (row >= count - 8 && column < 9) ||
    (Math.abs(row - alignment) <= 2 && Math.abs(column - alignment) <= 2)
  let bits = ''
  for (let right = count - 1, up = true; right > 0; right -= 2, up = !up) {
    if (right === 6) right -= 1
    for (let step = 0; step < count; step += 1) {
      const row = up ? count - 1 - step : step
      for (const column of [right, right - 1])
        if (!isFunction(row, column)) bits += isDark(row, column) === mask?.(row, column) ? '0' : '1'
    }
  }
  const codewords = (bits.match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2))
  const data = Array.from(
    { length: blocks * length },
    (_none, at) => codewords[(at % length) * blocks + Math.floor(at / length)] ?? 0,
  )
  const stream = data.map((byte) => byte.toString(2).padStart(8, '0')).join('')
  assert.equal(stream.slice(0, 4), '0100')
  const bytes = Number.parseInt(stream.slice(4, 12), 2)
  return Buffer.from(
    (stream.slice(12, 12 + 8 * bytes).match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2)),
  ).toString()
}
