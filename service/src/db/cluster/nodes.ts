/**
 * The nodes of a Citus cluster. One may stop in the middle of a statement, or commit a transaction a moment, or a restart, after the
 * coordinator.
 */
import type { SqlQuery } from '../columns.ts'

/** Returns whether the database has the extension of a cluster. Its tables may not be distributed. */
export async function hasCitus(query: SqlQuery): Promise<boolean> {
  return (await query(`select 1 from pg_extension where extname = 'citus'`)).length > 0
}

/** Returns whether a statement failed because of a node, and may succeed when it is repeated. Citus names some as faults of its own. */
export function isOfLostNode({ code, message }: Readonly<{ code?: string | undefined; message: string }>): boolean {
  return (code === 'XX000' || code === '58030') && texts.test(message)
}

const texts = new RegExp(
  `^(?:${[
    'postmaster was shut down',
    'server closed the connection',
    'terminating connection due to',
    'connection not open',
    'failure on connection marked as essential',
    'failed to COPY to shard',
  ].join('|')})`,
)

/** Returns whether every node has committed a transaction that the coordinator has committed; `id` is its 64-bit id. */
export async function isCommittedEverywhere(sql: { query: SqlQuery }, id: bigint): Promise<boolean> {
  // Rows that a cluster wrote may have been restored on one server.
  if (!(await hasCitus(sql.query))) return true
  const [row] = await sql.query<{ everywhere: boolean }>(everywhereStatement, [(id % 2n ** 32n).toString()])
  return row?.everywhere ?? false
}

/** Commits on its nodes what the coordinator has committed, as far as the nodes answer. Citus does so by itself every minute. */
export async function finishCommits(sql: { query: SqlQuery }): Promise<void> {
  await sql.query('select recover_prepared_transactions()')
}

/** The coordinator records what each node has prepared in the same transaction; a node forgets what it has committed. */
const everywhereStatement = `with prepared as (
    select n.groupid, r.success, string_to_array(r.result, ' ') as gids
    from run_command_on_workers($$select coalesce(string_agg(gid, ' '), '') from pg_prepared_xacts where database = current_database()$$) r
    join pg_dist_node n using (nodename, nodeport))
  select coalesce(bool_and(p.success is true and t.gid <> all (p.gids)), true) as everywhere
  from pg_dist_transaction t left join prepared p on p.groupid = t.groupid
  where t.xmin = $1::text::xid`
