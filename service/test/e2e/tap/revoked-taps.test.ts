/** A product whose only taps are of a revoked batch is not verified (spec §2.9), whatever the index does later. */
import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import type { Hex } from '@touchstone/verdict'
import { testDatabases } from '../../support/database/databases.ts'
import { assertSums, isVerified } from '../../support/index/rows.ts'
import { bound, indexSteps, minted } from '../../support/index/steps.ts'
import { newPicc } from '../../support/tap/tapped-tag.ts'
import { newUid } from '../../support/tap/tags.ts'
import { useOpened } from '../../support/opened.ts'
import type { Database } from '../../../src/db/database.ts'
import { rebuildIndex } from '../../../src/index/store.ts'
import { takeBackTaps } from '../../../src/index/assets/taps.ts'
import { toHex } from '../../../src/tap/bytes.ts'
import { createReplayLedger, createTapAnnouncement } from '../../../src/tap/replay-ledger.ts'
import { createRevokedTaps } from '../../../src/tap/revoked-taps.ts'
import { tagStore } from '../../../src/tap/tag-registry.ts'

const hashBy =
  (digits: string) =>
  (uid: Uint8Array): Hex =>
    `0x${toHex(uid).toLowerCase()}${digits.repeat(25)}`
const [tagHash, formerTagHash] = [hashBy('ab'), hashBy('cd')]

