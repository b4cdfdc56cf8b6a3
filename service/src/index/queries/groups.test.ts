/** The bounds of statistics that are counted: those of a key with brands. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { testDatabases } from '../../../test/support/database/databases.ts'
import { recountProducts } from '../../../test/support/index/rows.ts'
import { CostError } from '../../db/cost.ts'
import { groupStore, type ProductGroup } from './groups.ts'

for (const { name, open, skip } of testDatabases())
  describe(`the groups of products of some brands in ${name}`, { skip }, () => {
    it('are counted up to a hundred thousand products, whatever the group and the database', async () => {
      await using database = await open()
      await database.query(`insert into asset (token_id, owner, state, flags, brand, created_at, updated_at, updated_block)
        select n, substr(sha256(''), 1, 20), 1 + n % 2 * 4, n % 2, 'Acme', '2026-01-01', '2026-01-01', 1
        from generate_series(1, 40000) n`)
      await recountProducts(database)
      if (database.dialect !== 'pglite') await database.query('analyze asset')
      const groups = groupStore(database)
      const counted = async (group: ProductGroup) => {
        const page = { group, after: null, descending: false, limit: 9, brands: ['Acme', 'Other'] }
        return (await groups.page(page)).map(({ key, n }) => `${key} ${n}`)
      }
      assert.deepEqual(await counted('BRAND'), ['Acme 40000'])
      assert.deepEqual(await counted('STATE'), ['1 20000', '5 20000'])
      assert.deepEqual(await counted('FLAG'), ['01 20000'])
      assert.deepEqual(await counted('DAY'), ['2026-01-01 40000'])

      const more = `insert into product_count (brand, verified, n) values ('Other', false, $1::int)`
      await database.query(more, [60_000])
      assert.deepEqual(await counted('FLAG'), ['01 20000'])
      await database.query(more, [1])
      for (const group of ['STATE', 'FLAG', 'DAY'] as const) await assert.rejects(counted(group), CostError)
      assert.deepEqual(await counted('BRAND'), ['Acme 40000', 'Other 60001'])
    })
  })
