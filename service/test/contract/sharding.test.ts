/**
 * Every statement on a distributed table (docs/capacity.md) names its distribution column, so that it goes to one shard. Else it is in the
 * list of those that go to all shards. This reads the texts of the statements; `npm run test:citus` runs them on a cluster.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { distributions } from '../../src/db/cluster/distribute.ts'
import { fanOuts } from '../support/database/fan-outs.ts'
import { programStatements } from '../support/database/statements.ts'

/** The column that determines the shard of a row, by table. */
const keyOf: Readonly<Record<string, string>> = Object.fromEntries(
  distributions.flatMap(({ table, column }) => (column === null ? [] : [[table, column]])),
)

describe('sharding by token id', () => {
  const statements = programStatements()

  it('reads the statements of the store', () => assert.ok(statements.length > 100, `${statements.length} found`))

  it('every statement on a large table names its sharding key, or is a known fan-out', () => {
    const missing = statements.flatMap(({ file, text }) => {
      if (fanOuts.some(([of, piece]) => of === file && text.includes(piece))) return []
      const tables = Object.keys(keyOf).filter((table) => !namesKey(text, table))
      return tables.map((table) => `${file}: ${table} without ${keyOf[table]}: ${text.slice(0, 160)}`)
    })
    assert.deepEqual(missing, [])
  })

  it('lists no fan-out that no statement has', () => {
    const unused = fanOuts.filter(
      ([of, piece]) => !statements.some(({ file, text }) => file === of && text.includes(piece)),
    )
    assert.deepEqual(unused, [])
  })

  it('has the list of the documentation', () => {
    const page = readFileSync(new URL('../../../docs/capacity.md', import.meta.url), 'utf8')
    const [, table = ''] = page.split('### Statements that read all shards\n')
    const listed = new Set([...(table.split('\n#')[0] ?? '').matchAll(/^- (.+)[;.]$/gm)].map(([, purpose]) => purpose))
    assert.deepEqual(listed, new Set(fanOuts.map(([, , purpose]) => purpose)))
  })
})

/** True also where the statement does not touch the table. A new row names the key among its columns, all else in a condition. */
function namesKey(text: string, table: string): boolean {
  const key = new RegExp(`\\b${keyOf[table]}\\b`)
  const inserted = new RegExp(`\\binsert into ${table}(?: as t)? \\(([^)]*)\\)`).exec(text)
  if (inserted !== null && !key.test(inserted[1] ?? '')) return false
  if (!new RegExp(`\\b(?:from|join|update|truncate) ${table}\\b`).test(text)) return true
  const [, ...conditions] = text.split(/\b(?:where|on|using)\b/)
  return key.test(conditions.join(' '))
}