for (const { name, open, skip } of testDatabases())
  describe(`taps of revoked batches on ${name}`, { skip }, () => {
    const database = useOpened(open)
    let step: Awaited<ReturnType<typeof indexSteps>>
    let [tokens, block, batches] = [0n, 10, 0]
    before(async () => void (step = await indexSteps(database)))

    const passes = (over: Partial<Parameters<typeof createRevokedTaps>[0]> = {}) =>
      createRevokedTaps({
        database,
        tagHashes: [tagHash, formerTagHash],
        takeBackTaps: (hashes) => takeBackTaps(database, hashes),
        settledSeconds: 0,
        ...over,
      })
    async function newBatch(epoch = 0): Promise<string> {
      const id = `batch-${(batches += 1)}`
      await tagStore(database).putBatch({ id, epoch, settings: {} })
      return id
    }
    const setStatus = (id: string, status: 'revoked' | 'retired') => tagStore(database).setBatchStatus(id, status)
    const next = () => (block += 1)

    /** Indexes a product with a tag. */
    async function product(uid: Uint8Array, hash = tagHash): Promise<bigint> {
      tokens += 1n
      await step(next(), [...minted(tokens), ...bound(tokens, hash(uid))])
      return tokens
    }
    async function tap(
      tokenId: bigint,
      { uid, batchId, epoch = 0, counter = 1, hash = tagHash }: Chip & { counter?: number; hash?: typeof tagHash },
    ): Promise<void> {
      const { outcome } = await createReplayLedger({ sql: database }).consume({
        uid,
        epoch,
        counter,
        picc: newPicc(),
        batchId,
      })
      assert.equal(outcome, 'FRESH')
      const announce = createTapAnnouncement(database)
      assert.ok(await announce({ uid: toHex(uid), epoch, tapCounter: counter, tokenId, tagHash: hash(uid) }))
    }
    type Chip = Readonly<{ uid: Uint8Array; batchId: string; epoch?: number }>

    const areVerified = (all: readonly bigint[]) => Promise.all(all.map((tokenId) => isVerified(database, tokenId)))

    it('make no product verified, of chips that are registered and of those known by their taps alone', async () => {
      const [leaked, safe] = [await newBatch(), await newBatch()]
      const chips = [leaked, leaked, safe, leaked].map((batchId) => ({ uid: newUid(), batchId }))
      const all: bigint[] = []
      for (const [at, chip] of chips.entries()) {
        const hash = at === 3 ? formerTagHash : tagHash
        const tokenId = await product(chip.uid, hash)
        all.push(tokenId)
        if (at === 0)
          assert.equal((await tagStore(database).importTag({ ...chip, epoch: 0, tokenId })).outcome, 'registered')
        await tap(tokenId, { ...chip, hash })
      }
      assert.deepEqual(await areVerified(all), [true, true, true, true])
      await setStatus(leaked, 'revoked')
      await passes().takeBack()
      assert.deepEqual(await areVerified(all), [false, false, true, false])
      await assertSums(database)
    })

    it('do not come back by a rebuild of the index, or by a binding that it has later', async () => {
      const chip = { uid: newUid(), batchId: await newBatch() }
      const unindexed = { uid: newUid(), batchId: chip.batchId }
      const [tokenId, other] = [await product(chip.uid), await product(newUid())]
      const early = (tokens += 1n)
      await tap(tokenId, chip)
      await tap(early, unindexed)
      await tap(other, { ...chip, counter: 2 })
      await setStatus(chip.batchId, 'revoked')
      await passes().takeBack()
      await step(next(), bound(other, tagHash(chip.uid)).slice(0, 1))
      await step(next(), [...minted(early), ...bound(early, tagHash(unindexed.uid))])
      assert.deepEqual(await areVerified([tokenId, other, early]), [false, false, false])
      await rebuildIndex(database)
      step = await indexSteps(database)
      await step(next(), [...minted(tokenId), ...bound(tokenId, tagHash(chip.uid))])
      assert.equal(await isVerified(database, tokenId), false)
      await assertSums(database)
    })

    it('make no product verified after a second revocation, also where the clock of the database was set back since the first', async () => {
      const chip = { uid: newUid(), batchId: await newBatch() }
      const tokenId = await product(chip.uid)
      await setStatus(chip.batchId, 'revoked')
      await passes().takeBack()
      const [later] = await database.query<Record<'status' | 'taken', string>>(
        `select (status_at + interval '1 day')::text as status, (taps_taken_back_at + interval '1 day')::text as taken
         from tag_batch where id = $1`,
        [chip.batchId],
      )
      await database.query(
        `update tag_batch set status_at = $2::text::timestamptz, taps_taken_back_at = $3::text::timestamptz where id = $1`,
        [chip.batchId, later?.status, later?.taken],
      )
      await setStatus(chip.batchId, 'retired')
      await tap(tokenId, chip)
      assert.equal(await isVerified(database, tokenId), true)
      await setStatus(chip.batchId, 'revoked')
      await passes().takeBack()
      assert.equal(await isVerified(database, tokenId), false)
    })

    it('are followed by taps that count, after the revocation is lifted', async () => {
      const chip = { uid: newUid(), batchId: await newBatch() }
      const tokenId = await product(chip.uid)
      await tap(tokenId, chip)
      await setStatus(chip.batchId, 'revoked')
      await passes().takeBack()
      await setStatus(chip.batchId, 'retired')
      assert.equal(await isVerified(database, tokenId), false)
      await tap(tokenId, { ...chip, counter: 2 })
      await passes().settle()
      assert.equal(await isVerified(database, tokenId), true)
      await setStatus(chip.batchId, 'revoked')
      await passes().settle()
      assert.equal(await isVerified(database, tokenId), false, 'revoked once more')
      await assertSums(database)
    })

    it('do not take back those of a chip that was written anew', async () => {
      const [leaked, later] = [await newBatch(), await newBatch(1)]
      const chips = [true, false].map((isTapped) => ({ uid: newUid(), isTapped }))
      const all: bigint[] = []
      for (const { uid, isTapped } of chips) {
        const tokenId = await product(uid)
        all.push(tokenId)
        await tap(tokenId, { uid, batchId: leaked })
        const row = { uid, epoch: 1, batchId: later, baselineCounter: 1, tokenId }
        assert.equal((await tagStore(database).importTag(row)).outcome, 'registered')
        if (isTapped) await tap(tokenId, { uid, batchId: later, epoch: 1, counter: 2 })
      }
      await setStatus(leaked, 'revoked')
      await passes().takeBack()
      assert.deepEqual(await areVerified(all), [true, false])
    })

    it('are taken back of a chip whose former keys are of a batch that stands', async () => {
      const [former, leaked] = [await newBatch(), await newBatch(1)]
      const uid = newUid()
      const tokenId = await product(uid)
      const registry = tagStore(database)
      for (const row of [
        { uid, epoch: 0, batchId: former },
        { uid, epoch: 1, batchId: leaked, baselineCounter: 3, tokenId },
      ])
        assert.equal((await registry.importTag(row)).outcome, 'registered')
      await tap(tokenId, { uid, batchId: leaked, epoch: 1, counter: 4 })
      assert.deepEqual(await areVerified([tokenId]), [true])
      await setStatus(leaked, 'revoked')
      await passes().takeBack()
      assert.deepEqual(await areVerified([tokenId]), [false])
    })

    it('are taken back in parts; what was interrupted is done by the next pass', async () => {
      const batchId = await newBatch()
      const all: bigint[] = []
      for (let n = 0; n < 7; n += 1) {
        const uid = newUid()
        all.push(await product(uid))
        await tap(all.at(-1) as bigint, { uid, batchId })
      }
      await setStatus(batchId, 'revoked')
      const [parts, interrupted] = [[] as number[], new AbortController()]
      const takeBackParts = async (hashes: readonly Hex[]) => {
        parts.push(hashes.length)
        if (parts.length === 2) interrupted.abort()
        await takeBackTaps(database, hashes)
      }
      await passes({ rowsAtOnce: 3, tagsAtOnce: 2, takeBackTaps: takeBackParts }).takeBack(interrupted.signal)
      assert.ok((await areVerified(all)).includes(true))
      await passes({ rowsAtOnce: 3, tagsAtOnce: 2, takeBackTaps: takeBackParts }).settle()
      assert.ok(!(await areVerified(all)).includes(true))
      assert.ok(parts.every((count) => count <= 4))
      await assertSums(database)
    })

    it('that were under way are taken back by a second pass, after which a look is enough', async () => {
      const chip = { uid: newUid(), batchId: await newBatch() }
      const tokenId = await product(chip.uid)
      await setStatus(chip.batchId, 'revoked')
      await passes({ settledSeconds: 60 }).takeBack()
      // The ledger accepted it before the revocation, and the announcement came after the pass.
      await database.query('insert into tag (uid, epoch, batch_id, last_counter) values ($1, 0, $2, 1)', [
        chip.uid,
        chip.batchId,
      ])
      await database.query('insert into tap (uid, epoch, counter, picc) values ($1, 0, 1, $2)', [chip.uid, newPicc()])
      const announce = createTapAnnouncement(database)
      await announce({ uid: toHex(chip.uid), epoch: 0, tapCounter: 1, tokenId, tagHash: tagHash(chip.uid) })
      await passes({ settledSeconds: 60 }).settle()
      assert.equal(await isVerified(database, tokenId), true, 'it is too early')
      const [before] = await database.query<{ at: string }>(
        `select (status_at - interval '61 seconds')::text as at from tag_batch where id = $1`,
        [chip.batchId],
      )
      await database.query('update tag_batch set status_at = $2::text::timestamptz where id = $1', [
        chip.batchId,
        before?.at,
      ])
      await passes({ settledSeconds: 60 }).settle()
      assert.equal(await isVerified(database, tokenId), false)

      const asked: string[] = []
      const query: Database['query'] = (text, values) => {
        asked.push(text)
        return database.query(text, values)
      }
      await passes({ database: { ...database, query } }).settle()
      assert.equal(asked.length, 1)
    })

    it('are left alone while another process takes them back, and without the pepper of the tags', async () => {
      const chip = { uid: newUid(), batchId: await newBatch() }
      const tokenId = await product(chip.uid)
      await tap(tokenId, chip)
      await setStatus(chip.batchId, 'revoked')
      await passes({ tagHashes: [] }).settle()
      await passes({ database: { ...database, hold: async () => null } }).settle()
      assert.equal(await isVerified(database, tokenId), true)
      await passes().settle()
      assert.equal(await isVerified(database, tokenId), false)
    })

    it('cost nothing where a batch has none', async () => {
      const batchId = await newBatch()
      await setStatus(batchId, 'revoked')
      const parts: number[] = []
      await passes({ takeBackTaps: async (hashes) => void parts.push(hashes.length) }).settle()
      assert.deepEqual(parts, [])
    })
  })
