/** The announcement of taps (spec §6), with their acceptance and after it, on PGlite and on PostgreSQL. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, it } from 'node:test'
import { toHex } from './bytes.ts'
import type { Database } from '../db/database.ts'
import { createReplayLedger, createTapAnnouncement } from './replay-ledger.ts'
import { testDatabases } from '../../test/support/database/databases.ts'
import { insertAsset, isVerified } from '../../test/support/index/rows.ts'
import { newPicc, tappedTag } from '../../test/support/tap/tapped-tag.ts'
import { useOpened } from '../../test/support/opened.ts'

const tagHash = `0x${'07'.repeat(32)}` as const

for (const { name, open, skip } of testDatabases()) {
  describe(`the announcement of taps on ${name}`, { skip }, () => {
    const database = useOpened(open)
    const announce: ReturnType<typeof createTapAnnouncement> = (tap) => createTapAnnouncement(database)(tap)

    const world = () => tappedTag(database)

    /** A tap of a bound item that the index knows, with a token of its own. */
    async function boundTap() {
      const { tap, tapOf, uid } = world()
      await tap(1)
      const tokenId = BigInt(`0x${randomBytes(32).toString('hex')}`)
      await insertAsset(database, { tokenId, state: 2, tagHash })
      return { resolved: { uid: toHex(uid), epoch: 0, tapCounter: 1, tokenId, tagHash }, tap, tapOf }
    }
    const eventsOf = (tokenId: bigint) =>
      database.query<{ topic: string; at: string }>(
        `select topic, payload->>'at' as at from outbox where token_id = $1 order by seq`,
        [String(tokenId)],
      )
    const verifiedOf = (tokenId: bigint) => isVerified(database, tokenId)

    it('announces a tap once, with concurrent callers too', async () => {
      const { resolved } = await boundTap()
      const shared = createTapAnnouncement(database)
      const answers = await Promise.all([1, 2, 3, 4].flatMap(() => [announce(resolved), shared(resolved)]))
      assert.equal(answers.filter(Boolean).length, 1)
      assert.equal(await announce(resolved), false)
      assert.equal(await announce({ ...resolved, tapCounter: 2 }), false, 'no such tap')
      const [event, ...others] = await eventsOf(resolved.tokenId)
      assert.deepEqual([event?.topic, others], ['tap', []])
      assert.ok(Math.abs(Date.parse(event?.at ?? '') - Date.now()) < 60_000, event?.at)
    })

    it('makes the item verified with its first tap, and announces the later ones too', async () => {
      const { resolved, tap } = await boundTap()
      assert.equal(await verifiedOf(resolved.tokenId), false)
      await announce(resolved)
      assert.equal(await verifiedOf(resolved.tokenId), true)
      const tappedAt = () =>
        database.query('select tapped_at from asset_tap where token_id = $1', [String(resolved.tokenId)])
      const first = await tappedAt()
      await tap(2)
      assert.equal(await announce({ ...resolved, tapCounter: 2 }), true)
      assert.deepEqual([await tappedAt(), (await eventsOf(resolved.tokenId)).length], [first, 2])
    })

    it('announces a tap with its acceptance, in one statement', async () => {
      if (database.dialect === 'citus') return // a commit there is of one shard
      const { resolved, tapOf } = await boundTap()
      let statements = 0
      const query: Database['query'] = (...call) => {
        statements += 1
        return database.query(...call)
      }
      const ledger = createReplayLedger({ sql: { dialect: database.dialect, query } })
      const [second, third, fourth] = [tapOf(2), tapOf(3), tapOf(4)]
      const { outcome, isAnnounced } = await ledger.consume(second, resolved)
      assert.deepEqual([outcome, isAnnounced, statements], ['FRESH', true, 1])
      assert.equal(await announce({ ...resolved, tapCounter: 2 }), false)
      assert.deepEqual(
        (await eventsOf(resolved.tokenId)).map(({ topic }) => topic),
        ['tap'],
      )
      assert.equal(await verifiedOf(resolved.tokenId), true)

      const again = await ledger.consume(second, resolved)
      assert.deepEqual([again.outcome, again.isAnnounced], ['SAME_TAP', true])
      const other = await ledger.consume({ ...second, picc: newPicc() }, resolved)
      assert.deepEqual([other.outcome, (await eventsOf(resolved.tokenId)).length], ['REPLAY', 1])
      const late = await ledger.consume(third)
      assert.deepEqual([late.outcome, late.isAnnounced], ['FRESH', false])
      assert.equal((await ledger.judge(fourth)).isAnnounced, false)
      assert.equal((await ledger.consume(third, resolved)).isAnnounced, false, 'it was accepted before')
      assert.equal(await announce({ ...resolved, tapCounter: 3 }), true)
      assert.equal((await ledger.consume(third)).isAnnounced, true)
      assert.equal((await eventsOf(resolved.tokenId)).length, 2)
    })

    it('announces each tap of a group once', async () => {
      if (database.dialect === 'citus') return
      const [one, two, unbound] = [await boundTap(), await boundTap(), world()]
      const ledger = createReplayLedger({ sql: database })
      const [first, next] = [one.tapOf(2), one.tapOf(3)]
      const answers = await Promise.all([
        ledger.consume(next, one.resolved),
        ledger.consume(first, one.resolved),
        ledger.consume(first, one.resolved),
        ledger.consume(two.tapOf(2), two.resolved),
        ledger.consume(unbound.tapOf(1), null),
      ])
      assert.deepEqual(
        answers.map(({ outcome, isAnnounced }) => `${outcome} ${isAnnounced}`),
        ['FRESH true', 'FRESH true', 'SAME_TAP true', 'FRESH true', 'FRESH false'],
      )
      const events = await Promise.all([one, two].map(({ resolved }) => eventsOf(resolved.tokenId)))
      assert.deepEqual(
        events.map(({ length }) => length),
        [2, 1],
      )
    })

    it('announces an item that the index does not know yet', async () => {
      const { tap, uid } = world()
      await tap(1)
      const tokenId = BigInt(`0x${randomBytes(32).toString('hex')}`)
      assert.equal(await announce({ uid: toHex(uid), epoch: 0, tapCounter: 1, tokenId, tagHash }), true)
      assert.equal((await eventsOf(tokenId)).length, 1)
    })

    it('announces taps that come together as it does one after another', async () => {
      const [known, verified, twice] = [await boundTap(), await boundTap(), await boundTap()]
      await announce(verified.resolved)
      await verified.tap(2)
      const unknown = world()
      await unknown.tap(1)
      const unknownToken = BigInt(`0x${randomBytes(32).toString('hex')}`)
      const shared = createTapAnnouncement(database)
      const taps = [
        known.resolved,
        twice.resolved,
        { ...verified.resolved, tapCounter: 2 },
        twice.resolved,
        { uid: toHex(unknown.uid), epoch: 0, tapCounter: 1, tokenId: unknownToken, tagHash },
        { ...known.resolved, tapCounter: 9 },
      ]
      const counted = () =>
        database.query<{ verified: boolean; n: bigint }>(
          `select verified, sum(n)::bigint as n from product_total group by 1 order by 1`,
        )
      const before = await counted()
      const [ofKnown, ...answers] = await Promise.all(taps.map((tap) => shared(tap)))
      assert.deepEqual(
        [ofKnown, answers[0] !== answers[2], answers[1], answers[3], answers[4]],
        [true, true, true, true, false],
      )
      const tokens = [known, twice, verified].map(({ resolved }) => resolved.tokenId)
      assert.deepEqual(await Promise.all(tokens.map(verifiedOf)), [true, true, true])
      const events = await Promise.all([...tokens, unknownToken].map(eventsOf))
      assert.deepEqual(
        events.map(({ length }) => length),
        [1, 1, 2, 1],
      )
      const changes = (await counted()).map(({ n }, index) => n - (before[index]?.n ?? 0n))
      assert.deepEqual(changes, [-2n, 2n], 'two products became verified')
    })

    it('reads a few rows for a tap in tables that have grown since its plan was made', async () => {
      if (database.dialect === 'citus') return // there the statements are others
      const undone = database.transaction(async (sql) => {
        const ofGrown = { ...sql, dialect: database.dialect }
        const [ledger, announceGrown] = [createReplayLedger({ sql: ofGrown }), createTapAnnouncement(ofGrown)]
        const present = async () => {
          const tap = world().tapOf(1)
          await ledger.consume(tap)
          await announceGrown({ uid: toHex(tap.uid), epoch: 0, tapCounter: 1, tokenId: 1n, tagHash })
          await ledger.consume(world().tapOf(1), { tokenId: 2n, tagHash })
        }
        const readRows = async () => {
          const [row] = await sql.query<{ n: bigint }>(
            `select sum(pg_stat_get_xact_tuples_returned(oid))::bigint as n from pg_class where relkind in ('r', 'i') and relnamespace = 'public'::regnamespace`,
          )
          return Number(row?.n)
        }
        for (const table of ['tap', 'tag', 'asset_tap']) await sql.query(`delete from ${table}`)
        await present()
        const rows = `generate_series(1, 3000) n`
        const uid = `decode(lpad(to_hex(n), 14, '0'), 'hex')`
        await sql.query(`insert into tag (uid, batch_id, last_counter) select ${uid}, 'a', 1 from ${rows}`)
        await sql.query(
          `insert into tap (uid, epoch, counter, picc) select ${uid}, 0, 1, uuid_send(gen_random_uuid()) from ${rows}`,
        )
        const before = await readRows()
        await present()
        const read = (await readRows()) - before
        assert.ok(read < 100, `${read} rows`)
        throw new Error('undone')
      })
      await assert.rejects(undone, /undone/)
    })

    it('announces all or nothing', async () => {
      const { resolved } = await boundTap()
      const undone = database.transaction(async (sql) => {
        assert.equal(await createTapAnnouncement({ ...sql, dialect: database.dialect })(resolved), true)
        throw new Error('undone')
      })
      await assert.rejects(undone, /undone/)
      assert.deepEqual([await verifiedOf(resolved.tokenId), await eventsOf(resolved.tokenId)], [false, []])
      assert.equal(await announce(resolved), true)
    })
  })
}
