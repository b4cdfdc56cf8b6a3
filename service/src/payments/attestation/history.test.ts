/** The history of attestation keys on PGlite and on PostgreSQL. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { Hex } from '@touchstone/verdict'
import { testDatabases } from '../../../test/support/database/databases.ts'
import { attestationKeyStore } from './history.ts'
import type { Database } from '../../db/database.ts'
import { migrate } from '../../db/migrate.ts'

const [first, second] = [`0x${'11'.repeat(20)}`, `0x${'22'.repeat(20)}`] as [Hex, Hex]

for (const { name, open, skip } of testDatabases()) {
  describe(`the history of attestation keys on ${name}`, { skip }, () => {
    let database: Database
    let keys: ReturnType<typeof attestationKeyStore>
    before(async () => {
      database = await open()
      await migrate(database)
      keys = attestationKeyStore(database)
    })
    after(() => database.close())

    it('knows a key once', async () => {
      assert.equal(await keys.add({ address: first, validFrom: 100, status: 'active' }), true)
      assert.equal(await keys.add({ address: first, validFrom: 200, status: 'next' }), false)
      assert.deepEqual(await keys.list(), [{ address: first, validFrom: 100, validUntil: null, status: 'active' }])
    })

    it('changes a key from the statuses named, and from no other', async () => {
      await keys.add({ address: second, validFrom: 50, status: 'next' })
      const retire = { from: ['active'], to: 'retired', validUntil: 300 } as const
      assert.equal(await keys.change(second, retire), false)
      assert.equal(await keys.change(first, retire), true)
      assert.deepEqual(
        (await keys.list()).map(({ status, validUntil }) => [status, validUntil]),
        [
          ['next', null],
          ['retired', 300],
        ],
      )
    })

    it('takes no window that contradicts the status', async () => {
      const open_ = { from: ['retired'], to: 'retired', validUntil: null } as const
      await assert.rejects(keys.change(first, open_))
      await assert.rejects(keys.change(second, { from: ['next'], to: 'active', validUntil: 5 }))
    })
  })
}
