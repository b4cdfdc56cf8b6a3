/** The same store on PGlite and on PostgreSQL. `TEST_DATABASE_URL` names a server; without it the standard local port is tried. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { canonicalMetadata } from '../../../src/assets/metadata.ts'
import { metadataStore } from '../../../src/assets/metadata-store.ts'
import { migrate } from '../../../src/db/migrate.ts'
import { testDatabases } from '../../support/database/databases.ts'
import { useOpened } from '../../support/opened.ts'

for (const { name, open, skip } of testDatabases('none')) {
  describe(`the store on ${name}`, { skip }, () => {
    const database = useOpened(open)

    it('returns int8 as bigint, numeric and times as text, bytes as Uint8Array', async () => {
      const [row] = await database.query(
        'select 9007199254740993::int8 as a, (2::numeric ^ 255)::numeric(78,0) as b, $1::bytea as c, timestamptz $$2026-01-02 03:04:05.123456+00$$ as d',
        [new Uint8Array([0, 255])],
      )
      const { a, b, c, d } = row as { a: unknown; b: unknown; c: unknown; d: unknown }
      assert.equal(a, 9007199254740993n)
      assert.equal(b, (2n ** 255n).toString())
      assert.ok(c instanceof Uint8Array && !Buffer.isBuffer(c))
      assert.deepEqual([...c], [0, 255])
      assert.match(String(d), /\.123456/)
    })

    it('rolls a transaction back when it throws', async () => {
      await database.exec('create table thing (n int)')
      await assert.rejects(
        database.transaction(async (sql) => {
          await sql.query('insert into thing values (1)')
          throw new Error('changed my mind')
        }),
        /changed my mind/,
      )
      assert.deepEqual(await database.query('select n from thing'), [])
    })

    it('fails for a transaction that goes on after a statement of it failed: nothing of it is kept', async () => {
      await database.exec('create table kept (n int)')
      const ignoring = database.transaction(async (sql) => {
        await sql.query('insert into kept values (1)')
        await sql.query('select 1 / 0').catch(() => {})
        return 'done'
      })
      await assert.rejects(ignoring, /rolled back/)
      assert.deepEqual(await database.query('select n from kept'), [])
    })

    it('migrates once, also when two start together, and rejects a changed file', async () => {
      const migrations = [
        {
          name: '9001-one.sql',
          script: '-- a comment; with a semicolon\ncreate table one (n int);\ninsert into one values (1);\n',
        },
      ]
      const both = await Promise.all([migrate(database, migrations), migrate(database, migrations)])
      assert.deepEqual(both.flat(), ['9001-one.sql'])
      assert.deepEqual(await database.query('select n from one'), [{ n: 1 }])
      const changed = [{ name: '9001-one.sql', script: 'create table two (n int);' }]
      await assert.rejects(migrate(database, changed), /Migration 9001-one.sql was changed after it ran/)
    })

    it('finds metadata by its hash, and not after a row was altered', async () => {
      await migrate(database)
      const store = metadataStore(database)
      const canonical = canonicalMetadata({ name: 'Ä product', brand: 'A brand' })
      assert.ok(canonical.ok)
      await store.put(canonical)
      await store.put(canonical)
      const other = `0x${'0'.repeat(64)}` as const
      assert.deepEqual(
        [...(await store.getMany([canonical.hash, other]))],
        [[canonical.hash, '{"brand":"A brand","name":"Ä product"}']],
      )
      await database.query(`update metadata set body = replace(body, 'brand"', 'brandy"')`)
      assert.equal((await store.getMany([canonical.hash])).size, 0)
    })

    // A forbidden scan costs more than the threshold of PostgreSQL's compiler, which then takes 7 ms at each call.
    it('has no function that may not scan tables and may compile its plans', async () => {
      await migrate(database)
      const functions = await database.query<{ name: string; isCompiled: boolean }>(
        `select proname as name, not proconfig @> '{jit=off}' as "isCompiled" from pg_proc where proconfig @> '{enable_seqscan=off}'`,
      )
      assert.ok(functions.some(({ name }) => name === 'publish_taps'))
      assert.deepEqual(
        functions.filter(({ isCompiled }) => isCompiled),
        [],
      )
    })
  })
}
