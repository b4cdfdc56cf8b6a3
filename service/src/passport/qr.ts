/** QR codes of Digital Links as SVG text (ISO/IEC 18004): no script, no style, so it stands in any page and policy. */
import qrcode from 'qrcode-generator'

/** Modules of white around the symbol that readers need (ISO/IEC 18004 §9.1). */
const quietZone = 4

/** `text` is ASCII, such as a URL of this service, at most 1,000 characters; `title` is what a screen reader says. */
export function qrSvg(text: string, title: string): string {
  const code = qrcode(0, 'M')
  code.addData(text)
  code.make()
  const count = code.getModuleCount()
  const size = count + 2 * quietZone
  const rows = Array.from({ length: count }, (_row, row) => rowPath(row, count, (column) => code.isDark(row, column)))
  const label = escapeXml(title)
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${size} ${size}" role="img" aria-label="${label}" shape-rendering="crispEdges">` +
    `<title>${label}</title><path fill="#fff" d="M0 0h${size}v${size}H0z"/><path fill="#000" d="${rows.join('')}"/></svg>`
  )
}

/** One rectangle for each run of dark modules. */
function rowPath(row: number, count: number, isDark: (column: number) => boolean): string {
  let path = ''
  for (let column = 0; column < count; column += 1) {
    const start = column
    while (column < count && isDark(column)) column += 1
    if (column > start) path += `M${start + quietZone} ${row + quietZone}h${column - start}v1H${start + quietZone}z`
  }
  return path
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

function escapeXml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => entities[character] ?? '')
}
