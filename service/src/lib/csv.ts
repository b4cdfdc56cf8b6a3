/** CSV rows (RFC 4180) that are safe to open in a spreadsheet. */

/** A null is an empty cell. */
export type Cell = string | number | bigint | boolean | null

/** Formats one row, without its end. A text that a spreadsheet would run as a formula begins with an apostrophe, which makes it text (OWASP). */
export function formatCsvRow(cells: readonly Cell[]): string {
  return cells.map(formatCell).join(',')
}

const formula = /^\s*[=+\-@＝＋－＠\t\r\n]/

/** Quotes semicolons and tabs too, which separate the cells of a spreadsheet in some languages. */
function formatCell(cell: Cell): string {
  if (cell === null) return ''
  if (typeof cell !== 'string') return String(cell)
  const text = formula.test(cell) ? `'${cell}` : cell
  return /[",;\t\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
