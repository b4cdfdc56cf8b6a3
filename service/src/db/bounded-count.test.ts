/** A count that takes too long ends early. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { testDatabases } from '../../test/support/database/databases.ts'
import { useOpened } from '../../test/support/opened.ts'
import { countWithin } from './bounded-count.ts'
import { isTimeout } from './errors.ts'

for (const { name, open, skip } of testDatabases())
  describe(`a count on ${name}`, { skip }, () => {
    const database = useOpened(open)

    it('is exact', async () => {
      assert.equal(await countWithin(database, 'select from generate_series(1, $1::int)', [1_234]), 1_234)
      assert.equal(await countWithin(database, 'select from generate_series(1, 2) union all select where false', []), 2)
    })

    it('is null where there is too much to count, and the database goes on', { timeout: 240_000 }, async () => {
      const mostEmbedded = 1_000
      const all = 'select from generate_series(1::bigint, 100000) a, generate_series(1::bigint, 100000) b'
      assert.equal(await countWithin(database, all, [], { timeoutMs: 100, mostEmbedded }), null) // all of it would take an hour
      const bounds = { timeoutMs: 60_000, mostEmbedded }
      assert.equal(await countWithin(database, 'select from generate_series(1, 1000)', [], bounds), 1_000)
    })

    it('throws other errors unchanged', async () => {
      await assert.rejects(countWithin(database, 'select from nowhere', []), (error) => !isTimeout(error))
    })
  })
