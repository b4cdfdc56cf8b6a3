/** The tag registry on PGlite and on PostgreSQL. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, it } from 'node:test'
import type { Database } from '../db/database.ts'
import { auditHead, readAudit } from '../db/audit.ts'
import { itemStore } from '../assets/items.ts'
import { mayBind, registerBound } from './binding.ts'
import { type TagRow, tagStore } from './tag-registry.ts'
import { createTapPruning } from './replay-ledger.ts'
import { testDatabases } from '../../test/support/database/databases.ts'
import { useOpened } from '../../test/support/opened.ts'

for (const { name, open, skip } of testDatabases()) {
  describe(`the tag registry on ${name}`, { skip }, () => {
    const database = useOpened(open)
    const tags = tagStore(database)

    let tokens = 0n
    const newRow = (change: Partial<TagRow> = {}): TagRow => {
      tokens += 1n
      const uid = Uint8Array.from([4, ...randomBytes(6)])
      return { uid, epoch: 0, batchId: 'a', tokenId: tokens, gtin: '09506000134352', serial: `S${tokens}`, ...change }
    }

    it('finds a tag by UID, token and item', async () => {
      const row = newRow({ tokenId: 2n ** 256n - 1n, baselineCounter: 5 })
      assert.deepEqual(await tags.importTag(row), { outcome: 'registered', created: true })
      const { uid, epoch, batchId, tokenId = 0n, gtin = '', serial = '' } = row
      const known = { uid, epoch, batchId, tokenId, gtin, serial }
      const expected = { ...known, isRegistered: true, lastCounter: 5, baselineCounter: 5 }
      assert.deepEqual(await tags.tagOfUid(uid), expected)
      assert.deepEqual(await tags.tagOfToken(tokenId), expected)
      assert.deepEqual(await tags.tagsOfItems([{ gtin, serial }]), [expected])
      assert.equal(await tags.tagOfUid(new Uint8Array(7)), undefined)
    })

    it('finds many tags at once as it finds each', async () => {
      const [whole, moved, plain, unknown] = [newRow(), newRow(), newRow(), newRow()]
      const { uid, tokenId = 0n, gtin = '', serial = '' } = moved
      for (const row of [whole, moved, { ...moved, epoch: 2 }, { uid: plain.uid, epoch: 0, batchId: 'a' }])
        assert.equal((await tags.importTag(row)).outcome, 'registered')
      const { uid: ofRevoked } = newRow()
      await tags.putBatch({ id: 'tapped', epoch: 3, settings: {}, status: 'revoked' })
      const add = `insert into tag (uid, epoch, batch_id, last_counter) values ($1, 3, 'tapped', 1)`
      for (const tapped of [ofRevoked, uid]) await database.query(add, [tapped])
      const uids = [unknown.uid, uid, plain.uid, ofRevoked, whole.uid, uid]
      const each = await Promise.all(uids.map((one) => tags.tagOfUid(one)))
      assert.deepEqual(
        each.map((tag) => tag?.epoch),
        [undefined, 2, 0, undefined, 0, 2],
      )
      assert.deepEqual(await tags.tagsOfUids(uids), each)
      assert.deepEqual(await tags.tagsOfTokens([unknown.tokenId, tokenId, undefined, whole.tokenId]), [
        undefined,
        each[1],
        undefined,
        each[4],
      ])
      const ofWhole = { gtin, serial: whole.serial ?? '' }
      const strange = { gtin, serial: 'a b,"c"\\' }
      const ofOther = { ...ofWhole, gtin: '00000000000000' }
      assert.deepEqual(await tags.tagsOfItems([{ gtin, serial }, undefined, strange, ofOther, ofWhole]), [
        each[1],
        undefined,
        undefined,
        undefined,
        each[4],
      ])
      assert.deepEqual(await tags.tagsOfUids([]), [])
    })

    it('registers tags that come together by one statement, and each alone where one of them is refused', async () => {
      let statements = 0
      const query: Database['query'] = (...call) => {
        statements += 1
        return database.query(...call)
      }
      const counted = tagStore({ query })
      const rows = Array.from({ length: 20 }, () => newRow())
      const registered = { outcome: 'registered', created: true }
      assert.deepEqual(
        await Promise.all(rows.map((row) => counted.importTag(row))),
        rows.map(() => registered),
      )
      assert.equal(statements, 1)
      const [one, other, taken] = [newRow(), newRow(), newRow({ tokenId: rows[0]?.tokenId ?? 0n })]
      assert.deepEqual(await Promise.all([one, taken, other].map((row) => counted.importTag(row))), [
        registered,
        { outcome: 'refused', because: 'token_taken' },
        registered,
      ])
      for (const row of [...rows, one, other]) assert.equal((await tags.tagOfUid(row.uid))?.tokenId, row.tokenId)
      assert.equal(await tags.tagOfUid(taken.uid), undefined)
    })

    it('registers a tag although PostgreSQL ends the first try because of a deadlock', async () => {
      const deadlock = Object.assign(new Error('deadlock detected'), { code: '40P01' })
      const row = newRow()
      let tries = 0
      const query: Database['query'] = (...call) =>
        (tries += 1) === 1 ? Promise.reject(deadlock) : database.query(...call)
      assert.deepEqual(await tagStore({ query }).importTag(row), { outcome: 'registered', created: true })
      assert.equal((await tags.tagOfUid(row.uid))?.tokenId, row.tokenId)
    })

    it('takes the same row again without changing anything, and never lowers a counter', async () => {
      const row = newRow({ baselineCounter: 5 })
      await tags.importTag(row)
      const before = await tags.tagOfUid(row.uid)
      assert.deepEqual(await tags.importTag(row), { outcome: 'registered', created: false })
      assert.deepEqual(await tags.tagOfUid(row.uid), before)
      await tags.importTag({ ...row, baselineCounter: 2 })
      assert.equal((await tags.tagOfUid(row.uid))?.lastCounter, 5)
      await tags.importTag({ uid: row.uid, epoch: 0, batchId: 'a', baselineCounter: 9 })
      const later = await tags.tagOfUid(row.uid)
      assert.deepEqual([later?.lastCounter, later?.tokenId], [9, row.tokenId], 'a missing column erases nothing')
    })

    it('has no first counter of a tag that was registered before it was written, and takes the one of the writing', async () => {
      const row = newRow()
      await tags.importTag(row)
      assert.equal((await tags.tagOfUid(row.uid))?.baselineCounter, null)
      for (const baselineCounter of [3, 7]) await tags.importTag({ ...row, baselineCounter })
      const tag = await tags.tagOfUid(row.uid)
      assert.deepEqual([tag?.baselineCounter, tag?.lastCounter], [3, 7])
    })

    it('completes the row that a tap has made', async () => {
      const row = newRow()
      await database.query(`insert into tag (uid, epoch, batch_id, last_counter) values ($1, 0, 'a', 77)`, [row.uid])
      assert.deepEqual(await tags.importTag(row), { outcome: 'registered', created: false })
      const tag = await tags.tagOfUid(row.uid)
      assert.deepEqual([tag?.lastCounter, tag?.tokenId], [77, row.tokenId])
    })

    it('closes the former epochs of a chip, which hand over their token', async () => {
      const row = newRow()
      await tags.importTag(row)
      assert.deepEqual(await tags.importTag({ ...row, epoch: 2 }), { outcome: 'registered', created: true })
      const rows = await database.query<{ epoch: number; last_counter: number; token_id: string | null }>(
        'select epoch, last_counter, token_id from tag where uid = $1 order by epoch',
        [row.uid],
      )
      assert.deepEqual(rows, [
        { epoch: 0, last_counter: 0xffffff, token_id: null },
        { epoch: 2, last_counter: 0, token_id: String(row.tokenId) },
      ])
      assert.deepEqual(await tags.importTag(row), { outcome: 'refused', because: 'newer_epoch' })
      assert.deepEqual(await tags.importTag({ ...row, epoch: 1 }), { outcome: 'refused', because: 'newer_epoch' })
      assert.equal((await tags.tagOfToken(row.tokenId ?? 0n))?.epoch, 2)
    })

    it('refuses a token or an item of another chip, and changes nothing then', async () => {
      const [one, other] = [newRow(), newRow()]
      await tags.importTag(one)
      await tags.importTag(other)
      const before = await tags.tagOfUid(other.uid)
      const { tokenId = 0n, gtin = '', serial = '' } = one
      assert.deepEqual(await tags.importTag({ ...other, tokenId }), { outcome: 'refused', because: 'token_taken' })
      assert.deepEqual(await tags.importTag({ ...other, epoch: 1, gtin, serial }), {
        outcome: 'refused',
        because: 'item_taken',
      })
      assert.deepEqual(await tags.tagOfUid(other.uid), before)
    })

    it('refuses one epoch in two batches', async () => {
      const row = newRow()
      await tags.importTag(row)
      assert.deepEqual(await tags.importTag({ ...row, batchId: 'b' }), { outcome: 'refused', because: 'other_batch' })
      assert.equal((await tags.tagOfUid(row.uid))?.batchId, 'a')
    })

    it('refuses rows that are not legal', async () => {
      const changes: Partial<TagRow>[] = [
        { uid: new Uint8Array(4) },
        { epoch: -1 },
        { epoch: 0.5 },
        { batchId: 'a b' },
        { baselineCounter: 0x1000000 },
        { tokenId: -1n },
        { tokenId: 2n ** 256n },
        { gtin: '9506000134352' },
        { gtin: '09506000134353' },
        { serial: 'x'.repeat(21) },
        { serial: '..' },
      ]
      for (const change of changes)
        assert.deepEqual(await tags.importTag(newRow(change)), { outcome: 'refused', because: 'not_legal' })
      const { serial: _none, ...withoutSerial } = newRow()
      const { tokenId: _nothing, ...withoutToken } = newRow()
      for (const row of [withoutSerial, withoutToken])
        assert.deepEqual(await tags.importTag(row), { outcome: 'refused', because: 'not_legal' })
    })

    it('gives a token to one of two chips that are registered at once', async () => {
      const rows = [newRow(), newRow(), newRow()].map((row) => ({ ...row, tokenId: 10n ** 30n }))
      const outcomes = await Promise.all(rows.map((row) => tags.importTag(row)))
      assert.equal(outcomes.filter(({ outcome }) => outcome === 'registered').length, 1)
    })

    it('keeps batches without keys, and their status', async () => {
      const batches = tagStore(database)
      assert.equal(await batches.putBatch({ id: 'x', epoch: 1, settings: { macInput: 'empty' } }), true)
      assert.equal(await batches.setBatchStatus('x', 'revoked'), true)
      assert.equal(await batches.putBatch({ id: 'x', epoch: 1, settings: { macInput: 'picc' } }), true)
      assert.equal(await batches.putBatch({ id: 'x', epoch: 2, settings: {} }), false)
      assert.equal(await batches.setBatchStatus('y', 'revoked'), false)
      const batch = (await batches.batches()).find(({ id }) => id === 'x')
      assert.ok(batch)
      const { createdAt, ...rest } = batch
      assert.deepEqual(rest, { id: 'x', epoch: 1, status: 'revoked', settings: { macInput: 'picc' } })
      assert.equal(new Date(createdAt).toISOString().slice(0, -1), createdAt.slice(0, -4))
    })

    it('changes the status of a batch only from the one that was read', async () => {
      const batches = tagStore(database)
      await batches.putBatch({ id: 'raced', epoch: 0, settings: {} })
      assert.equal(await batches.setBatchStatus('raced', 'revoked', 'active'), true)
      assert.equal(await batches.setBatchStatus('raced', 'retired', 'active'), false)
      assert.equal(await batches.setBatchStatus('raced', 'revoked', 'active'), false, 'another one revoked it')
      assert.equal((await batches.batch('raced'))?.status, 'revoked')
      assert.equal(await batches.setBatchStatus('raced', 'retired', 'revoked'), true)
      assert.equal((await batches.batch('raced'))?.status, 'retired')
    })

    it('forgets old taps and keeps the counter of their tag', async () => {
      const { uid } = newRow()
      const add = `insert into tap (uid, epoch, counter, picc, first_seen) values ($1, 0, $2, $3, clock_timestamp() - make_interval(days => $4::int))`
      await database.query(`insert into tag (uid, epoch, batch_id, last_counter) values ($1, 0, 'a', 3)`, [uid])
      for (const [counter, days] of [
        [1, 91],
        [2, 89],
        [3, 0],
      ] as const)
        await database.query(add, [uid, counter, new Uint8Array(16), days])
      const stray = newRow().uid // whose counter no tag holds
      await database.query(add, [stray, 1, new Uint8Array(16), 91])
      await createTapPruning({ sql: database, days: 90 })()
      assert.equal((await database.query('select from tap where uid = $1', [stray])).length, 1)
      assert.deepEqual(await database.query('select counter from tap where uid = $1 order by counter', [uid]), [
        { counter: 2 },
        { counter: 3 },
      ])
      assert.equal((await tags.tagOfUid(uid))?.lastCounter, 3)
      assert.throws(() => createTapPruning({ sql: database, days: 0 }), RangeError)
    })

    it('lets no tag be bound in a batch that is revoked', async () => {
      const { uid, batchId, tokenId = 0n } = newRow({ batchId: 'revoked' })
      await tags.putBatch({ id: batchId, epoch: 0, settings: {} })
      const ask = () => mayBind(tags, async () => null, { tokenId, uid, batchId, item: null })
      assert.deepEqual(await ask(), { ok: true, epoch: 0 })
      await tags.setBatchStatus(batchId, 'revoked')
      const message = 'Batch revoked is revoked; its tags need another batch.'
      assert.deepEqual(await ask(), { ok: false, about: 'batch', own: true, message })
    })

    it('lets a tag be bound in its batch only, and one that is known by its taps in a newer one', async () => {
      const { uid, tokenId = 0n } = newRow()
      for (const [id, epoch] of [
        ['own', 3],
        ['beside', 3],
        ['later', 4],
      ] as const)
        await tags.putBatch({ id, epoch, settings: {} })
      const ask = async (batchId: string) =>
        (await mayBind(tags, async () => null, { tokenId, uid, batchId, item: null })).ok
      const each = () => Promise.all(['own', 'beside', 'later'].map(ask))
      assert.deepEqual(await each(), [true, true, true])
      await database.query("insert into tag (uid, epoch, batch_id, last_counter) values ($1, 3, 'own', 1)", [uid])
      assert.deepEqual(await each(), [true, false, true])
      await tags.importTag({ uid, epoch: 3, batchId: 'own' })
      assert.deepEqual(await each(), [true, false, false])
      await tags.importTag({ uid, epoch: 3, batchId: 'own', tokenId })
      assert.deepEqual(await each(), [true, false, false])
    })

    it('lets a key with brands bind chips of batches of its brands only, also where it names another batch', async () => {
      for (const [id, epoch, brands] of [
        ['of-a', 1, ['A']],
        ['of-b', 0, ['B', 'C']],
        ['of-all', 1, null],
      ] as const) {
        await tags.putBatch({ id, epoch, settings: {} })
        assert.equal(await tags.setBatchBrands(id, brands), true)
        await tags.putBatch({ id, epoch, settings: { macInput: 'picc' } })
        const settings = { macInput: 'picc', ...(brands && { brands }) }
        assert.deepEqual((await tags.batch(id))?.settings, settings, 'a start of an instance changes no brands')
      }
      assert.equal(await tags.setBatchBrands('none', ['A']), false)
      const { uid, tokenId = 0n } = newRow()
      const ask = async (batchId: string, brands: readonly string[] | null) => {
        const answer = await mayBind(tags, async () => null, { tokenId, uid, batchId, item: null, brands })
        return answer.ok ? 'ok' : `${answer.about} ${answer.own ? 'named' : 'not named'}`
      }
      assert.deepEqual([await ask('of-b', ['A']), await ask('of-b', ['A', 'C'])], ['batch named', 'ok'])
      const each = async () => [await ask('of-a', ['A', 'X']), await ask('of-all', ['A']), await ask('of-a', null)]
      assert.deepEqual(await each(), ['ok', 'ok', 'ok'])
      await database.query("insert into tag (uid, epoch, batch_id, last_counter) values ($1, 0, 'of-b', 1)", [uid])
      assert.deepEqual(await each(), ['tag not named', 'tag not named', 'ok'], 'the chip was tapped in a batch of B')
      await tags.setBatchBrands('of-b', null)
      assert.deepEqual(await each(), ['ok', 'ok', 'ok'])
    })

    it('registers a tag that was bound, unless another registration came meanwhile', async () => {
      await tags.putBatch({ id: 'a', epoch: 0, settings: {} })
      const { uid, tokenId = 0n, gtin = '', serial = '' } = newRow()
      const item = { gtin, serial }
      const binding = { tokenId, uid, batchId: 'a', item, epoch: 0 }
      const register = (change: Partial<typeof binding> = {}) =>
        registerBound(tags, { ...binding, ...change }, { who: 'someone' })
      assert.ok((await itemStore(database).register({ tokenId, ...item })).ok)
      assert.deepEqual([await register(), await register()], ['registered', 'unchanged'])
      const [entry] = await readAudit(database, (await auditHead(database)).seq - 1n, 1)
      const { act, before, after } = JSON.parse(entry?.body ?? '') as Record<string, unknown>
      const registered = { gtin, serial, batch: 'a', epoch: 0 }
      assert.deepEqual([act, before, after], ['tag.register', item, registered])
      assert.deepEqual(await register({ batchId: 'b' }), {
        refusal: `This tag is registered with asset ${tokenId} in batch a.`,
      })
      const stranger = Uint8Array.from([4, ...randomBytes(6)])
      assert.deepEqual(await register({ uid: stranger }), {
        refusal: 'The tag is bound on chain, but the registry of tags refused it (token_taken).',
      })
      assert.equal(await tags.tagOfUid(stranger), undefined)
    })

    it('lets no tag be bound that another token has on chain under the former commitment', async () => {
      await tags.putBatch({ id: 'a', epoch: 0, settings: {} })
      const { uid, batchId, tokenId = 0n } = newRow()
      const ask = (former: bigint) => mayBind(tags, async () => former, { tokenId, uid, batchId, item: null })
      const message = `This tag is bound to asset ${tokenId + 1_000n} on chain.`
      assert.deepEqual(await ask(tokenId + 1_000n), { ok: false, about: 'tag', own: false, message })
      assert.deepEqual(await ask(tokenId), { ok: true, epoch: 0 })
    })

    it('lets no tag be bound for an item that another token is, although that token has no tag', async () => {
      await tags.putBatch({ id: 'a', epoch: 0, settings: {} })
      const { uid, batchId, tokenId = 0n, gtin = '', serial = '' } = newRow()
      const item = { gtin, serial }
      const ask = (token: bigint) => mayBind(tags, async () => null, { tokenId: token, uid, batchId, item })
      assert.ok((await itemStore(database).register({ tokenId, ...item })).ok)
      const message = `Asset ${tokenId} is registered with this gtin and serial.`
      assert.deepEqual(await ask(tokenId + 1_000n), { ok: false, about: 'item', own: false, message })
      assert.deepEqual(await ask(tokenId), { ok: true, epoch: 0 })
    })
  })
}
