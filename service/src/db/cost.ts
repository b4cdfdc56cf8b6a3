/** The cost that PostgreSQL expects of a statement. A statement that would read most of a table is rejected before it runs. */
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
  const [row] = await query<{ 'QUERY PLAN': [{ Plan: Plan }] }>(`explain (format json) ${text}`, values)
  const plan = row?.['QUERY PLAN'][0].Plan
  if (plan === undefined) return
  const remote = dialect === 'citus' ? remoteCosts(plan) : []
  const cost = Math.ceil(remote.length > 0 ? Math.max(...remote) : plan['Total Cost'])
  if (cost > maxPlanCost) throw new CostError(cost)
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
