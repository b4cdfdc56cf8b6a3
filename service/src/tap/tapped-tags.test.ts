/** A tap counts for the tag that was tapped (spec §2.9), whatever tag of its product the index has at that moment. */
import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import type { Hex } from '@touchstone/verdict'
import { countLockWaits, testDatabases } from '../../test/support/database/databases.ts'
import { assertSums, hashOf, isVerified as isTokenVerified } from '../../test/support/index/rows.ts'
import { bound, indexSteps, minted } from '../../test/support/index/steps.ts'
import { newPicc } from '../../test/support/tap/tapped-tag.ts'
import { newUid } from '../../test/support/tap/tags.ts'
import { useOpened } from '../../test/support/opened.ts'
import { until } from '../../test/support/wait.ts'
import type { Database, Sql } from '../db/database.ts'
import { migrate, migrationsTo, readMigrations } from '../db/migrate.ts'
import { toHex } from './bytes.ts'
import { createReplayLedger, createTapAnnouncement } from './replay-ledger.ts'

const [a, b, c] = [0xaa, 0xbb, 0xcc].map(hashOf) as [Hex, Hex, Hex]

/** A tap is announced by the commit that accepts it, or by a later one. On a cluster it is always a later one. */
type Way = 'accepted' | 'announced'
const waysOn = (name: string): readonly Way[] => (name === 'Citus' ? ['announced'] : ['accepted', 'announced'])

for (const { name, open, skip } of testDatabases())
  describe(`tapped tags on ${name}`, { skip }, () => {
    const database = useOpened(open)
    let step: Awaited<ReturnType<typeof indexSteps>>
    let [tokens, block] = [0n, 10]
    before(async () => void (step = await indexSteps(database)))

    const next = () => (block += 1)
    /** Indexes a product with a tag. */
    async function product(tag: Hex): Promise<bigint> {
      tokens += 1n
      await step(next(), [...minted(tokens), ...bound(tokens, tag)])
      return tokens
    }
    const bind = (tokenId: bigint, tag: Hex, over?: Pick<Database, 'query' | 'transaction' | 'dialect'>) =>
      step(next(), bound(tokenId, tag).slice(0, 1), over)

    async function tap(way: Way, tokenId: bigint, tagHash: Hex, over: Database = database): Promise<void> {
      const uid = newUid()
      const accepted = { uid, epoch: 0, counter: 1, picc: newPicc(), batchId: 'test' }
      const ledger = createReplayLedger({ sql: over })
      const { isAnnounced } = await ledger.consume(accepted, way === 'accepted' ? { tokenId, tagHash } : null)
      assert.equal(isAnnounced, way === 'accepted')
      if (isAnnounced) return
      assert.ok(await createTapAnnouncement(over)({ uid: toHex(uid), epoch: 0, tapCounter: 1, tokenId, tagHash }))
    }
    /** A tap by the functions of the version before, which do not get the tag. */
    async function tapOfBefore(tokenId: bigint): Promise<void> {
      const uid = newUid()
      await database.query('insert into tap (uid, epoch, counter, picc) values ($1, 0, 1, $2)', [uid, newPicc()])
      const statement =
        database.dialect === 'citus'
          ? 'select announce_tap($1, 0, 1, $2::numeric)'
          : 'select announce_taps(array[$1::bytea], array[0], array[1], array[$2::numeric])'
      await database.query(statement, [uid, String(tokenId)])
    }

    const isVerified = (tokenId: bigint) => isTokenVerified(database, tokenId)

    for (const way of waysOn(name)) {
      it(`make no product verified that the index has with another tag, ${way} taps`, async () => {
        const tokenId = await product(a)
        await tap(way, tokenId, b)
        assert.equal(await isVerified(tokenId), false)
        await bind(tokenId, c)
        assert.equal(await isVerified(tokenId), false)
        await bind(tokenId, b)
        assert.equal(await isVerified(tokenId), true)
        await bind(tokenId, a)
        assert.equal(await isVerified(tokenId), false, 'that tag was never tapped')
        await assertSums(database)
      })

      it(`are kept for a binding that the index does not have yet, ${way} taps`, async () => {
        const tokenId = await product(a)
        await tap(way, tokenId, a)
        await tap(way, tokenId, b)
        assert.equal(await isVerified(tokenId), true, 'both were tapped')
        await bind(tokenId, b)
        assert.equal(await isVerified(tokenId), true)
        await bind(tokenId, c)
        assert.equal(await isVerified(tokenId), false)
        await tap(way, tokenId, c)
        assert.equal(await isVerified(tokenId), true)
        await assertSums(database)
      })

      it(`are kept for a product that the index does not have yet, ${way} taps`, async () => {
        const [one, other] = [(tokens += 1n), (tokens += 1n)]
        for (const tokenId of [one, other]) await tap(way, tokenId, b)
        await step(next(), [...minted(one), ...bound(one, b), ...minted(other), ...bound(other, a)])
        assert.deepEqual([await isVerified(one), await isVerified(other)], [true, false])
      })

      it(`write nothing where the product was tapped with the same tag before, ${way} taps`, async () => {
        const tokenId = await product(a)
        await tap(way, tokenId, a)
        const rowOf = (table: string) =>
          database.query(`select xmin::text, xmax::text, ctid::text from ${table} where token_id = $1`, [
            String(tokenId),
          ])
        const rows = await Promise.all(['asset_tap', 'asset'].map(rowOf))
        // A step of the index is under way, for which it does not wait.
        if (database.dialect === 'pglite') await tap(way, tokenId, a)
        else
          await database.transaction(async (sql) => {
            await sql.query('select 1 from index_cursor for update')
            await tap(way, tokenId, a)
          })
        assert.deepEqual(await Promise.all(['asset_tap', 'asset'].map(rowOf)), rows)
      })

      for (const at of ['update asset_tap', 'update asset a'])
        for (const isTagKnown of [true, false])
          it(`count beside a step that binds their tag, from its «${at}» on, with ${isTagKnown ? 'a' : 'no'} kept tag, ${way} taps`, async (t) => {
            if (database.dialect === 'pglite') return t.skip('PGlite has one transaction')
            const tokenId = await product(a)
            await tap(way, tokenId, a)
            if (!isTagKnown)
              await database.query('update asset_tap set tag_hash = null where token_id = $1', [String(tokenId)])
            let tapped: Promise<void> | undefined
            const binding = doneBefore(at, async () => {
              tapped = tap(way, tokenId, b)
              await Promise.race([tapped, until(isBlocked)])
            })
            await bind(tokenId, b, binding)
            await tapped
            assert.equal(await isVerified(tokenId), true)
            await bind(tokenId, a)
            assert.equal(await isVerified(tokenId), false)
            await bind(tokenId, b)
            assert.equal(await isVerified(tokenId), true, 'the tag is kept')
            await assertSums(database)
          })
    }

    it('count where a step that binds their tag waits for them', async (t) => {
      if (database.dialect === 'pglite') return t.skip('PGlite has one transaction')
      const tokenId = await product(a)
      let bindsB: Promise<void> | undefined
      await database.transaction(async (sql) => {
        await tap('announced', tokenId, b, { ...database, ...sql })
        bindsB = bind(tokenId, b)
        await until(isBlocked)
      })
      await bindsB
      assert.equal(await isVerified(tokenId), true)
      await assertSums(database)
    })

    it('of the version before count for the tag that the index has', async () => {
      const tokenId = await product(a)
      await tapOfBefore(tokenId)
      assert.equal(await isVerified(tokenId), true)
      await bind(tokenId, b)
      assert.equal(await isVerified(tokenId), false)
      await tapOfBefore(tokenId)
      assert.equal(await isVerified(tokenId), true)
      await bind(tokenId, a)
      assert.equal(await isVerified(tokenId), false)
      await bind(tokenId, b)
      assert.equal(await isVerified(tokenId), true)
      const early = (tokens += 1n)
      await tapOfBefore(early)
      await step(next(), [...minted(early), ...bound(early, c)])
      assert.equal(await isVerified(early), true, 'nothing says which tag it was')
      await bind(early, b)
      assert.equal(await isVerified(early), false)
      await bind(early, c)
      assert.equal(await isVerified(early), true)
      await assertSums(database)
    })

    async function isBlocked(): Promise<boolean> {
      return (await countLockWaits(database)) > 0
    }

    /** The database, where `work` is done before a statement of a transaction with this piece. */
    function doneBefore(
      piece: string,
      work: () => Promise<unknown>,
    ): Pick<Database, 'query' | 'transaction' | 'dialect'> {
      const watched = ({ query }: Sql): Sql => ({
        query: async (text, values) => {
          if (text.includes(piece)) await work()
          return query<never>(text, values)
        },
      })
      return { ...database, transaction: (run) => database.transaction((sql) => run(watched(sql))) }
    }
  })

