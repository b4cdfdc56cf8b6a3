/** Transactions over several nodes of a cluster: a node may commit one a moment, or a restart, after the coordinator. */
import type { Sql } from '../database.ts'

/** Returns whether every node has committed a transaction that the coordinator has committed; `id` is its 64-bit id. */
export async function isCommittedEverywhere(sql: Sql, id: bigint): Promise<boolean> {
  // Rows that a cluster wrote may have been restored on one server.
  if ((await sql.query(`select 1 from pg_extension where extname = 'citus'`)).length === 0) return true
  const [row] = await sql.query<{ everywhere: boolean }>(everywhereStatement, [(id % 2n ** 32n).toString()])
  return row?.everywhere ?? false
}

/** Commits on its nodes what the coordinator has committed, as far as the nodes answer. Citus does so by itself every minute. */
export async function finishCommits(sql: Sql): Promise<void> {
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
