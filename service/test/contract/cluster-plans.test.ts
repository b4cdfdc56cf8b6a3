/**
 * The plans of every statement that the tests on a cluster sent (`npm run test:citus`). One that asks all shards is in the list of the
 * documentation, and none reads a whole table to the coordinator. Citus does both without an error.
 */
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { after, before, describe, it } from 'node:test'
import type { Database } from '../../src/db/database.ts'
import { distributions, readCluster } from '../../src/db/cluster/distribute.ts'
import { openOwnDatabase } from '../support/database/databases.ts'
import { fanOuts } from '../support/database/fan-outs.ts'
import { isSimpler, type Recorded } from '../support/database/record-statements.ts'
import { patternOf, programStatements } from '../support/database/statements.ts'

const folder = process.env['TEST_CITUS_STATEMENTS']
const skip = folder === undefined ? 'npm run test:citus records the statements' : false
const tables = new RegExp(`\\b(?:${distributions.map(({ table }) => table).join('|')})\\b`)

/** `tasks` is the number of shards that the statement asks in one of its parts. `whole` are parts that read all rows of a table. */
type Plan = Readonly<{ tasks: number; whole: readonly string[] }>

describe('plans on a cluster', { skip }, () => {
  let database: Database
  before(async () => void (database = await openOwnDatabase()))
  after(() => database.close())

  it('ask one shard, or are in the list of those that ask all; none reads a whole table', async () => {
    const cluster = await readCluster(database)
    const shards = Math.max(...(cluster?.tables ?? []).map((table) => table.shards ?? 0))
    const known = programStatements()
      .filter(({ text }) => text.length > 20)
      .map((statement) => ({ ...statement, pattern: patternOf(statement.text) }))
    const faults: string[] = []
    let explained = 0
    for (const recorded of recordedStatements()) {
      const text = recorded.text.replaceAll(/\s+/g, ' ').trim().toLowerCase()
      const sources = known.filter(({ pattern }) => pattern.test(text))
      if (sources.length === 0 || !tables.test(text)) continue
      const plan = await planOf(database, recorded)
      if (plan === null) continue
      explained += 1
      const isListed = sources.some((source) =>
        fanOuts.some(([file, piece]) => source.file === file && source.text.includes(piece)),
      )
      if (plan.tasks >= shards && !isListed && isOfOneKey(recorded))
        faults.push(`${sources[0]?.file} asks all shards: ${text.slice(0, 300)}`)
      for (const part of plan.whole) faults.push(`${sources[0]?.file} reads ${part}: ${text.slice(0, 300)}`)
    }
    assert.ok(explained > 40, `${explained} statements`)
    assert.deepEqual(faults, [])
  })

  it('find a statement that reads a table to the coordinator', async () => {
    const bad = `select r.tag_id, a.name from registration r left join asset a on a.token_id = r.token_id`
    assert.equal((await planOf(database, { text: bad, values: [] }))?.whole.length, 1)
    const all = await planOf(database, { text: 'select name from asset where name = $1', values: ['x'] })
    assert.deepEqual(all, { tasks: 4, whole: [] })
    const one = await planOf(database, {
      text: 'select name from asset where token_id = $1::text::numeric',
      values: ['7'],
    })
    assert.deepEqual(one, { tasks: 1, whole: [] })
  })
})

/** Several keys can be on all shards, and a list without keys asks all. */
function isOfOneKey({ values }: Recorded): boolean {
  return !values.some((value) =>
    Array.isArray(value) ? value.length !== 1 : typeof value === 'string' && /^\{(?:.*,.*)?\}$/.test(value),
  )
}

function recordedStatements(): Recorded[] {
  const shortest = new Map<string, string>()
  for (const file of globSync(`${folder}/*.jsonl`))
    for (const line of readFileSync(file, 'utf8').split('\n')) {
      const { text } = JSON.parse(line) as Recorded
      if (isSimpler(line, shortest.get(text))) shortest.set(text, line)
    }
  return [...shortest.values()].map((line) => JSON.parse(line) as Recorded)
}

/** Returns null for a statement that has no plan, or whose values are not kept as they were. */
async function planOf(database: Database, { text, values }: Recorded): Promise<Plan | null> {
  if (!/^\s*(?:\(|select|insert|update|delete|with)/i.test(text)) return null
  const rows = await database
    .query<{ 'QUERY PLAN': unknown }>(`explain (verbose, format json) ${text}`, values)
    .catch(() => null)
  if (rows === null) return null
  const found = { tasks: 0, whole: [] as string[] }
  const visit = (value: unknown, isSubplan: boolean): void => {
    if (typeof value !== 'object' || value === null) return
    for (const [name, part] of Object.entries(value)) {
      if (name === 'Task Count' && typeof part === 'number') found.tasks = Math.max(found.tasks, part)
      if (name === 'Query' && typeof part === 'string' && isSubplan && isWhole(part))
        found.whole.push(part.slice(0, 200))
      visit(part, isSubplan || name === 'Subplans')
    }
  }
  visit(rows[0]?.['QUERY PLAN'], false)
  return found
}

/** The planner writes a part that selects all rows with a true condition or none, and without a limit. */
function isWhole(query: string): boolean {
  if (!/^select/i.test(query) || /\blimit\b|read_intermediate_result/i.test(query)) return false
  return /\bwhere true\b/i.test(query) || !/\bwhere\b/i.test(query)
}
