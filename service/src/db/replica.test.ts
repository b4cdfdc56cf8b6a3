/** The choice between replica and first database. That it follows is tested in e2e/database/read-replica.test.ts. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { openEmptyPglite } from '../../test/support/database/pglite.ts'
import { until } from '../../test/support/wait.ts'
import { createLog } from '../lib/log.ts'
import type { Database } from './database.ts'
import { createReadReplica } from './replica.ts'

describe('a read replica', () => {
  it('stays in use when the caller of a transaction throws', async () => {
    const primary = await openEmptyPglite()
    const lists = createReadReplica({ primary, open: () => openEmptyPglite(), log: createLog(() => {}) })
    lists.start()
    await until(() => lists.stats().up)
    const refused = lists
      .over((own) => own)
      .transaction(async () => {
        throw new Error('the block is not canonical')
      })
    await assert.rejects(refused, /the block is not canonical/)
    assert.equal(lists.stats().up, true)
    await lists.close()
    await primary.close()
  })

  it('of a cluster is never asked', async () => {
    const empty = await openEmptyPglite()
    const logged: string[] = []
    let opens = 0
    const lists = createReadReplica({
      primary: { ...empty, dialect: 'citus' },
      open: async () => ((opens += 1), { ...empty, close: async () => {} }),
      log: createLog((line) => logged.push(line)),
      checkMs: 1,
    })
    lists.start()
    for (let n = 0; n < 50; n += 1) await empty.query('select 1')
    await lists.over((own) => own).query('select 1')
    assert.deepEqual([opens, lists.stats()], [0, { up: false, reads: { replica: 0, primary: 1 } }])
    assert.match(logged.join(), /"level":"error".*DATABASE_READ_URL/)
    await lists.close()
    await empty.close()
  })

  it('that follows another database is never used, and is logged once as an error', async () => {
    const primary = await openEmptyPglite()
    const logged: string[] = []
    let opens = 0
    async function open(): Promise<Database> {
      opens += 1
      const other = await openEmptyPglite()
      const isIdentity = (text: string) => text.includes('pg_control_system')
      return {
        ...other,
        query: async <Row>(text: string) =>
          isIdentity(text) ? ([{ name: 'other' }] as Row[]) : other.query<Row>(text),
      }
    }
    const lists = createReadReplica({ primary, open, log: createLog((line) => logged.push(line)), checkMs: 1 })
    lists.start()
    await until(() => opens > 2)
    assert.equal(lists.stats().up, false)
    await lists.close()
    await primary.close()
    const lines = logged.map((line) => JSON.parse(line) as { level: string; reason: string })
    assert.deepEqual(
      lines.map(({ level }) => level),
      ['error'],
    )
    assert.match(lines[0]?.reason ?? '', /DATABASE_READ_URL/)
  })

  it('that is always late by more than its bound is never used, and is used once it has followed', async () => {
    const empty = await openEmptyPglite()
    const clock = { seconds: 100 }
    /** As a database at the position of a moment. */
    const at = (seconds: () => number): Database => ({
      ...empty,
      query: async <Row>() => [{ number: BigInt(seconds()), seq: 0n }] as Row[],
    })
    const ups: boolean[] = []
    let lateBy = 60
    const primary = at(() => {
      clock.seconds += 1
      ups.push(lists.stats().up)
      return clock.seconds
    })
    const lists = createReadReplica({
      primary,
      open: async () => at(() => clock.seconds - lateBy),
      log: createLog(() => {}),
      now: () => clock.seconds * 1_000,
      checkMs: 1,
    })
    lists.start()
    await until(() => clock.seconds > 300)
    assert.deepEqual(new Set(ups), new Set([false]))
    lateBy = 2
    await until(() => lists.stats().up)
    await lists.close() // with the replica
  })
})
