/** The log of taps and its anomalies, on PGlite and on PostgreSQL. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, it } from 'node:test'
import { testDatabases } from '../../../test/support/database/databases.ts'
import { insertAsset } from '../../../test/support/index/rows.ts'
import { testBatch, testBatches, testTag } from '../../../test/support/tap/tags.ts'
import { useOpened } from '../../../test/support/opened.ts'
import { createLog } from '../../lib/log.ts'
import { toHex } from '../bytes.ts'
import { createKeyRing } from '../keys/batch.ts'
import { createReplayLedger, createTapPruning } from '../replay-ledger.ts'
import { createAuthenticate } from '../sun/authenticate.ts'
import { createTagHash } from '../tag-hash.ts'
import { createTapLog, type TapPresentation } from './recorder.ts'
import { tapQueries, type TapFilter } from './queries.ts'
import { createVerifyTap, type TapRequest } from '../verify-tap.ts'

const newTag = (): `0x${string}` => `0x${randomBytes(32).toString('hex')}`
const newest = { after: null, backward: false, limit: 100 }

for (const { name, open, skip } of testDatabases())
  describe(`the log of taps on ${name}`, { skip }, () => {
    const database = useOpened(open)

    const lines: string[] = []
    const log = createLog((line) => lines.push(line))
    /** Records in one process that ends. */
    async function record(...presentations: readonly (Partial<TapPresentation> & Pick<TapPresentation, 'tagHash'>)[]) {
      await using taps = createTapLog({ database, log })
      for (const given of presentations)
        taps.record({ counter: 1, jumpFrom: null, country: null, outcome: 'FRESH', ...given })
    }
    const tapsOf = (filter: TapFilter) => tapQueries(database).page(filter, newest)
    const anomaliesOf = (filter: TapFilter) => tapQueries(database).anomalies(filter, newest)

    it('holds a presentation once an hour for each counter, outcome and country, with its number', async () => {
      const tagHash = newTag()
      await record({ tagHash, country: 'FR' }, { tagHash, outcome: 'REPEATED' }, { tagHash, outcome: 'REPEATED' })
      await record({ tagHash, outcome: 'REPEATED' }, { tagHash, counter: 2 })
      const taps = await tapsOf({ tagHash })
      const seen = taps.map(({ counter, outcome, country, times }) =>
        JSON.stringify([counter, outcome, country, times]),
      )
      const inOneHour = new Set(taps.map(({ firstAt }) => firstAt.slice(0, 13))).size === 1
      if (inOneHour)
        assert.deepEqual(seen.toSorted(), ['[1,"FRESH","FR",1]', '[1,"REPEATED",null,3]', '[2,"FRESH",null,1]'])
      assert.equal(
        taps.reduce((sum, { times }) => sum + times, 0),
        5,
      )
      assert.ok(taps.every(({ firstAt, lastAt }) => firstAt <= lastAt))
    })

    it('records every outcome of a tap with the commitment of its tag, and none that is not consumed', async () => {
      const batch = testBatch()
      const keys = createKeyRing(await testBatches(batch))
      const tagHash = createTagHash({ scheme: 'hmac', pepper: new Uint8Array(32).fill(1) })
      const tag = await testTag(batch)
      {
        await using taps = createTapLog({ database, log })
        const ledger = createReplayLedger({ sql: database })
        const authenticate = createAuthenticate({ keys })
        const verifyTap = createVerifyTap({ keys, authenticate, ledger, tagHash, record: taps.record })
        const [first, second, third] = [tag.next(), tag.next(), tag.next()]
        const requests: TapRequest[] = [
          { ...second, consume: false },
          { ...second, country: 'DE' },
          second,
          first,
          { picc: third.picc, cmac: first.cmac },
          { picc: 'short', cmac: first.cmac },
        ]
        for (const request of requests) await verifyTap(request)
      }
      const seen = (await tapsOf({ tagHash: tagHash(tag.uid) })).map(({ counter, outcome, country }) =>
        [counter, outcome, country].join(' '),
      )
      assert.deepEqual(seen.toSorted(), ['1 REPLAYED ', '2 FRESH DE', '2 REPEATED '])
      const [forged] = await tapsOf({ outcome: 'COUNTERFEIT_SUSPECTED' })
      assert.deepEqual([forged?.tagHash, forged?.counter], [null, null])
      const stored = JSON.stringify(
        await database.query(
          'select to_jsonb(t)::text as row from tap_log t union all select to_jsonb(a)::text from tap_anomaly a',
        ),
      )
      assert.ok(stored.length > 100)
      assert.ok(!stored.toLowerCase().includes(toHex(tag.uid).toLowerCase()), 'no UID')
    })

    it('keeps the former commitment of a tag that the index knows by it', async () => {
      const [bound, stranger] = [newTag(), newTag()]
      await insertAsset(database, { tokenId: 601, tagHash: bound })
      const [first, second] = [newTag(), newTag()]
      await record({ tagHash: first, formerTagHash: bound }, { tagHash: second, formerTagHash: stranger })
      const lengths = await Promise.all(
        [bound, first, second, stranger].map(async (tagHash) => (await tapsOf({ tagHash })).length),
      )
      assert.deepEqual(lengths, [1, 0, 1, 0])
    })

    it('notices one tag in two countries, a jump of the counter, and many replays, once a day', async () => {
      const [tagHash, quiet] = [newTag(), newTag()]
      for (const country of ['FR', 'FR', 'JP', 'US']) {
        await record({ tagHash, country })
        await record({ tagHash: quiet, country: 'FR' })
      }
      await record({ tagHash, counter: 90, jumpFrom: 3 }, { tagHash, counter: 200, jumpFrom: 90 })
      await record({ tagHash, counter: 90, jumpFrom: 3 })
      for (let n = 0; n < 4; n += 1) await record({ tagHash: quiet, outcome: 'REPLAYED' })
      assert.deepEqual(await anomaliesOf({ tagHash: quiet }), [])
      await record(...Array.from({ length: 7 }, () => ({ tagHash, outcome: 'REPLAYED' as const })))
      const found = await anomaliesOf({ tagHash })
      const seen = found.map(({ kind, counter, lastCounter, countries, times }) =>
        JSON.stringify([kind, counter, lastCounter, countries, times]),
      )
      const expected = [
        ['COUNTER_JUMP', 200, 90, null, null],
        ['COUNTER_JUMP', 90, 3, null, null],
        ['MANY_REPLAYS', null, null, null, 7],
        ['TWO_PLACES', null, null, ['FR', 'JP', 'US'], null],
      ].map((one) => JSON.stringify(one))
      // At midnight a kind may begin anew.
      assert.deepEqual(
        [...new Set(seen)].toSorted().filter((one) => expected.includes(one)),
        expected,
      )
      const kinds = await anomaliesOf({ tagHash, kind: 'TWO_PLACES' })
      assert.ok(kinds.length >= 1 && kinds.every(({ kind }) => kind === 'TWO_PLACES'))
    })

    it('forgets both after the days of retention', async () => {
      const [old, young] = [newTag(), newTag()]
      const many = Array.from({ length: 6 }, () => ({ tagHash: old, outcome: 'REPLAYED' as const }))
      await record(...many)
      await record({ tagHash: young })
      const digits = old.slice(2)
      for (const statement of [
        `update tap_log set first_at = first_at - interval '91 days' where tag_hash = decode($1, 'hex')`,
        `update tap_anomaly set found_at = found_at - interval '91 days' where tag_hash = decode($1, 'hex')`,
      ])
        await database.query(statement, [digits])
      assert.deepEqual([(await tapsOf({ tagHash: old })).length, (await anomaliesOf({ tagHash: old })).length], [1, 1])
      const yearAgo = Date.now() - 366 * 86_400_000
      await createTapPruning({ sql: database, days: 90, now: () => yearAgo })()
      assert.equal((await tapsOf({ tagHash: old })).length, 1, 'the clock of the database alone is a year ahead')
      await createTapPruning({ sql: database, days: 90 })()
      assert.deepEqual([await tapsOf({ tagHash: old }), await anomaliesOf({ tagHash: old })], [[], []])
      assert.equal((await tapsOf({ tagHash: young })).length, 1)
    })

    it('never fails: what a database cannot take is in the log', async () => {
      lines.length = 0
      const away = { transaction: () => Promise.reject(new Error('away')) }
      {
        await using taps = createTapLog({ database: away, log })
        taps.record({ tagHash: newTag(), counter: 1, jumpFrom: null, country: null, outcome: 'FRESH' })
      }
      assert.match(lines.join(), /taps not recorded.*away/)
    })

    it('drops taps that come faster than the database takes them, and says how many', async () => {
      lines.length = 0
      const answers = Promise.withResolvers<void>()
      const slow = { transaction: () => answers.promise as Promise<never> }
      {
        await using taps = createTapLog({ database: slow, log })
        for (let count = 0; count < 10_003; count += 1)
          taps.record({ tagHash: null, counter: null, jumpFrom: null, country: null, outcome: 'COUNTERFEIT_SUSPECTED' })
        answers.resolve()
      }
      assert.match(lines.join(), /taps not recorded.*"count":3,.*too slow/)
      assert.equal(lines.length, 1)
    })

    it('is written by several processes at once', async () => {
      const tags = Array.from({ length: 20 }, newTag)
      const shuffled = () => tags.toSorted(() => Math.random() - 0.5).map((tagHash) => ({ tagHash, country: 'IT' }))
      await Promise.all(Array.from({ length: 6 }, () => record(...shuffled())))
      for (const tagHash of tags) {
        const taps = await tapsOf({ tagHash })
        assert.equal(
          taps.reduce((sum, { times }) => sum + times, 0),
          6,
        )
      }
    })
  })
