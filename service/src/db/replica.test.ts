/** The choice between replica and first database. That it follows is tested in e2e/database/read-replica.test.ts. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { openEmptyPglite } from '../../test/support/database/pglite.ts'
import { until } from '../../test/support/wait.ts'
import { createLog } from '../lib/log.ts'
import { createReadReplica } from './replica.ts'

describe('a read replica', () => {
  it('stays in use when the caller of a transaction throws', async () => {
    const primary = await openEmptyPglite()
    const lists = createReadReplica({ primary, open: () => openEmptyPglite(), log: createLog(() => {}) })
    lists.start()
    await until(() => lists.stats().up)
    const refused = lists.database.transaction(async () => {
      throw new Error('the block is not canonical')
    })
    await assert.rejects(refused, /the block is not canonical/)
    assert.equal(lists.stats().up, true)
    await lists.close()
    await primary.close()
  })
})
