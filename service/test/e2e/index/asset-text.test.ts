/** Names and brands of products whose metadata comes late, or again and again. */
import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { metadataHashOf } from '@touchstone/verdict'
import { countLockWaits, testDatabases } from '../../support/database/databases.ts'
import { insertAsset, setCursor } from '../../support/index/rows.ts'
import { useOpened } from '../../support/opened.ts'
import { until } from '../../support/wait.ts'
import { metadataStore } from '../../../src/assets/metadata-store.ts'
import type { Database, Sql } from '../../../src/db/database.ts'
import { createTextRefresh } from '../../../src/index/assets/texts.ts'

const textOf = (name: string) => {
  const body = JSON.stringify({ name })
  return { body, hash: metadataHashOf(body) }
}

for (const { name, open, skip } of testDatabases())
  describe(`the text of products on ${name}`, { skip }, () => {
    const database = useOpened(open)
    let counting: Database
    let looks = 0
    before(async () => {
      await setCursor(database, { number: 5, at: '2026-01-01T00:00:00Z' })
      const counted = (sql: Sql): Sql => ({
        query: (text, values) => {
          if (/ from asset\b/.test(text)) looks += 1
          return sql.query(text, values)
        },
      })
      counting = {
        ...database,
        ...counted(database),
        transaction: (work) => database.transaction((sql) => work(counted(sql))),
      }
    })

    const names = async () =>
      (await database.query<{ name: string }>('select name from asset order by token_id')).map((row) => row.name)

    it('is stored once, and says whether it is new', async () => {
      const metadata = metadataStore(database)
      assert.deepEqual([await metadata.put(textOf('First')), await metadata.put(textOf('First'))], [true, false])
    })

    it('is compared with all products of a model once, however many are registered', async () => {
      const model = textOf('Model')
      const [metadata, refresh] = [metadataStore(database), createTextRefresh(counting)]
      for (const tokenId of [1, 2]) await insertAsset(database, { tokenId, metadataHash: model.hash })
      await refresh(model.hash, { isNew: await metadata.put(model) })
      assert.deepEqual(await names(), ['Model', 'Model'])
      looks = 0
      for (let again = 0; again < 5; again += 1) await refresh(model.hash, { isNew: await metadata.put(model) })
      assert.equal(looks, 0)
    })

    it('is given to the products that a process left without, which stored it and ended', async () => {
      const left = textOf('Left')
      await metadataStore(database).put(left)
      await insertAsset(database, { tokenId: 3, metadataHash: left.hash })
      await createTextRefresh(database)(left.hash, { isNew: false })
      assert.deepEqual(await names(), ['Model', 'Model', 'Left'])
    })

    const alone = name === 'PGlite' && 'PGlite has one transaction'
    it(
      'takes no lock that first taps wait for where it is right already, or has neither name nor brand',
      { skip: alone },
      async () => {
        const refresh = createTextRefresh(database)
        const body = '{"origin":"FR"}'
        const nameless = { body, hash: metadataHashOf(body) }
        await metadataStore(database).put(nameless)
        await insertAsset(database, { tokenId: 9, metadataHash: nameless.hash })
        await database.transaction(async (sql) => {
          await sql.query('select step from index_cursor for share') // as a first tap does
          for (const { hash } of [textOf('Model'), nameless]) await refresh(hash, { isNew: false })
        })
        await database.query('delete from asset where token_id = 9')
      },
    )

    it('reaches the products of a step that was under way', { skip: alone }, async () => {
      const late = textOf('Late')
      let refreshed: Promise<unknown> = Promise.resolve()
      await database.transaction(async (sql) => {
        await sql.query('update index_cursor set epoch = epoch')
        await insertAsset({ ...sql, dialect: database.dialect }, { tokenId: 4, metadataHash: late.hash })
        const isNew = await metadataStore(database).put(late)
        refreshed = createTextRefresh(database)(late.hash, { isNew })
        await until(async () => (await countLockWaits(database)) > 0)
      })
      await refreshed
      assert.equal((await names()).at(-1), 'Late')
    })
  })
