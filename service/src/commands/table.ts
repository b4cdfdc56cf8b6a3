/** Columns for a terminal. */

/** One line for the head and each row, cells padded to the widest of their column. */
export function tableOf(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const widths = head.map((name, column) => Math.max(name.length, ...rows.map((row) => row[column]?.length ?? 0)))
  const line = (cells: readonly string[]) => cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')
  return [line(head), ...rows.map(line)].map((text) => text.trimEnd())
}
