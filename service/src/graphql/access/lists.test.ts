/** Lists of a key with brands are those of all products, without what belongs to others. */
import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import type { Hex } from '@touchstone/verdict'
import { testDatabases } from '../../../test/support/database/databases.ts'
import { alice, bob, hashOf, insertAsset, insertTransfer } from '../../../test/support/index/rows.ts'
import { useOpened } from '../../../test/support/opened.ts'
import { bytes, type Keyset, type KeysetPage, numbers, texts } from '../../db/columns.ts'
import { indexStores, type IndexStores } from '../stores.ts'
import { haveFewProducts } from '../../index/queries/brands.ts'
import { scopedStores } from './scoped-stores.ts'

type Row = Readonly<{ tagHash?: Hex | null; tokenId?: bigint }>
type List = Readonly<{
  page: (stores: IndexStores, page: KeysetPage) => Promise<readonly Row[]>
  placeOf: (row: never) => Keyset
}>

const products = 48
const brandOf = (tokenId: number) => ['Acme', 'Bolt', undefined][tokenId % 3]
const second = (n: number) => `2026-01-02T00:00:0${n}Z`

const transfersBy = (filter: object): List => ({
  page: (stores, page) => stores.transfers.page({ tokenId: null, status: null, ...filter, ...page }),
  placeOf: ({ initiatedAt, pk }: { initiatedAt: string; pk: bigint }) => [initiatedAt, String(pk)],
})
const tapsBy = (filter: object): List => ({
  page: (stores, page) => stores.taps.page(filter, page),
  placeOf: ({ firstAt, id }: { firstAt: string; id: bigint }) => [firstAt, String(id)],
})
const anomaliesBy = (filter: object): List => ({
  page: (stores, page) => stores.taps.anomalies(filter, page),
  placeOf: ({ foundAt, id }: { foundAt: string; id: bigint }) => [foundAt, String(id)],
})
const span = { after: second(1), before: second(4) }
const lists: Readonly<Record<string, List>> = {
  'all transfers': transfersBy({}),
  'pending transfers': transfersBy({ status: 'PENDING' }),
  'failed transfers': transfersBy({ status: 'FAILED' }),
  'transfers of a party': transfersBy({ party: bob }),
  'failed transfers of a party within a time': transfersBy({
    status: 'FAILED',
    party: alice,
    initiatedAfter: second(0),
    initiatedBefore: second(5),
  }),
  'all taps': tapsBy({}),
  'taps by outcome, country and time': tapsBy({ outcome: 'FRESH', country: 'DE', ...span }),
  'all anomalies': anomaliesBy({}),
  'anomalies by kind and time': anomaliesBy({ kind: 'COUNTER_JUMP', ...span }),
}

for (const { name, open, skip } of testDatabases())
  describe(`lists of a key with brands on ${name}`, { skip }, () => {
    const database = useOpened(open)
    before(async () => {
      for (let tokenId = 1; tokenId <= products; tokenId += 1) {
        const brand = brandOf(tokenId)
        const assetPk = await insertAsset(database, { tokenId, tagHash: hashOf(tokenId), ...(brand && { brand }) })
        for (let n = 0; n < 3; n += 1) {
          const status = ['PENDING', 'CONFIRMED', 'FAILED'][(tokenId + n) % 3] ?? ''
          const expiresAt = tokenId % 4 === 0 ? second(9) : '9999-01-01T00:00:00Z' // a quarter of the offers has expired
          const parties = n === 0 ? { from: bob, to: alice } : { from: alice, to: n === 1 ? bob : alice }
          const initiatedAt = second((5 * tokenId + n) % 7)
          await insertTransfer(database, { id: `${tokenId}-${n}`, assetPk, status, expiresAt, initiatedAt, ...parties })
        }
      }
      const tapped = Array.from({ length: products }, (_, at) => at + 1).flatMap((tokenId) =>
        [1, 2, 3].map((n) => ({ tokenId, n, at: second((n + 5 * tokenId) % 7) })),
      )
      await database.query(
        `insert into tap_log (tag_hash, counter, outcome, country, hour, times, first_at, last_at)
           select tag_hash, n, case when n = 2 then 'REPLAYED' else 'FRESH' end, (array['FR', 'DE'])[1 + n % 2], '2026-01-02', 1, at, at
           from unnest($1::bytea[], $2::int[], $3::timestamptz[]) g (tag_hash, n, at)`,
        [
          bytes(tapped.map(({ tokenId }) => hashOf(tokenId))),
          numbers(tapped.map(({ n }) => n)),
          texts(tapped.map(({ at }) => at)),
        ],
      )
      await database.query(
        `insert into tap_anomaly (tag_hash, kind, day, found_at) select tag_hash, kind, '2026-01-02', at
           from unnest($1::bytea[], $2::timestamptz[]) g (tag_hash, at), unnest(array['TWO_PLACES', 'COUNTER_JUMP']) kind`,
        [
          bytes(tapped.flatMap(({ tokenId, n }) => (n === 1 ? [hashOf(tokenId)] : []))),
          texts(tapped.flatMap(({ n, at }) => (n === 1 ? [at] : []))),
        ],
      )
    })

    it('are read product by product up to a number of products, which is smaller on the embedded database', async () => {
      const most = { pglite: 1_000, postgres: 10_000, citus: 0 }[database.dialect]
      const isFew = async (n: number) => {
        await database.query("insert into product_count (brand, verified, n) values ('Many', false, $1)", [n])
        const few = await haveFewProducts(database, ['Many'])
        await database.query("delete from product_count where brand = 'Many'")
        return few
      }
      assert.deepEqual(
        [await isFew(1), await isFew(most), await isFew(most + 1)],
        most === 0 ? [false, false, false] : [true, true, false],
      )
      assert.equal(await haveFewProducts(database, null), false)
    })

    for (const [list, { page, placeOf }] of Object.entries(lists))
      it(`have ${list} of their products, and no others`, async () => {
        const stores = indexStores(database)
        for (const backward of [false, true]) {
          const all = await page(stores, { after: null, backward, limit: 1_000 })
          for (const brands of [['Acme'], ['Bolt', 'Acme'], ['None']]) {
            const expected = all.filter((row) => brands.includes(brandOf(tokenOf(row)) ?? ''))
            assert.ok(brands[0] === 'None' || expected.length > 4, `${expected.length} rows`)
            const own = scopedStores(stores, brands)
            const found: Row[] = []
            for (let after: Keyset | null = null; ;) {
              const rows = await page(own, { after, backward, limit: 4 })
              found.push(...rows)
              if (rows.length < 4) break
              after = placeOf(rows.at(-1) as never)
            }
            assert.deepEqual(found, expected, `${brands.join(' and ')}, ${backward ? 'backward' : 'forward'}`)
          }
        }
      })
  })

function tokenOf({ tokenId, tagHash }: Row): number {
  return Number(tokenId ?? BigInt(tagHash ?? 0))
}
