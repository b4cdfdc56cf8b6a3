/**
 * Spreads the tables that grow with the products over the nodes of a Citus cluster (docs/capacity.md). Each table is a transaction of its
 * own, so that an interrupted run goes on with the next one. All other tables stay on the coordinator.
 */
import type { Database, Sql } from '../database.ts'
import { freeStatement, locks } from '../locks.ts'
import { hasCitus } from './nodes.ts'

/** `column` is the distribution column; tables of one `group` have the rows of equal values on one shard. `null`: a copy on every node. */
type Distribution = Readonly<{
  table: string
  column: string | null
  group?: string
  /** Statements that remove what Citus refuses, before the table is distributed. Each may be repeated. */
  prepare: readonly string[]
}>

/** In this order. Keys without the distribution column have look-up tables instead; triggers serve programs from before these. */
export const distributions: readonly Distribution[] = [
  {
    table: 'asset',
    column: 'token_id',
    prepare: [
      'alter table transfer drop constraint if exists transfer_asset_pk_fkey',
      'drop trigger if exists transfer_complete on transfer',
      ...['count', 'group'].flatMap((sums) =>
        ['inserted', 'deleted', 'updated'].map((when) => `drop trigger if exists ${sums}_${when} on asset`),
      ),
      ...['inserted', 'updated'].map((when) => `drop trigger if exists named_${when} on asset`),
      'alter table asset drop constraint if exists asset_pkey',
      'alter table asset drop constraint if exists asset_token_id_key',
      'alter table asset add primary key (token_id)',
      'create index asset_pk on asset (pk)',
    ],
  },
  {
    table: 'transfer',
    column: 'token_id',
    group: 'asset',
    prepare: [
      'alter table transfer drop constraint if exists transfer_pkey',
      'alter table transfer drop constraint if exists transfer_id_key',
      'drop index if exists transfer_asset, transfer_of_token',
      'alter table transfer add primary key (token_id, id)',
    ],
  },
  {
    table: 'history',
    column: 'token_id',
    group: 'asset',
    prepare: [
      'alter table history drop constraint if exists history_pkey',
      'drop index if exists history_token',
      'alter table history add primary key (token_id, block_number, log_index)',
      'create index history_block on history (block_number, log_index)',
    ],
  },
  {
    table: 'item',
    column: 'token_id',
    group: 'asset',
    prepare: ['drop trigger if exists item_keyed on item', 'alter table item drop constraint if exists item_key'],
  },
  { table: 'asset_tap', column: 'token_id', group: 'asset', prepare: [] },
  { table: 'tag_of_token', column: 'token_id', group: 'asset', prepare: [] },
  { table: 'tag_batch', column: null, prepare: [] },
  {
    table: 'tag',
    column: 'uid',
    prepare: [
      'drop trigger if exists tag_of_token_made on tag',
      'drop trigger if exists tag_of_token_changed on tag',
      'drop index if exists tag_token',
    ],
  },
  { table: 'tap', column: 'uid', group: 'tag', prepare: [] },
  { table: 'token_of_item', column: 'serial', prepare: [] },
  { table: 'metadata', column: 'hash', prepare: [] },
  { table: 'picture', column: 'hash', prepare: [] },
  { table: 'restricted_details', column: 'hash', prepare: [] },
  { table: 'transfer_message', column: 'hash', group: 'metadata', prepare: [] },
]

/** Runs on the shard of its first argument, so that a group of taps costs one remote command. */
const tapFunction = 'present_taps(bytea, bytea[], int[], int[], bytea[], text[], text[], boolean[])'

export type DistributeOptions = Readonly<{
  /** Shards of each table; the default is four for each node that holds shards. */
  shards?: number
  onTable?: (table: string, at: Readonly<{ rows: bigint; milliseconds: number }>) => void
  /** Ends the run when it aborts. The table of that moment stays as it was. */
  signal?: AbortSignal | undefined
}>

/** `tables` are those that are distributed; `shards` is null for a copy on every node. `missing` are yet to be distributed. */
export type Cluster = Readonly<{
  nodes: number
  tables: readonly Readonly<{ name: string; shards: number | null }>[]
  missing: readonly string[]
}>

/** Returns what is distributed; null where the database is no coordinator of Citus. */
export async function readCluster(sql: Sql): Promise<Cluster | null> {
  if (!(await hasCitus(sql.query))) return null
  const [row] = await sql.query<{ nodes: number }>(nodesStatement)
  const tables = await sql.query<Cluster['tables'][number]>(tablesStatement)
  const known = new Set(tables.map(({ name }) => name))
  const missing = distributions.flatMap(({ table }) => (known.has(table) ? [] : [table]))
  return { nodes: row?.nodes ?? 0, tables, missing }
}

