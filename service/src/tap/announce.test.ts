/** An announced tap (spec §6) on PGlite and on PostgreSQL: the tap, the item and the event go together. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { after, before, describe, it } from 'node:test'
import { hexOf } from './bytes.ts'
import { announceVerified, createLedger } from './counter.ts'
import { newUid } from '../../test/_tags.ts'
import { testDatabases } from '../../test/_databases.ts'

const schema = ['0002-tap', '0005-index']
  .map((name) => readFileSync(new URL(`../store/migrations/${name}.sql`, import.meta.url), 'utf8'))
  .join('\n')

for (const { name, open, skip } of testDatabases()) {
  describe(`announcing taps on ${name}`, { skip }, () => {
    let database: Awaited<ReturnType<typeof open>>
    before(async () => {
      database = await open()
      await database.exec(schema)
    })
    after(() => database.close())

    function newChip() {
      const uid = newUid()
      const ledger = createLedger({ sql: database })
      const tap = (counter: number) =>
        ledger.consume({ uid, epoch: 0, counter, picc: Uint8Array.from(randomBytes(16)), batchId: 'test' })
      return { uid, tap }
    }

    /** A tap of a bound item that the index knows, with a token of its own. */
    async function boundTap() {
      const { tap, uid } = newChip()
      await tap(1)
      const tokenId = BigInt(`0x${randomBytes(32).toString('hex')}`)
      await database.query(
        `insert into asset (token_id, owner, state, flags, tag_hash, created_at, updated_at, updated_block)
         values ($1, $2, 2, 0, $3, now(), now(), 1)`,
        [String(tokenId), new Uint8Array(20), new Uint8Array(32)],
      )
      return { resolved: { uid: hexOf(uid), epoch: 0, tapCounter: 1, tokenId }, tap }
    }
    const eventsOf = (tokenId: bigint) =>
      database.query<{ topic: string; at: string }>(
        `select topic, payload->>'at' as at from outbox where token_id = $1 order by seq`,
        [String(tokenId)],
      )
    const verifiedOf = async (tokenId: bigint) =>
      (
        await database.query<{ verified: boolean }>('select verified from asset where token_id = $1', [String(tokenId)])
      )[0]?.verified

    it('announces a tap once, whoever asks', async () => {
      const { resolved } = await boundTap()
      const answers = await Promise.all(Array.from({ length: 8 }, () => announceVerified(database, resolved)))
      assert.equal(answers.filter(Boolean).length, 1)
      assert.equal(await announceVerified(database, resolved), false)
      assert.equal(await announceVerified(database, { ...resolved, tapCounter: 2 }), false, 'no such tap')
      const [event, ...others] = await eventsOf(resolved.tokenId)
      assert.deepEqual([event?.topic, others], ['tap', []])
      assert.ok(Math.abs(Date.parse(event?.at ?? '') - Date.now()) < 60_000, event?.at)
    })

    it('makes the item verified with its first tap, and announces the later ones too', async () => {
      const { resolved, tap } = await boundTap()
      assert.equal(await verifiedOf(resolved.tokenId), false)
      await announceVerified(database, resolved)
      assert.equal(await verifiedOf(resolved.tokenId), true)
      const tappedAt = () =>
        database.query('select tapped_at from asset_tap where token_id = $1', [String(resolved.tokenId)])
      const first = await tappedAt()
      await tap(2)
      assert.equal(await announceVerified(database, { ...resolved, tapCounter: 2 }), true)
      assert.deepEqual([await tappedAt(), (await eventsOf(resolved.tokenId)).length], [first, 2])
    })

    it('announces an item that the index does not know yet', async () => {
      const { tap, uid } = newChip()
      await tap(1)
      const tokenId = BigInt(`0x${randomBytes(32).toString('hex')}`)
      assert.equal(await announceVerified(database, { uid: hexOf(uid), epoch: 0, tapCounter: 1, tokenId }), true)
      assert.equal((await eventsOf(tokenId)).length, 1)
    })

    it('announces all or nothing', async () => {
      const { resolved } = await boundTap()
      const undone = database.transaction(async (sql) => {
        assert.equal(await announceVerified(sql, resolved), true)
        throw new Error('undone')
      })
      await assert.rejects(undone, /undone/)
      assert.deepEqual([await verifiedOf(resolved.tokenId), await eventsOf(resolved.tokenId)], [false, []])
      assert.equal(await announceVerified(database, resolved), true)
    })
  })
}
