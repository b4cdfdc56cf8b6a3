/** The state of the index for its readers. It has the block that it is complete to, and its last comparison with the chain. */
import { hex, instant } from '../../db/columns.ts'
import type { BlockId } from '../../domain/chain.ts'
import { type IndexDatabase, wholeReads } from '../steps.ts'

/** Times are RFC 3339 with microseconds, in UTC. `block` is null before the first, `comparedAt` before the first comparison. */
type IndexMeta = Readonly<{
  block: (BlockId & Readonly<{ timestamp: string }>) | null
  comparedAt: string | null
}>

export async function readMeta(database: IndexDatabase): Promise<IndexMeta> {
  const [row] = await wholeReads(database)((sql) =>
    sql.query<BlockId & { timestamp: string; comparedAt: string | null }>(metaStatement),
  )
  if (row === undefined) return { block: null, comparedAt: null }
  const { comparedAt, ...block } = row
  return { block: block.number < 0n ? null : block, comparedAt }
}

const metaStatement = `select number, ${hex('hash')} as hash, ${instant('block_time')} as timestamp,
    ${instant('compared_at')} as "comparedAt"
  from index_cursor`
