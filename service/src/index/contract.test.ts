/** The contract of an index, which its readers ask for once a second. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { openEmptyPglite } from '../../test/support/database/pglite.ts'
import { useOpened } from '../../test/support/opened.ts'
import type { Database } from '../db/database.ts'
import { ofContract } from './contract.ts'

describe('the contract of an index', () => {
  const database = useOpened(() => openEmptyPglite('migrated'))

  it('is asked for again a second after the last look began, however late its answer came', async (t) => {
    const monotonic = performance.now.bind(performance)
    let passed = 0
    t.mock.method(performance, 'now', () => monotonic() + passed)
    const statements: string[] = []
    const query: Database['query'] = async (text, values) => {
      const rows = await database.query<never>(text, values)
      statements.push(text)
      if (statements.length === 1) passed += 1_000
      return rows
    }
    const index = ofContract({ ...database, query }, `0x${'11'.repeat(20)}`)
    for (let reads = 0; reads < 3; reads += 1) await index.query('select 1')
    assert.equal(statements.filter((text) => text !== 'select 1').length, 2)
  })
})
