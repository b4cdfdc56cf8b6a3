/** Tables of Markdown as oxfmt writes them. */

export const code = (text: string) => `\`${text}\``

/** Pads each cell to the widest of its column. */
export function tableOf(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const cells = [head, ...rows].map((row) => row.map((cell) => cell.replaceAll('|', '\\|').replaceAll('<!', '\\<!')))
  const widths = head.map((_, column) => Math.max(3, ...cells.map((row) => row[column]?.length ?? 0)))
  const line = (row: readonly string[]) => `| ${widths.map((width, at) => (row[at] ?? '').padEnd(width)).join(' | ')} |`
  const [first = [], ...rest] = cells
  return [line(first), `| ${widths.map((width) => '-'.repeat(width)).join(' | ')} |`, ...rest.map(line)].join('\n')
}
