/** The blocks to which a reorganisation can be followed back: few of them are kept for ever. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Hex } from '@touchstone/verdict'
import { testDatabases } from '../../test/support/database/databases.ts'
import { indexStore } from './store.ts'

const hashOf = (number: bigint): Hex => `0x${number.toString(16).padStart(64, '0')}`

for (const { name, open, skip } of testDatabases())
  describe(`the blocks of the index in ${name}`, { skip }, () => {
    it('are thinned to the first of every 4096, in one go or as the chain grows', async () => {
      await using opened = new AsyncDisposableStack()
      const database = opened.adopt(await open(), (db) => db.close())
      const store = indexStore(database)
      const led = await store.lead(`0x${'11'.repeat(20)}`)
      assert.ok(led !== null)
      const { epoch } = led
      let { cursor } = led
      /** Writes blocks, and then tidies below one of them. */
      const grow = async (numbers: readonly bigint[], keepFrom: bigint) => {
        const blocks = numbers.map((number) => ({ number, hash: hashOf(number) }))
        const to = { number: numbers.at(-1) ?? 0n, hash: hashOf(numbers.at(-1) ?? 0n), time: 0n }
        assert.ok(await store.apply({ epoch, from: cursor, rewindTo: null, events: [], blocks, to }))
        cursor = to
        assert.ok(await store.prune({ epoch, keepFrom }))
      }
      const run = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, n) => BigInt(from + n))
      const keptBelow = async (number: bigint) =>
        (await store.kept(number - 1n, 1_000)).map((block) => Number(block.number)).toReversed()

      await grow(run(0, 1_000), 300n)
      await grow(run(1_001, 1_002), 500n)
      await grow(run(1_003, 1_003), 700n)
      assert.deepEqual(await keptBelow(700n), [0])
      assert.deepEqual(await keptBelow(1_001n), [0, ...run(700, 1_000).map(Number)])

      // The ends of ranges of a backfill, and then single blocks again.
      await grow([5_000n, 6_000n, 9_000n, 9_001n, 20_000n], 21_000n)
      assert.deepEqual(await keptBelow(21_000n), [0, 5_000, 9_000, 20_000])
      await grow(run(20_001, 20_600), 20_300n)
      assert.deepEqual(await keptBelow(20_300n), [0, 5_000, 9_000, 20_000])
    })
  })

for (const { name, open, skip } of testDatabases())
  describe(`the sums of brands in ${name}`, { skip }, () => {
    it('become one row of each brand, some brands in each turn', async () => {
      await using opened = new AsyncDisposableStack()
      const database = opened.adopt(await open(), (db) => db.close())
      let now = 0
      const store = indexStore(database, { now: () => (now += 60_000) })
      const led = await store.lead(`0x${'11'.repeat(20)}`)
      assert.ok(led !== null)
      await database.query(`insert into product_count (brand, verified, n)
        select 'M ' || n, false, 1 from generate_series(1, 19999) n`)
      await database.query(`insert into product_count (brand, verified, n)
        select b, v, 2 from unnest(array['A', null, 'Zoë']) b, unnest(array[true, false]) v, generate_series(1, 10)`)
      const rows = async () =>
        (
          await database.query<{ brand: string | null; rows: number; n: number }>(
            `select brand, count(*)::int as rows, sum(n)::int as n from product_count
             where brand is null or brand not like 'M %' group by 1 order by 1 nulls first`,
          )
        ).map((row) => [row.brand, row.rows, row.n])
      const turn = async () => assert.ok(await store.prune({ epoch: led.epoch, keepFrom: 0n }))
      await turn()
      assert.deepEqual(await rows(), [
        [null, 2, 40],
        ['A', 2, 40],
        ['Zoë', 20, 40],
      ])
      await turn()
      await database.query(
        `insert into product_count (brand, verified, n) select 'A', true, 1 from generate_series(1, 5)`,
      )
      await turn()
      assert.deepEqual(await rows(), [
        [null, 2, 40],
        ['A', 2, 45],
        ['Zoë', 2, 40],
      ])
      const [all] = await database.query<{ n: number }>('select sum(n)::int as n from product_count')
      assert.equal(all?.n, 19_999 + 125)
    })
  })
