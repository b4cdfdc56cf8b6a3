/** QR codes of Digital Links as SVG (ISO/IEC 18004): no script, no style, so that they fit in any page and policy. */
import qrcode from 'qrcode-generator'
import { html, type Html } from './html.ts'

/** Readers need so many white modules around the symbol (ISO/IEC 18004 §9.1). */
const quietZone = 4

/** Draws a code. `text` is ASCII, such as a URL of this service, at most 1,000 characters; `title` is for screen readers. */
export function qrCode(text: string, title: string): Html {
  const code = qrcode(0, 'M')
  code.addData(text)
  code.make()
  const count = code.getModuleCount()
  const size = count + 2 * quietZone
  const rows = Array.from({ length: count }, (_row, row) => rowPath(row, count, (column) => code.isDark(row, column)))
  return html`<svg
    xmlns="http://www.w3.org/2000/svg"
    viewBox="0 0 ${size} ${size}"
    role="img"
    aria-label="${title}"
    shape-rendering="crispEdges"
  >
    <title>${title}</title>
    <path fill="#fff" d="M0 0h${size}v${size}H0z" />
    <path fill="#000" d="${rows}" />
  </svg>`
}

/** Draws one rectangle for each run of dark modules. */
function rowPath(row: number, count: number, isDark: (column: number) => boolean): string {
  let path = ''
  for (let column = 0; column < count; column += 1) {
    const start = column
    while (column < count && isDark(column)) column += 1
    if (column > start) path += `M${start + quietZone} ${row + quietZone}h${column - start}v1H${start + quietZone}z`
  }
  return path
}
