/** The rows of a list, for the page and for a CSV file that spreadsheets open safely. */
import { type LifecycleState, isSealOpened } from '@touchstone/verdict'
import type { BlockId } from '../../../domain/chain.ts'
import { formatCsvRow } from '../../../lib/csv.ts'
import type { LookupItem, LookupRow } from '../../../pages/lookup/row.ts'
import { classPath } from '../../../passport/digital-link.ts'
import { pagePath } from '../../../passport/links.ts'
import { encodeSerial } from '../../../domain/gs1/serial.ts'
import { reportedFlags } from '../pages/item.ts'
import type { LookupLine } from './lines.ts'
import type { FoundItem, Resolution } from './resolve.ts'
import { formatSecond } from '../../../domain/text.ts'

export function rowOf({ number, typed }: LookupLine, resolution: Resolution): LookupRow {
  const row = { line: number, typed }
  switch (resolution.kind) {
    case 'found':
      return { ...row, kind: 'found', item: lookupItem(resolution) }
    case 'several':
      return { ...row, kind: 'several', items: resolution.items.map(lookupItem) }
    case 'class':
      return { ...row, kind: 'class', path: pathOfClass(resolution) }
    case 'none':
    case 'foreign':
    case 'unreadable':
      return { ...row, kind: resolution.kind }
  }
}

export function lookupItem({ tokenId, item, answer: { verdict, flags } }: FoundItem): LookupItem {
  return {
    tokenId: String(tokenId),
    gtin: item?.gtin,
    serial: item?.serial,
    path: pagePath(tokenId, item),
    state: verdict.state as Exclude<LifecycleState, 'NONE'>,
    reports: reportedFlags(verdict, flags),
    tampered: isSealOpened({ flags }),
    name: verdict.untrusted?.name,
  }
}

export function pathOfClass({ gtin, batch }: Extract<Resolution, { kind: 'class' }>): string {
  return batch === undefined ? classPath(gtin) : `${classPath(gtin)}/10/${encodeSerial(batch)}`
}

const columns = [
  'line',
  'typed',
  'result',
  'token_id',
  'gtin',
  'serial',
  'state',
  'reports',
  'seal_opened',
  'name_not_checked',
  'link',
  'block_number',
  'block_hash',
  'checked_at',
  'proves_presence',
]

export type Checked = { readonly block: BlockId | null; readonly checkedAt: number }

/** Writes one row for each line, and one for each item where several fit. */
export function csvOf(baseUrl: string, rows: readonly LookupRow[], { block, checkedAt }: Checked): string {
  const pin = [block?.number ?? null, block?.hash ?? null, formatSecond(checkedAt), 'no'] as const
  const lines = rows.flatMap((row) => {
    const start = [row.line, row.typed, row.kind] as const
    const items = row.kind === 'found' ? [row.item] : row.kind === 'several' ? row.items : []
    if (items.length === 0)
      return [[...start, ...Array<null>(7).fill(null), row.kind === 'class' ? baseUrl + row.path : null, ...pin]]
    return items.map((item) => [
      ...start,
      item.tokenId,
      item.gtin ?? null,
      item.serial ?? null,
      item.state,
      item.reports.join(' '),
      item.tampered,
      item.name ?? null,
      baseUrl + item.path,
      ...pin,
    ])
  })
  return [columns, ...lines].map((cells) => `${formatCsvRow(cells)}\r\n`).join('')
}
