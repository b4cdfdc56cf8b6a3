/** The blocks that are kept, the sums of brands, and the arrival at the head. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Hex } from '@touchstone/verdict'
import { countLockWaits, testDatabases } from '../../test/support/database/databases.ts'
import { alice, insertAsset, insertTransfer, noMembers } from '../../test/support/index/rows.ts'
import { indexSteps, minted } from '../../test/support/index/steps.ts'
import { until } from '../../test/support/wait.ts'
import type { Database } from '../db/database.ts'
import { createReadReplica } from '../db/replica.ts'
import { eventKinds } from '../domain/registry-event.ts'
import { createLog } from '../lib/log.ts'
import { IndexIncompleteError, wholeIndex } from './contract.ts'
import { productStore } from './queries/products.ts'
import { transferStore } from './queries/transfers.ts'
import { indexStore, rebuildIndex } from './store.ts'

const hashOf = (number: bigint): Hex => `0x${number.toString(16).padStart(64, '0')}`

for (const { name, open, skip } of testDatabases()) {
  describe(`the blocks of the index in ${name}`, { skip }, () => {
    it('are thinned to the first of every 4096, in one go or as the chain grows', async () => {
      await using database = await open()
      const store = indexStore(database)
      const led = await store.lead(`0x${'11'.repeat(20)}`)
      assert.ok(led !== null)
      const { epoch } = led
      let { cursor } = led
      /** Writes blocks, and then tidies below one of them. */
      const grow = async (numbers: readonly bigint[], keepFrom: bigint) => {
        const blocks = numbers.map((number) => ({ number, hash: hashOf(number), time: 0n }))
        const to = { number: numbers.at(-1) ?? 0n, hash: hashOf(numbers.at(-1) ?? 0n), time: 0n }
        assert.ok(await store.apply({ epoch, from: cursor, rewindTo: null, events: [], blocks, to }))
        cursor = to
        assert.ok(await store.prune({ epoch, keepFrom }))
      }
      const run = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, n) => BigInt(from + n))
      const keptBelow = async (number: bigint) =>
        (await store.kept(number - 1n, 1_000)).map((block) => Number(block.number)).toReversed()

      await grow(run(0, 1_000), 300n)
      await grow(run(1_001, 1_002), 500n)
      await grow(run(1_003, 1_003), 700n)
      assert.deepEqual(await keptBelow(700n), [0])
      assert.deepEqual(await keptBelow(1_001n), [0, ...run(700, 1_000).map(Number)])

      // The ends of ranges of a backfill, and then single blocks again.
      await grow([5_000n, 6_000n, 9_000n, 9_001n, 20_000n], 21_000n)
      assert.deepEqual(await keptBelow(21_000n), [0, 5_000, 9_000, 20_000])
      await grow(run(20_001, 20_600), 20_300n)
      assert.deepEqual(await keptBelow(20_300n), [0, 5_000, 9_000, 20_000])
    })
  })

  describe(`the offers in ${name}`, { skip }, () => {
    it('do not expire by the clock of the database alone', async () => {
      await using database = await open()
      const clock = { at: Date.now() }
      const store = indexStore(database, { now: () => clock.at })
      const epoch = (await store.lead(`0x${'11'.repeat(20)}`))?.epoch ?? -1n
      const assetPk = await insertAsset(database, { tokenId: 1n })
      const expiresAt = new Date(clock.at - 3_600_000).toISOString()
      await insertTransfer(database, { id: '1-1', assetPk, expiresAt })
      const statusAt = async (at: number) => {
        clock.at = at
        assert.ok(await store.prune({ epoch, keepFrom: 0n }))
        return (await database.query<{ status: string }>('select status from transfer'))[0]?.status
      }
      const transfers = transferStore(database, { now: () => clock.at })
      /** Returns the status in every list, and checks that it selects and is counted. */
      const listedAt = async (at: number) => {
        clock.at = at
        const statuses = new Set<string>()
        for (const status of ['PENDING', 'FAILED'] as const) {
          const page = await transfers.page({ tokenId: null, status, after: null, backward: false, limit: 2 })
          assert.equal(await transfers.count({ tokenId: null, status }), page.length)
          if (page.length > 0) statuses.add(status)
          for (const row of [
            ...page,
            ...(await transfers.byIds(['1-1'])),
            ...((await transfers.newestOf([1n])).get(1n) ?? []),
          ])
            statuses.add(row.status)
        }
        return [...statuses]
      }
      const now = clock.at
      assert.deepEqual(await listedAt(now - 7_200_000), ['PENDING'], 'the database is two hours ahead')
      assert.deepEqual(await listedAt(now), ['FAILED'])
      assert.equal(await statusAt(now - 7_200_000), 'PENDING', 'the database is two hours ahead')
      assert.equal(await statusAt(now), 'FAILED')
      assert.deepEqual(await listedAt(now - 7_200_000), ['FAILED'])
    })

    it('do not expire in a step, on the way to the head, by the clock of this machine', async () => {
      await using database = await open()
      const step = await indexSteps(database, { now: () => 4_000_000_000_000 })
      await step(1, minted(1n))
      await database.query('update index_cursor set fed_epoch = epoch')
      const parties = {
        tokenId: '1',
        from: alice,
        to: alice,
        nonce: 1,
        expiry: 1_800_000_010n,
        data: hashOf(0n),
      } as const
      await step(2, [{ kind: eventKinds.TransferInitiated, ...parties }])
      await step(3, [{ kind: eventKinds.AssetResold, ...parties }])
      const rows = await database.query<{ status: string }>(
        `select payload->>'status' as status from outbox where kind = 'TRANSFER' order by seq`,
      )
      assert.deepEqual(
        rows.map(({ status }) => status),
        ['PENDING', 'CONFIRMED'],
      )
    })
  })

  describe(`the offers of a product that the index lacks, in ${name}`, { skip }, () => {
    it('are in no list, and come with its mint as if it had never lacked', async () => {
      await using database = await open()
      const step = await indexSteps(database)
      await database.query('update index_cursor set fed_epoch = epoch, fed_since = to_timestamp(0)')
      const parties = { tokenId: '1', from: alice, to: alice, nonce: 1, data: hashOf(0n) } as const
      const offered = { kind: eventKinds.TransferInitiated, ...parties, expiry: 1_800_000_100n }
      await step(2, [...minted(2n), offered])
      const transfers = transferStore(database, { now: () => 1_800_000_000_000 })
      const listed = async () => {
        const page = await transfers.page({ tokenId: null, status: null, after: null, backward: false, limit: 9 })
        assert.equal(await transfers.count({ tokenId: null, status: null }), page.length)
        assert.deepEqual(await transfers.byIds(page.map(({ id }) => id)), page)
        return page.map(({ id, status }) => `${id} ${status}`)
      }
      assert.deepEqual(await listed(), [])
      await step(3, [{ kind: eventKinds.AssetResold, ...parties }])
      assert.deepEqual(await listed(), [])
      const at = { blockNumber: 1n, blockHash: hashOf(1n), transactionHash: hashOf(11n), timestamp: 1_800_000_001n }
      const lost = minted(1n).map((event, logIndex) => ({ ...noMembers, ...event, ...at, logIndex }))
      const store = indexStore(database)
      const epoch = (await store.lead(alice))?.epoch ?? -1n
      assert.ok(await store.repair(epoch, { at: { number: 3n, hash: hashOf(3n) }, lost, forged: [], tokens: ['1'] }))
      assert.deepEqual(await listed(), ['1-1 CONFIRMED'])
      const rows = await database.query<{ status: string }>(
        `select payload->>'id' || ' ' || (payload->>'status') as status from outbox
         where kind = 'TRANSFER' and retracts is null and not retracted order by seq`,
      )
      assert.deepEqual(
        rows.map(({ status }) => status),
        ['1-1 PENDING', '1-1 CONFIRMED'],
      )
    })
  })

  describe(`the sums of brands in ${name}`, { skip }, () => {
    it('become one row of each brand, some brands in each turn', async () => {
      await using database = await open()
      let now = 0
      const store = indexStore(database, { now: () => (now += 60_000) })
      const led = await store.lead(`0x${'11'.repeat(20)}`)
      assert.ok(led !== null)
      await database.query(`insert into product_count (brand, verified, n)
        select 'M ' || n, false, 1 from generate_series(1, 19999) n`)
      await database.query(`insert into product_count (brand, verified, n)
        select b, v, 2 from unnest(array['A', null, 'Zoë']) b, unnest(array[true, false]) v, generate_series(1, 10)`)
      const rows = async () =>
        (
          await database.query<{ brand: string | null; rows: number; n: number }>(
            `select brand, count(*)::int as rows, sum(n)::int as n from product_count
             where brand is null or brand not like 'M %' group by 1 order by 1 nulls first`,
          )
        ).map((row) => [row.brand, row.rows, row.n])
      const turn = async () => assert.ok(await store.prune({ epoch: led.epoch, keepFrom: 0n }))
      await turn()
      assert.deepEqual(await rows(), [
        [null, 2, 40],
        ['A', 2, 40],
        ['Zoë', 20, 40],
      ])
      await turn()
      await database.query(
        `insert into product_count (brand, verified, n) select 'A', true, 1 from generate_series(1, 5)`,
      )
      await turn()
      assert.deepEqual(await rows(), [
        [null, 2, 40],
        ['A', 2, 45],
        ['Zoë', 2, 40],
      ])
      const [all] = await database.query<{ n: number }>('select sum(n)::int as n from product_count')
      assert.equal(all?.n, 19_999 + 125)
    })
  })

  describe(`the arrival at the head, in ${name}`, { skip }, () => {
    it('compares without a lock, and announces what differs once, in short transactions, however often it begins', async () => {
      await using database = await open()
      const step = await indexSteps(database)
      await step(1, Array.from({ length: 1_600 }, (_, n) => minted(BigInt(n + 1))).flat())
      await database.query(`insert into registration (idempotency_key, request_hash, tag_id, metadata_hash, token_id)
        select 'key ' || n, sha256(''), 'tag ' || n, sha256(''), n from generate_series(1599, 1602) n`)

      /** Leads and arrives. Returns the statements of its transactions; `before` is called before each of them, with its number. */
      const arrive = async (before: (transaction: number) => unknown = () => {}) => {
        const led = await indexStore(database).lead(alice)
        let begun = 0
        const statements: string[] = []
        const transaction: Database['transaction'] = async (work) => {
          await before((begun += 1))
          return database.transaction((sql) =>
            work({
              query(text, values) {
                statements.push(text)
                return sql.query(text, values)
              },
            }),
          )
        }
        const arrived = await indexStore({ ...database, transaction }).arrive(led?.epoch ?? 0n, () => false)
        return { arrived, statements }
      }
      const announced = async () => {
        const [written] = await database.query<{
          n: number
        }>(`select sum(n)::int as n, sum(tokens)::int as tokens, count(*)::int as transactions
          from (select count(*) as n, count(distinct token_id) as tokens from outbox group by xmin::text) written`)
        return written
      }

      const failure = new Error('The connection is lost.')
      const failing = arrive((transaction) => (transaction === 4 ? Promise.reject(failure) : undefined))
      await assert.rejects(failing, failure)
      assert.deepEqual(await announced(), { n: 1_000, tokens: 500, transactions: 1 })
      const superseded = arrive((transaction) => (transaction === 3 ? indexStore(database).lead(alice) : undefined))
      assert.equal((await superseded).arrived, false)
      assert.deepEqual(await announced(), { n: 2_000, tokens: 1_000, transactions: 2 })
      assert.equal((await arrive()).arrived, true)
      assert.deepEqual(await announced(), { n: 3_200, tokens: 1_600, transactions: 4 })
      assert.deepEqual(
        await database.query('select token_id::int as id from registration where token_id is not null order by 1'),
        [{ id: 1_599 }, { id: 1_600 }],
      )

      await database.query('update index_cursor set fed_epoch = null')
      const { arrived, statements } = await arrive()
      assert.equal(arrived, true)
      assert.doesNotMatch(statements.join('\n'), /from (history|registration|outbox|asset)/)
      assert.equal((await announced())?.n, 3_200)
    })
  })

  describe(`reads of the whole index in ${name}`, { skip }, () => {
    it('wait for the arrival at the head, and say that a product is none only of an index that was whole throughout', async () => {
      await using database = await open()
      let onRead: () => Promise<unknown> = async () => {}
      let afterRead: (rows: unknown) => Promise<unknown> = async () => {}
      const query: Database['query'] = async (text, values) => {
        const isRead = /from asset/.test(text)
        if (isRead) await onRead()
        const rows = await database.query(text, values)
        if (isRead) await afterRead(rows)
        return rows as never
      }
      const products = productStore(wholeIndex({ ...database, query }, { waitMs: 0 }))
      const ids = async () => (await products.byTokens([1n, 2n])).map(({ tokenId }) => tokenId)
      const lead = async () => (await indexStore(database).lead(alice))?.epoch ?? 0n
      const fill = async (events = minted(1n)) => {
        const step = await indexSteps(database)
        await step(1, events)
      }
      const arrive = async () => assert.ok(await indexStore(database).arrive(await lead(), () => false))

      await assert.rejects(ids(), IndexIncompleteError, 'an index without a leader')
      await lead()
      await assert.rejects(ids(), IndexIncompleteError, 'an index that was never filled')
      await fill([])
      await assert.rejects(ids(), IndexIncompleteError, 'its first backfill')
      await arrive()
      assert.deepEqual(await ids(), [], 'a chain without products')
      await lead()
      assert.deepEqual(await ids(), [], 'under another leader')

      await rebuildIndex(database)
      await fill()
      await assert.rejects(ids(), IndexIncompleteError, 'a rebuild')
      await arrive()
      assert.deepEqual(await ids(), [1n])

      onRead = () => rebuildIndex(database)
      await assert.rejects(ids(), IndexIncompleteError, 'a rebuild that begins during the read')
      onRead = async () => {}
      await fill()
      await arrive()
      assert.deepEqual(await ids(), [1n])
      let emptied: unknown
      afterRead = async (rows) => {
        afterRead = async () => {}
        emptied = rows
        await fill()
        await arrive()
      }
      onRead = async () => {
        onRead = async () => {}
        await rebuildIndex(database)
      }
      assert.deepEqual([await ids(), emptied], [[1n], []], 'a rebuild that begins and ends during the read')
    })

    // A cluster has no replica.
    if (name !== 'Citus')
      it('are of one database from look to look, where a replica that is behind a rebuild fails', async () => {
        await using database = await open()
        const step = await indexSteps(database)
        await step(1, minted(1n))
        const led = await indexStore(database).lead(alice)
        assert.ok(await indexStore(database).arrive(led?.epoch ?? 0n, () => false))
        let former: unknown[] = []
        const query: Database['query'] = async (text, values) => {
          if (/from asset/.test(text)) throw new Error('canceling statement due to conflict with recovery')
          const rows = await database.query(text, values)
          return (/fed_epoch/.test(text) ? (former = former.length === 0 ? rows : former) : rows) as never
        }
        const replica = { ...database, query, close: async () => {} }
        const lists = createReadReplica({ primary: database, open: async () => replica, log: createLog(() => {}) })
        lists.start()
        await until(() => lists.stats().up)
        const products = productStore(lists.over((from) => wholeIndex(from, { waitMs: 0 })))
        assert.equal((await products.byTokens([1n])).length, 1)
        await rebuildIndex(database)
        await assert.rejects(products.byTokens([1n]), IndexIncompleteError)
        await lists.close()
      })

    it('wait a little for an arrival that is due', async () => {
      await using database = await open()
      const step = await indexSteps(database)
      await step(1, minted(1n))
      const asked = Promise.withResolvers<void>()
      const query: Database['query'] = async (text, values) => {
        asked.resolve()
        return database.query(text, values)
      }
      const products = productStore(wholeIndex({ ...database, query }, { waitMs: 60_000 }))
      const found = products.byTokens([1n])
      await asked.promise
      const led = await indexStore(database).lead(alice)
      assert.ok(await indexStore(database).arrive(led?.epoch ?? 0n, () => false))
      assert.equal((await found).length, 1)
    })
  })

  describe(`events that the index lacked in ${name}`, { skip }, () => {
    it('are announced by a repair before the later ones of their product, which come again', async () => {
      await using database = await open()
      const step = await indexSteps(database)
      await database.query('update index_cursor set fed_epoch = epoch, fed_since = to_timestamp(0)')
      await database.query('update outbox_trim set created_at = to_timestamp(0)')
      const kind = eventKinds.StateChanged
      await step(1, [...minted(7n), ...minted(8n)])
      await step(3, [
        { kind, tokenId: '7', fromState: 2, toState: 3 },
        { kind, tokenId: '8', fromState: 2, toState: 3 },
      ])
      const store = indexStore(database)
      const epoch = (await store.lead(alice))?.epoch ?? -1n
      const at = { blockNumber: 2n, logIndex: 0, blockHash: hashOf(2n), transactionHash: hashOf(12n) }
      const lost = [{ ...noMembers, ...at, kind, tokenId: '7', fromState: 1, toState: 2, timestamp: 1_800_000_002n }]
      assert.ok(await store.repair(epoch, { at: { number: 3n, hash: hashOf(3n) }, lost, forged: [], tokens: ['7'] }))
      const rows = await database.query<{ token: string; back: boolean; state: string }>(
        `select token_id::text as token, retracts is not null as back, payload->'cause'->>'toState' as state
         from outbox where kind = 'STATE_CHANGED' order by seq`,
      )
      assert.deepEqual(
        rows.map(({ token, back, state }) => `${token} ${back ? 'not ' : ''}${state}`),
        ['7 1', '8 1', '7 3', '8 3', '7 not 3', '7 2', '7 3'],
      )
    })
  })

  describe(`a rebuild in ${name}`, { skip }, () => {
    it('is repeated where PostgreSQL ends it because of a deadlock with a reader', async () => {
      await using database = await open()
      if (database.dialect !== 'postgres') return // the embedded one has no second transaction; a cluster ends another one
      await (
        await indexSteps(database)
      )(1, minted(1n))
      let rebuilding: Promise<void> | undefined
      await database.transaction(async (reader) => {
        await reader.query(`set local deadlock_timeout = '10min'`) // the rebuild looks for it first
        await reader.query('select from asset')
        rebuilding = rebuildIndex(database)
        rebuilding.catch(() => {})
        await until(async () => (await countLockWaits(database)) === 1)
        await reader.query('select from index_block')
      })
      await rebuilding
      assert.deepEqual(await database.query('select from asset'), [])
    })
  })
}
