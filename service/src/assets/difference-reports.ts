/**
 * Reports of visitors that an item does not look like its record (spec §1: a chip proves the chip, not the item around it). They name the
 * item, the tap and what the visitor was doing; the note is hostile text. A report stays until the operator closes it.
 */
import { cleanText } from '@touchstone/verdict'
import type { Sql } from '../db/database.ts'
import { instant } from '../db/columns.ts'

/** Longest note, in code points. */
const maxNoteLength = 300
/** Open reports of one item. More say nothing new. */
const mostOpen = 50

type DifferenceReport = {
  readonly id: string
  readonly tokenId: string
  readonly tapCounter: number
  /** RFC 3339, in UTC. */
  readonly at: string
  /** The answer of the visitor to «What are you doing?». */
  readonly role: string
  /** Cleaned; empty without one. */
  readonly note: string
}

type NewReport = Readonly<{ tokenId: bigint; epoch: number; tapCounter: number; role: string; note: string }>

export type DifferenceReports = ReturnType<typeof differenceReports>

export function differenceReports(sql: Sql) {
  return {
    /**
     * Stores a report. `repeated`: the tap has reported already, and its first report stays as it is. `full`: the item has 50 open reports,
     * and no more are kept.
     */
    async add({ tokenId, epoch, tapCounter, role, note }: NewReport): Promise<'stored' | 'repeated' | 'full'> {
      const stored = await sql.query(
        `insert into difference_report (token_id, epoch, tap_counter, role, note) select $1::numeric, $2::int, $3::int, $4, $5
         where (select count(*) from difference_report where token_id = $1::numeric) < ${mostOpen}
         on conflict do nothing returning id`,
        [String(tokenId), epoch, tapCounter, role, cleanText(note, { max: maxNoteLength, multiline: false })],
      )
      if (stored.length > 0) return 'stored'
      const former = await sql.query(
        'select from difference_report where token_id = $1::numeric and epoch = $2::int and tap_counter = $3::int',
        [String(tokenId), epoch, tapCounter],
      )
      return former.length > 0 ? 'repeated' : 'full'
    },
    /** Lists the open reports, the newest first. */
    list({ tokenId, limit }: Readonly<{ tokenId?: bigint | undefined; limit: number }>): Promise<DifferenceReport[]> {
      return sql.query<DifferenceReport>(
        `select id::text as id, token_id::text as "tokenId", tap_counter as "tapCounter", ${instant('reported_at')} as at, role, note
         from difference_report where $1::numeric is null or token_id = $1::numeric order by difference_report.id desc limit $2`,
        [tokenId === undefined ? null : String(tokenId), limit],
      )
    },
    /** Removes reports that are dealt with, and returns how many there were. */
    async close(ids: readonly string[]): Promise<number> {
      const rows = await sql.query('delete from difference_report where id = any($1::text[]::bigint[]) returning id', [
        ids,
      ])
      return rows.length
    },
  }
}
