/** A count that takes too long gives up, and holds nobody up. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { testDatabases } from '../../test/_databases.ts'
import { countWithin, isTimeout } from './bounded-count.ts'
import type { Database } from './database.ts'

for (const { name, open, skip } of testDatabases())
  describe(`a count on ${name}`, { skip }, () => {
    let database: Database
    before(async () => {
      database = await open()
    })
    after(() => database.close())

    it('is exact', async () => {
      assert.equal(await countWithin(database, 'select from generate_series(1, $1::int)', [1_234]), 1_234)
      assert.equal(await countWithin(database, 'select from generate_series(1, 2) union all select where false', []), 2)
    })

    it('is none where there is too much to count, and the database goes on', async () => {
      const bounds = { timeoutMs: 100, mostEmbedded: 1_000 }
      const began = performance.now()
      const all = 'select from generate_series(1::bigint, 100000) a, generate_series(1::bigint, 100000) b'
      assert.equal(await countWithin(database, all, [], bounds), null)
      assert.ok(performance.now() - began < 3_000)
      assert.equal(await countWithin(database, 'select from generate_series(1, 1000)', [], bounds), 1_000)
    })

    it('tells other faults as they are', async () => {
      await assert.rejects(countWithin(database, 'select from nowhere', []), (error) => !isTimeout(error))
    })
  })