/**
 * Returns why a process must not start now; null where it may. Its statements are those of one server or of a cluster from its start on, so
 * that all tables must be distributed by then, or none.
 */
export async function distributionFault(database: Database): Promise<string | null> {
  if (database.dialect === 'pglite') return null
  const [lock] = await database.query<{ free: boolean }>(freeStatement(locks.distribution))
  if (lock?.free !== true)
    return 'The tables of the database are distributed at the moment: start again when that is done.'
  const cluster = await readCluster(database)
  if (cluster === null || cluster.missing.length === distributions.length) return null
  if (cluster.missing.length > 0)
    return `The tables of the database are distributed in part (not ${cluster.missing.join(', ')}): run touchstone migrate --distribute.`
  return database.dialect === 'citus' ? null : 'The tables of the database were distributed just now: start again.'
}

const nodesStatement = `select count(*)::int as nodes from pg_dist_node
  where noderole = 'primary' and isactive and shouldhaveshards`

const tablesStatement = `select logicalrelid::text as name,
    case when partmethod = 'h' then (select count(*)::int from pg_dist_shard s where s.logicalrelid = p.logicalrelid) end as shards
  from pg_dist_partition p where partmethod = 'h' or (partmethod = 'n' and repmodel = 't') order by 1`

/**
 * Distributes what is not distributed yet, and returns the names of those tables. Throws one sentence where that is not possible, or the
 * signal aborts.
 */
export async function distribute(
  database: Database,
  { shards, onTable, signal }: DistributeOptions = {},
): Promise<string[]> {
  const cluster = await readCluster(database)
  if (cluster === null || cluster.nodes === 0)
    throw new Error('The cluster has no node for shards: add workers with citus_add_node, then repeat the command.')
  const count = shards ?? 4 * cluster.nodes
  const done: string[] = []
  for (const distribution of distributions) {
    const began = performance.now()
    const rows = await distributeOne(database, distribution, { shards: count, signal }).catch((error: unknown) => {
      const interrupted = `The command was interrupted before ${distribution.table}. Repeat it to go on.`
      throw signal?.aborted === true ? new Error(interrupted) : error
    })
    if (rows === null) continue
    done.push(distribution.table)
    onTable?.(distribution.table, { rows, milliseconds: performance.now() - began })
  }
  await database.query(`select create_distributed_function($1, '$1', colocate_with => 'tag')`, [tapFunction])
  return done
}

/**
 * Returns the number of rows that were copied; null where the table was distributed before. An abort cancels the statement that runs, and so
 * rolls the table back.
 */
async function distributeOne(
  database: Database,
  distribution: Distribution,
  { shards, signal }: { readonly shards: number; readonly signal: AbortSignal | undefined },
): Promise<bigint | null> {
  const { table, prepare } = distribution
  return database.transaction(async (sql) => {
    await sql.query('set local statement_timeout = 0')
    const cluster = await readCluster(sql)
    if (cluster?.missing.includes(table) !== true) return null
    const [backend] = await sql.query<{ pid: number }>('select pg_backend_pid() as pid')
    // Citus has a function of this name for its own numbers, which are bigint.
    const cancel = () => void database.query('select pg_cancel_backend($1::int)', [backend?.pid]).catch(() => {})
    signal?.addEventListener('abort', cancel)
    try {
      for (const [statement, ...values] of [
        ...prepare.map((one) => [one] as const),
        copyStatement(distribution, shards),
        ['select truncate_local_data_after_distributing_table($1)', table] as const,
      ]) {
        signal?.throwIfAborted()
        await sql.query(statement, values)
      }
    } finally {
      signal?.removeEventListener('abort', cancel)
    }
    const [counted] = await sql.query<{ n: bigint }>(`select count(*) as n from ${table}`)
    return counted?.n ?? 0n
  })
}

type Statement = readonly [text: string, ...values: (string | number)[]]

function copyStatement({ table, column, group }: Distribution, shards: number): Statement {
  if (column === null) return ['select create_reference_table($1)', table]
  return group === undefined
    ? [`select create_distributed_table($1, $2, colocate_with => 'none', shard_count => $3)`, table, column, shards]
    : ['select create_distributed_table($1, $2, colocate_with => $3)', table, column, group]
}
