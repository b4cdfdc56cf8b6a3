/** The sums of products while several transactions change the same product: they are what a count gives. */
import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { type Hex, metadataHashOf } from '@touchstone/verdict'
import { countLockWaits, testDatabases } from '../../../test/support/database/databases.ts'
import { hashOf, insertAsset, recountProducts, setCursor } from '../../../test/support/index/rows.ts'
import { useOpened } from '../../../test/support/opened.ts'
import { until } from '../../../test/support/wait.ts'
import { hexToBytes } from '../../db/columns.ts'
import type { Sql } from '../../db/database.ts'
import { storeAssets } from './rows.ts'
import { keepSums } from './sums.ts'
import { refreshAssetText } from './texts.ts'

const text = '{"brand":"Orvelle","name":"Diver"}'
const hash = metadataHashOf(text)

for (const { name, open, skip } of testDatabases())
  describe(`the sums of products on ${name}`, { skip: name === 'PGlite' ? 'PGlite has one transaction' : skip }, () => {
    const database = useOpened(open)
    before(() => setCursor(database, { number: 5, at: '2026-01-01T00:00:00Z' }))

    /** Announces the first tap of a new product, and begins `change` on it before the tap commits. */
    async function race(
      tokenId: number,
      change: () => Promise<unknown>,
      words: Readonly<{ name: string; brand: string }> | null = { name: 'Watch', brand: 'Acme' },
    ): Promise<void> {
      const uid = Buffer.from(tokenId.toString(16).padStart(14, '0'), 'hex')
      await insertAsset(database, {
        tokenId,
        ...words,
        state: 3,
        tagHash: hashOf(tokenId),
        metadataHash: hash,
      })
      await database.query('insert into tap (uid, epoch, counter, picc) values ($1, 0, 1, $2)', [uid, Buffer.alloc(16)])
      await recountProducts(database)
      let changed: Promise<unknown> = Promise.resolve()
      await database.transaction(async (sql) => {
        await sql.query('select announce_tap($1, 0, 1, $2::numeric, $3)', [
          uid,
          String(tokenId),
          hexToBytes(hashOf(tokenId) as Hex),
        ])
        changed = change()
        await until(async () => (await countLockWaits(database)) > 0)
      })
      await changed
      assert.deepEqual(await sums(), await counted())
    }

    const sums = () =>
      database.query('select verified, sum(n)::int as n from product_total group by 1 having sum(n) <> 0 order by 1')
    const counted = () => database.query('select verified, count(*)::int as n from asset group by 1 order by 1')

    it('are right when a step of the indexer changes a product that is tapped for the first time', async () => {
      const change = { minted: null, owner: null, state: 4, flags: null, metadataHash: null, tagHash: null }
      await race(1, () =>
        database.transaction(async (sql: Sql) => {
          await sql.query('update index_cursor set epoch = epoch')
          await keepSums(sql)
          await storeAssets(sql, [{ ...change, tokenId: '1', time: 1_800_000_000n, block: 6n }])
        }),
      )
    })

    it('are right when its metadata arrives at that moment', async () => {
      const values = [Buffer.from(hash.slice(2), 'hex'), text]
      await database.query('insert into metadata (hash, body) values ($1, $2)', values)
      await race(2, () => refreshAssetText(database, hash), null)
    })
  })
