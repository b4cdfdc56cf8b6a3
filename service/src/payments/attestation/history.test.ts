/** The history of attestation keys on PGlite and on PostgreSQL. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { attestationKeyId, type Hex } from '@touchstone/verdict'
import { testDatabases } from '../../../test/support/database/databases.ts'
import { openKeyHistory, type KeyHistory } from './history.ts'
import type { Database } from '../../db/database.ts'

const [first, second] = [`0x${'11'.repeat(20)}`, `0x${'22'.repeat(20)}`] as [Hex, Hex]

for (const { name, open, skip } of testDatabases()) {
  describe(`the history of attestation keys on ${name}`, { skip }, () => {
    let database: Database
    let keys: KeyHistory
    before(async () => {
      database = await open()
      keys = await openKeyHistory(database, () => performance.now())
    })
    after(() => database.close())

    it('knows a key once', async () => {
      assert.equal(await keys.add(first, { validFrom: 100, status: 'active' }), true)
      assert.equal(await keys.add(first, { validFrom: 200, status: 'next' }), false)
      const keyId = attestationKeyId(first)
      assert.deepEqual(keys.rows(), [{ address: first, keyId, validFrom: 100, validUntil: null, status: 'active' }])
    })

    it('changes a key from the statuses named, and from no other', async () => {
      await keys.add(second, { validFrom: 50, status: 'next' })
      const retired = { status: 'retired', validUntil: 300 } as const
      assert.equal(await keys.change(second, ['active'], retired), false)
      assert.equal(await keys.change(first, ['active'], retired), true)
      assert.deepEqual(
        keys.rows().map(({ status, validUntil }) => [status, validUntil]),
        [
          ['next', null],
          ['retired', 300],
        ],
      )
    })

    it('takes no window that contradicts the status', async () => {
      await assert.rejects(keys.change(first, ['retired'], { status: 'retired', validUntil: null }))
      await assert.rejects(keys.change(second, ['next'], { status: 'active', validUntil: 5 }))
    })
  })
}
