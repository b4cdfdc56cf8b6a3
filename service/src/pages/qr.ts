/** QR codes of Digital Links as SVG (ISO/IEC 18004). They have no script and no style, so that they fit in any page and policy. */
import encodeQR from 'qr'
import { html, type Html } from './html.ts'

/** Readers need so many white modules around the symbol (ISO/IEC 18004 §9.1). */
const quietZone = 4

/** Draws a code. `text` is ASCII, such as a URL of this service, at most 1,000 characters; `title` is for screen readers. */
export function qrCode(text: string, title: string): Html {
  const { path, modules } = qrPath(text, 'M')
  const size = modules + 2 * quietZone
  return html`<svg
    xmlns="http://www.w3.org/2000/svg"
    viewBox="0 0 ${size} ${size}"
    role="img"
    aria-label="${title}"
    shape-rendering="crispEdges"
  >
    <title>${title}</title>
    <path fill="#fff" d="M0 0h${size}v${size}H0z" />
    <path fill="#000" d="${path}" />
  </svg>`
}

const levels = { L: 'low', M: 'medium' } as const

/** Returns the dark modules as an SVG path behind the quiet zone, and the modules of a row. Level L holds the most text. */
export function qrPath(text: string, level: 'L' | 'M'): { readonly path: string; readonly modules: number } {
  const rows = encodeQR(text, 'raw', { ecc: levels[level], encoding: 'byte', border: quietZone })
  return { path: rows.map(rowPath).join(''), modules: rows.length - 2 * quietZone }
}

/** Draws one rectangle for each run of dark modules. */
function rowPath(isDark: readonly boolean[], row: number): string {
  let path = ''
  for (let column = 0; column < isDark.length; column += 1) {
    const start = column
    while (isDark[column]) column += 1
    if (column > start) path += `M${start} ${row}h${column - start}v1H${start}z`
  }
  return path
}
