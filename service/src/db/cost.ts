/** The cost that PostgreSQL expects of a statement. A statement that would read most of a table is rejected before it runs. */
import { createHash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { Database, Sql } from './database.ts'

/** In units of the planner: an index page costs a few, a million rows one after another some 50,000. */
export const maxPlanCost = 2_000

/** A statement that is expected to cost too much. */
export class CostError extends Error {
  readonly cost: number

  constructor(cost: number) {
    super(`The statement costs ${cost}, more than ${maxPlanCost}.`)
    this.name = 'CostError'
    this.cost = cost
  }
}

/** Throws a CostError for a statement that is expected to cost too much. `within` is the transaction of the caller, if there is one. */
type AssertCheap = (text: string, values: readonly unknown[], within?: Sql) => Promise<void>

const keptMs = 60_000
const mostKept = 500

/**
 * Returns a check that keeps each expected cost for a minute. On a cluster, asking for one takes half as long as the page itself. The
 * embedded database keeps no statistics and is not asked.
 */
export function createCostCheck(database: Pick<Database, 'query' | 'dialect'>): AssertCheap {
  const { dialect } = database
  if (dialect === 'pglite') return async () => {}
  const kept = new LRUCache<string, number>({ max: mostKept, ttl: keptMs })
  const expectedCost = async (sql: Sql, text: string, values: readonly unknown[]): Promise<number> => {
    const [row] = await sql.query<{ 'QUERY PLAN': [{ Plan: Plan }] }>(`explain (format json) ${text}`, values)
    const plan = row?.['QUERY PLAN'][0].Plan
    if (plan === undefined) throw new Error('The database did not return a plan.')
    const remote = dialect === 'citus' ? remoteCosts(plan) : []
    return Math.ceil(remote.length > 0 ? Math.max(...remote) : plan['Total Cost'])
  }
  return async (text, values, within = database) => {
    const key = keyOf(text, values)
    let cost = kept.get(key)
    if (cost === undefined) {
      cost = await expectedCost(within, text, values)
      kept.set(key, cost)
    }
    if (cost > maxPlanCost) throw new CostError(cost)
  }
}

type Statement = Readonly<{ text: string; values: readonly unknown[] }>

/**
 * Returns `plain` where it is expected to cost little, else what `other` returns. Throws a CostError where that is null. No cost is known of
 * the embedded database: there `plain` is read only where `other` returns null.
 */
export async function cheapStatement(
  { dialect }: Pick<Database, 'dialect'>,
  assertCheap: AssertCheap,
  plain: Statement,
  other: () => Promise<Statement | null>,
): Promise<Statement> {
  if (dialect === 'pglite') return (await other()) ?? plain
  try {
    await assertCheap(plain.text, plain.values)
    return plain
  } catch (error) {
    const instead = error instanceof CostError ? await other() : null
    if (instead === null) throw error
    return instead
  }
}

/** Longest time of a statement whose cost was expected, in milliseconds. The planner may be wrong: it takes conditions as independent. */
const briefMs = 1_500

/** Limits the statements that follow in a transaction, because their cost was expected and is not known. */
export async function readBriefly(sql: Sql): Promise<void> {
  await sql.query(`set local statement_timeout = ${briefMs}`)
}

/** Returns the database with this limit for each statement. */
export function briefReads({ transaction, dialect }: Pick<Database, 'transaction' | 'dialect'>) {
  const query: Sql['query'] = (text, values) =>
    transaction(async (sql) => {
      await readBriefly(sql)
      return sql.query(text, values)
    })
  return { query, transaction, dialect }
}

/** Hashes a statement with its values, because a filter may be long. */
function keyOf(text: string, values: readonly unknown[]): string {
  const parts = JSON.stringify([text, values], (_, value) => (typeof value === 'bigint' ? `${value}n` : value))
  return createHash('sha256').update(parts).digest('base64')
}

type Plan = Readonly<{ 'Total Cost': number }>

/** Returns what the statement costs on one shard, for each of its parts. The coordinator does not know how many rows a shard has. */
function remoteCosts(value: unknown): number[] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, part]) =>
    name === 'Remote Plan'
      ? [part].flat(3).map(({ Plan: plan }: { Plan: Plan }) => plan['Total Cost'])
      : remoteCosts(part),
  )
}