for (const { name, open, skip } of testDatabases('none'))
  describe(
    `the migration of tapped tags on ${name}`,
    { skip: name === 'Citus' ? 'it has the tables of today' : skip },
    () => {
      it('keeps the tag that was tapped after another was bound', async () => {
        const database = await open()
        try {
          await migrate(database, migrationsTo(readMigrations(), '0044') ?? [])
          const hex = (hash: Hex) => `decode('${hash.slice(2)}', 'hex')`
          await database.exec(`
          insert into asset (token_id, owner, state, flags, tag_hash, tapped_at, created_at, updated_at, updated_block)
            select id, decode(repeat('11', 20), 'hex'), 3, 0, tag, at::timestamptz, now(), now(), 1
            from (values (1, ${hex(a)}, '2026-02-01'), (2, ${hex(a)}, null), (3, ${hex(a)}, '2026-02-01')) v (id, tag, at);
          insert into asset_tap (token_id, tapped_at, tag_hash)
            values (1, '2026-01-01', ${hex(b)}), (2, '2026-01-01', ${hex(b)}), (3, '2026-02-01', null)`)
          await migrate(database)
          const rows = await database.query<{ tag: string | null; day: string }>(
            `select encode(tag_hash, 'hex') as tag, tapped_at::date::text as day from asset_tap order by token_id`,
          )
          assert.deepEqual(
            rows.map(({ tag, day }) => [tag, day]),
            [
              [a.slice(2), '2026-02-01'],
              [b.slice(2), '2026-01-01'],
              [null, '2026-02-01'],
            ],
          )
        } finally {
          await database.close()
        }
      })
    },
  )
