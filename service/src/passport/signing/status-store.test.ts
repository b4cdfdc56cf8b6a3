/** Places in status lists on PGlite and on PostgreSQL. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { testDatabases } from '../../../test/support/database/databases.ts'
import { useOpened } from '../../../test/support/opened.ts'
import { statusStore } from './status-store.ts'

for (const { name, open, skip } of testDatabases()) {
  describe(`places in status lists on ${name}`, { skip }, () => {
    const database = useOpened(open)
    const places = statusStore(database)

    it('are given once, to one token, and counted', async () => {
      const tokenId = 2n ** 256n - 1n
      assert.deepEqual([await places.find(tokenId), await places.newest()], [null, null])
      assert.equal(await places.claim(tokenId, { list: 1, index: 131_071 }), true)
      assert.equal(await places.claim(tokenId, { list: 1, index: 7 }), false, 'it has one')
      assert.equal(await places.claim(5n, { list: 1, index: 131_071 }), false, 'it is taken')
      assert.equal(await places.claim(5n, { list: 2, index: 131_071 }), true)
      await assert.rejects(places.claim(6n, { list: 1, index: 131_072 }))
      assert.deepEqual(await places.find(tokenId), { list: 1, index: 131_071 })
      assert.deepEqual(await places.newest(), { list: 2, taken: 1 })
      assert.deepEqual([await places.size(1), await places.size(3)], [1, 0])
      assert.deepEqual(await places.members(1, -1), [{ tokenId, index: 131_071 }])
      assert.deepEqual(await places.members(1, 131_071), [])
    })

    it('are read in pages, in the order of their indexes', async () => {
      await database.query(
        `insert into status_place (token_id, list, entry) select 1000000 + n, 9, 2 * n from generate_series(0, 2500) n`,
      )
      const indexes: number[] = []
      for (
        let page = await places.members(9, -1);
        page.length > 0;
        page = await places.members(9, indexes.at(-1) ?? 0)
      ) {
        assert.ok(page.length <= 2_000)
        indexes.push(...page.map(({ index }) => index))
      }
      assert.deepEqual(
        indexes,
        Array.from({ length: 2_501 }, (_none, n) => 2 * n),
      )
    })

    it('are one for a token, however many ask for it at once', async () => {
      const asked = Array.from({ length: 8 }, (_, index) => places.claim(77n, { list: 1, index }))
      assert.equal((await Promise.all(asked)).filter(Boolean).length, 1)
    })
  })
}
