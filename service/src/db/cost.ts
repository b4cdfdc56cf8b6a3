/** The cost that PostgreSQL expects of a statement, so that one which would read most of a table is refused before it runs. */
import type { Database } from './database.ts'

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

/** Throws a CostError for a statement that is expected to cost too much. The embedded database keeps no statistics and is not asked. */
export async function assertCheap(
  { query, dialect }: Pick<Database, 'query' | 'dialect'>,
  text: string,
  values: readonly unknown[],
): Promise<void> {
  if (dialect === 'pglite') return
  const [row] = await query<{ 'QUERY PLAN': [{ Plan: { 'Total Cost': number } }] }>(
    `explain (format json) ${text}`,
    values,
  )
  const cost = Math.ceil(row?.['QUERY PLAN'][0].Plan['Total Cost'] ?? 0)
  if (cost > maxPlanCost) throw new CostError(cost)
}
