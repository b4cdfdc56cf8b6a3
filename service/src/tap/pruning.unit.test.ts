/** The pace of the retention of taps beside a database that ends one of its statements. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Sql } from '../db/database.ts'
import { createTapPruning, pruneTapsStatement } from './replay-ledger.ts'

/** Answers as if more taps were always left; `fails` are the other statements that are ended. */
function pruningOf({ fails }: { readonly fails: boolean }) {
  let deletes = 0
  const query = async (text: string) => {
    if (text.startsWith('select')) return [{ moment: '2026-01-01' }]
    deletes += 1
    if (text === pruneTapsStatement) return Array.from({ length: 1_000 })
    if (fails) throw new Error('ended at the limit')
    return []
  }
  return { prune: createTapPruning({ sql: { query } as unknown as Sql, days: 1 }), deletes: () => deletes }
}

describe('the retention of taps', () => {
  it('goes on at once while more is left', async () => {
    const { prune, deletes } = pruningOf({ fails: false })
    await prune()
    const once = deletes()
    await prune()
    assert.equal(deletes(), 2 * once)
  })

  it('runs each statement although another one fails, and rests then', async () => {
    const { prune, deletes } = pruningOf({ fails: true })
    await assert.rejects(prune(), /ended at the limit/)
    assert.equal(deletes(), 7)
    await prune()
    assert.equal(deletes(), 7)
  })
})
