/** Every list of GraphQL is read through its index: the plans of PostgreSQL over 100,000 products and as many transfers. */
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { CostError } from '../../src/db/cost.ts'
import { hexToBytes } from '../../src/db/columns.ts'
import type { Database, Sql } from '../../src/db/database.ts'
import { scopedStores } from '../../src/graphql/access/scoped-stores.ts'
import { indexStores } from '../../src/graphql/stores.ts'
import { namesStatement, type ProductCondition } from '../../src/index/queries/condition.ts'
import { type ProductPage, productPageStatement, productStore } from '../../src/index/queries/products.ts'
import { changesStatement, historiesStatement, mintersStatement, pagesStatement } from '../../src/index/history.ts'
import { pastStore } from '../../src/index/queries/past.ts'
import { tagsStatement, tapLists, tapPageStatement, tapQueries, type TapFilter } from '../../src/tap/log/queries.ts'
import { newestTransfersStatement, transferPageStatement, transferStore } from '../../src/index/queries/transfers.ts'
import { announcedTokens, outboxStore, trimStatement, unannouncedTokens } from '../../src/index/outbox.ts'
import { withoutTextStatement } from '../../src/index/assets/texts.ts'
import { compactBrandsStatement } from '../../src/index/store.ts'
import { dueStatement } from '../../src/index/transfers.ts'
import { pruneTapsStatement } from '../../src/tap/replay-ledger.ts'
import { pruneWindowsStatement } from '../../src/http/rate-limit/postgres.ts'
import { newestListStatement } from '../../src/passport/signing/status-store.ts'
import { testDatabases } from '../support/database/databases.ts'
import { fill, fillTaps, tagOf } from '../support/index/many.ts'

const [, postgres] = testDatabases()

const serviceFolder = join(import.meta.dirname, '../..')

/** The parts of a plan that are checked here. */
type Plan = {
  'Node Type': string
  'Index Name'?: string
  'Actual Rows': number
  'Rows Removed by Filter'?: number
  'Actual Loops': number
  Plans?: Plan[]
}

describe('a comparison with the clock', () => {
  it('is by statement_timestamp(): no index serves one with clock_timestamp(), which is another in each row', () => {
    const compared = globSync('src/**/!(*.test).ts', { cwd: serviceFolder }).flatMap((file) =>
      (readFileSync(join(serviceFolder, file), 'utf8').match(/.*[<>]=?\s*(?:\w+\()?clock_timestamp\(\).*/g) ?? []).map(
        (line) => `${file}: ${line.trim()}`,
      ),
    )
    assert.deepEqual(compared, [])
  })
})

describe('plans over 100,000 products', { skip: postgres?.skip ?? true }, () => {
  let database: Database
  before(async () => {
    database = (await postgres?.open()) as Database
    for (let from = 1; from <= 100_000; from += 5_000) await fill(database, from, from + 4_999)
    await database.exec('analyze')
  })
  after(() => database.close())

  async function planOf({ text, values }: { text: string; values: readonly unknown[] }): Promise<Plan[]> {
    const [row] = await database.query<{ 'QUERY PLAN': { Plan: Plan }[] }>(
      `explain (analyze, format json) ${text}`,
      values,
    )
    const plan = row?.['QUERY PLAN'][0]?.Plan
    assert.ok(plan)
    const flat = (one: Plan): Plan[] => [one, ...(one.Plans ?? []).flatMap(flat)]
    return flat(plan)
  }
  /** Through this index, without reading a table from end to end, and no more rows than `most` at any step. */
  async function assertIndexed(statement: { text: string; values: readonly unknown[] }, index: string, most: number) {
    const plan = await planOf(statement)
    const summary = JSON.stringify(plan.map((one) => [one['Node Type'], one['Index Name'], one['Actual Rows']]))
    assert.ok(
      plan.some((one) => one['Index Name'] === index),
      `${index} in ${summary}`,
    )
    assert.ok(
      plan.every((one) => one['Node Type'] !== 'Seq Scan' || one['Actual Rows'] <= 1),
      summary,
    )
    for (const one of plan) assert.ok(one['Actual Rows'] * one['Actual Loops'] <= most, summary)
  }
  const page = (condition: ProductCondition, rest: Partial<ProductPage> = {}) =>
    productPageStatement({ condition, by: 'created', descending: true, after: null, limit: 21, ...rest })
  const all: ProductCondition = { kind: 'and', of: [] }
  const middle = ['2026-01-01T13:53:20.000000Z', '50000'] as const

  it('products, newest first, at any depth and in both directions', async () => {
    await assertIndexed(page(all), 'asset_created', 21)
    await assertIndexed(page(all, { after: middle }), 'asset_created', 21)
    await assertIndexed(page(all, { after: middle, descending: false }), 'asset_created', 21)
    await assertIndexed(
      page(all, { by: 'updated', after: ['2026-02-28T10:00:00.000000Z', '50000'] }),
      'asset_updated',
      21,
    )
  })

  it('products by brand, verified, both, and owner', async () => {
    const brand: ProductCondition = { kind: 'brand', value: 'Brand 7' }
    await assertIndexed(page(brand), 'asset_brand', 21)
    await assertIndexed(page(brand, { after: middle }), 'asset_brand', 21)
    await assertIndexed(page({ kind: 'verified', value: true }, { after: middle }), 'asset_verified', 21)
    await assertIndexed(page({ kind: 'verified', value: false }, { descending: false }), 'asset_unverified', 21)
    const both = (value: boolean): ProductCondition => ({ kind: 'and', of: [brand, { kind: 'verified', value }] })
    await assertIndexed(page(both(false), { after: middle }), 'asset_brand_unverified', 21)
    await assertIndexed(page(both(true)), 'asset_brand_verified', 0)
    await assertIndexed(page({ kind: 'owner', value: `0x${'7'.padStart(40, '0')}` }), 'asset_owner', 21)
  })

  it('products by tag, part of the name, and time', async () => {
    await assertIndexed(page({ kind: 'tagId', value: 'TAG-777' }), 'asset_tag_id', 1)
    await assertIndexed({ text: namesStatement, values: ['%mber 99999%', 201] }, 'product_name_part', 300)
    await assertIndexed(page({ kind: 'names', value: ['Watch number 99999', 'Watch number 7'] }), 'asset_named', 21)
    await assertIndexed(page({ kind: 'createdBefore', value: '2026-01-01T02:00:00.000000Z' }), 'asset_created', 21)
  })

  it('products without the text of their metadata, among all of a model', async () => {
    const hash = hexToBytes(tagOf(1))
    await database.query('update asset set metadata_hash = $1 where token_id <= 20000', [hash])
    await database.exec('analyze asset')
    await assertIndexed({ text: withoutTextStatement, values: [hash, 1] }, 'asset_without_text', 0)
  })

  it('products by item, state, report, tag, ids and name', async () => {
    await assertIndexed(page({ kind: 'gtin', value: '09506000000007' }), 'asset_gtin', 21)
    await assertIndexed(page({ kind: 'serial', value: 'SN-7' }), 'asset_serial', 21)
    await assertIndexed(page({ kind: 'state', value: 5 }, { after: middle }), 'asset_state', 21)
    await assertIndexed(page({ kind: 'states', value: [2, 5, 6] }), 'asset_state', 42)
    await assertIndexed(page({ kind: 'flagged', value: true }), 'asset_flagged', 21)
    await assertIndexed(page({ kind: 'report', value: 2 }), 'asset_stolen', 21)
    await assertIndexed(page({ kind: 'tagged', value: false }), 'asset_untagged', 21)
    await assertIndexed(page({ kind: 'tokens', value: ['7', '9'] }), 'asset_token_id_key', 2)
    await assertIndexed(page(all, { by: 'name' }), 'asset_by_name', 21)
    await assertIndexed(
      page(all, { by: 'name', after: ['watch number 5', '7'], descending: false }),
      'asset_by_name',
      21,
    )
    await assertIndexed(
      page({ kind: 'updatedAfter', value: '2026-02-28T23:00:00.000000Z' }, { by: 'updated' }),
      'asset_updated',
      21,
    )
  })

  it('refuses a page that would read most of the table, with its cost', async () => {
    const products = productStore(database)
    const ask = (condition: ProductCondition, rest: Partial<ProductPage> = {}) =>
      products.page({ condition, by: 'created', descending: true, after: null, limit: 21, ...rest })
    const rare: ProductCondition = { kind: 'updatedBefore', value: '2026-02-27T20:15:00.000000Z' }
    assert.ok((await ask(rare, { by: 'updated' })).length > 0)
    const none: ProductCondition = {
      kind: 'and',
      of: [
        { kind: 'state', value: 3 },
        { kind: 'not', of: { kind: 'tokens', value: ['1'] } },
      ],
    }
    assert.equal((await ask(none)).length, 21, 'what is cheap passes')
    const never: ProductCondition = {
      kind: 'or',
      of: [
        { kind: 'serial', value: 'SN-7' },
        { kind: 'not', of: { kind: 'createdAfter', value: '2020-01-01T00:00:00.000000Z' } },
      ],
    }
    const isRefused = (error: unknown) => error instanceof CostError && error.cost > 2_000
    await assert.rejects(ask(never), isRefused)
    const block = { number: 99_990n, hash: `0x${'ef'.repeat(32)}`, time: 0n } as const
    await database.query('insert into index_block (number, hash) values ($1, $2)', [
      block.number,
      hexToBytes(block.hash),
    ])
    const askPast = (condition: ProductCondition) =>
      pastStore(database).page(block, { condition, by: 'created', descending: true, after: null, limit: 21 })
    assert.equal((await askPast(none))?.length, 21, 'what is cheap passes at an earlier block too')
    await assert.rejects(askPast(never), isRefused)
  })

  it('asks for the cost of a list without an index once, not for each of its pages, and gives each 1.5 s', async () => {
    let asked = 0
    const limits: unknown[] = []
    const query: Database['query'] = (text, values) => {
      if (text.startsWith('explain')) asked += 1
      return database.query(text, values)
    }
    const transaction: Database['transaction'] = (work) =>
      database.transaction(async (sql) => {
        const result = await work(sql)
        limits.push(...(await sql.query("select current_setting('statement_timeout') as most")))
        return result
      })
    const products = productStore({ ...database, query, transaction })
    const ask = (condition: ProductCondition, rest: Partial<ProductPage> = {}) =>
      products.page({ condition, by: 'created', descending: true, after: null, limit: 21, ...rest })
    const named = (value: string): ProductCondition => ({ kind: 'nameContains', value })
    const [first] = await ask(named('watch'))
    assert.equal(asked, 1)
    const [second] = await ask(named('watch'), { after: middle })
    assert.notEqual(second?.pk, first?.pk)
    await ask(named('watch'))
    assert.equal(asked, 1)
    await ask(named('number'))
    await ask(named('watch'), { descending: false })
    assert.equal(asked, 3)
    // Indexes have both values of the first and one of the second. The brands have few products.
    const brands: ProductCondition = {
      kind: 'and',
      of: ['7', '8'].map((n) => ({ kind: 'brand', value: `Brand ${n}` })),
    }
    for (const value of [true, false]) {
      await ask({ kind: 'verified', value })
      await ask({ kind: 'flagged', value })
    }
    assert.deepEqual(await ask(brands), [])
    assert.equal(asked, 4)
    const taps = tapQueries({ ...database, query, transaction })
    await taps.page({ country: 'JP' }, { after: null, backward: false, limit: 21 })
    assert.equal(asked, 4)
    await taps.page({ country: 'JP', outcome: 'FRESH' }, { after: null, backward: false, limit: 21 })
    assert.equal(asked, 5)
    assert.deepEqual(
      limits,
      Array.from({ length: 8 }, () => ({ most: '1500ms' })),
    )
  })

  it('old events of the feed, and offers that have ended, where there are none', async () => {
    await assertIndexed(
      { text: trimStatement, values: [30, 10_000, Math.floor(Date.now() / 1_000)] },
      'outbox_created',
      1,
    )
    await assertIndexed({ text: dueStatement, values: [Math.floor(Date.now() / 1_000)] }, 'transfer_due', 20)
  })

  it('old taps, also where older ones were deleted and their space is used again', async () => {
    await fillTaps(database, "now() - interval '100 days'")
    await database.query("delete from tap where first_seen < now() - interval '90 days'")
    await database.exec('vacuum analyze tap')
    await fillTaps(database, 'now()')
    await database.exec('vacuum analyze tap')
    await assertIndexed(
      { text: pruneTapsStatement, values: [new Date(Date.now() - 864e5).toISOString(), 1_000] },
      'tap_first_seen_at',
      1,
    )
  })

  it('the newest status list, however many there are before it', async () => {
    await database.query(`insert into status_place (token_id, list, entry)
      select n, 1 + n / 4999, n % 4999 from generate_series(0, 100000) n`)
    await database.exec('analyze status_place')
    await assertIndexed({ text: newestListStatement, values: [] }, 'status_place_list_entry_key', 100)
  })

  it('windows of limits that have ended, among those under way', async () => {
    await database.query(`insert into rate_window (key, used, granted, allowed, length_ms, ends_at)
      select 'read ' || n, 1, 1, 60, 60000, (extract(epoch from now()) * 1000)::bigint + case when n <= 5 then -1000 else 600000 end
      from generate_series(1, 100000) n`)
    await database.exec('analyze rate_window')
    await assertIndexed({ text: pruneWindowsStatement, values: [1_000] }, 'rate_window_ends_at', 5)
  })

  it('some of the brands whose sums are compacted', async () => {
    await database.query(`insert into product_count (brand, verified, n)
      select 'Other ' || n, false, 0 from generate_series(1, 100000) n`)
    await database.exec('analyze product_count')
    await assertIndexed({ text: compactBrandsStatement, values: ['Brand 7', 20_000] }, 'product_count_key', 20_000)
  })

  it('a part of the feed, however few of its events are asked for', async () => {
    let asked: { text: string; values: readonly unknown[] }[] = []
    const query: Database['query'] = (text, values = []) => {
      asked.push({ text, values })
      return database.query(text, values)
    }
    const outbox = outboxStore({ ...database, query })
    const upTo = (await outbox.newest()).seq
    const cases = [
      { brands: ['Brand 500'] },
      { brands: ['Brand 7'], kinds: ['TRANSFER' as const] },
      { topic: 'transfer' as const, tokenId: 7n },
      { kinds: ['OWNER_CHANGED' as const], after: upTo - 20_000n },
      { kinds: ['OWNER_CHANGED', 'TRANSFER'] as const, after: 0n },
      { tokenId: 7n },
    ]
    for (const { after = 0n, ...filter } of cases) {
      asked = []
      assert.ok(await outbox.range({ ...filter, after, upTo, limit: 101 }))
      for (const statement of asked) {
        const rows = (await planOf(statement)).map(
          (one) => (one['Actual Rows'] + (one['Rows Removed by Filter'] ?? 0)) * one['Actual Loops'],
        )
        assert.ok(Math.max(...rows) <= 10_000, `${rows.join(', ')} rows: ${statement.text}`)
      }
    }
  })

  it('products of which the feed has events of the chain, in pages, without the taps', async () => {
    const asked: { text: string; values: readonly unknown[] }[] = []
    const query: Sql['query'] = (text, values = []) => {
      asked.push({ text, values })
      return database.query(text, values)
    }
    const tokens: string[] = []
    for await (const page of announcedTokens({ query })) tokens.push(...page)
    assert.deepEqual([tokens.length, new Set(tokens).size], [5_000, 5_000])
    assert.ok(asked.length > 1)
    for (const statement of asked) await assertIndexed(statement, 'outbox_kind', 1_000)
    asked.length = 0
    assert.deepEqual(await unannouncedTokens({ query }, ['7', '10']), ['7'])
    for (const statement of asked) await assertIndexed(statement, 'outbox_token', 2)
  })

  it('transfers and taps of a brand with few products, although those of others would cost too much', async () => {
    const own = scopedStores(indexStores(database), ['Brand 7'])
    const newest = { after: null, backward: false, limit: 21 }
    const all = { tokenId: null, status: null, ...newest }
    const tokens = Array.from({ length: 21 }, (_, place) => 99_807n - 200n * BigInt(place))
    assert.deepEqual(
      (await own.transfers.page(all)).map(({ tokenId }) => tokenId),
      tokens,
    )
    for (const taps of [await own.taps.page({}, newest), await own.taps.anomalies({}, newest)])
      assert.deepEqual(
        taps.map(({ tagHash }) => BigInt(tagHash ?? 0)),
        tokens,
      )
    assert.deepEqual(await own.transfers.page({ ...all, status: 'FAILED' }), [])
    assert.deepEqual(await own.taps.page({ outcome: 'REPLAYED' }, newest), [])
  })

  it('transfers of a party', async () => {
    const party = `0x${'7'.padStart(40, '0')}` as const
    const page = { tokenId: null, status: null, party, after: null, backward: false, limit: 21 }
    for (const index of ['transfer_from', 'transfer_to']) await assertIndexed(transferPageStatement(page), index, 42)
  })

  it('transfers of all, of one product, of each status', async () => {
    const of = (
      tokenId: bigint | null,
      status: 'PENDING' | 'CONFIRMED' | 'FAILED' | null,
      after: typeof middle | null = null,
    ) => transferPageStatement({ tokenId, status, after, backward: false, limit: 21 })
    await assertIndexed(of(null, null), 'transfer_initiated', 42)
    await assertIndexed(of(null, null, middle), 'transfer_initiated', 42)
    await assertIndexed(of(null, 'CONFIRMED', middle), 'transfer_confirmed', 42)
    await assertIndexed(of(null, 'PENDING'), 'transfer_due', 1_000) // so few that sorting them costs less than their order
    await assertIndexed(of(null, 'FAILED'), 'transfer_failed', 42)
    await assertIndexed(of(7n, null), 'transfer_of_token', 2)
    await assertIndexed(of(7n, 'FAILED'), 'transfer_of_token', 2)
  })

  it('the transfers and the history of a page of products', async () => {
    const pks = Array.from({ length: 50 }, (_, index) => String(index + 1))
    await assertIndexed({ text: newestTransfersStatement(false), values: [pks] }, 'transfer_of_token', 100)
    const values = [pks, pks.map(() => '-1'), pks.map(() => '0'), pks.map(() => '21'), pks.map(() => '999999999')]
    await assertIndexed({ text: pagesStatement(false), values }, 'history_token', 300)
    const most = pks.map(() => '1001')
    await assertIndexed({ text: historiesStatement, values: [pks, most, most] }, 'history_token', 300)
    await assertIndexed({ text: changesStatement, values: ['7', 1_000, '999999999'] }, 'history_token', 10)
    await assertIndexed({ text: mintersStatement, values: [pks, [], '999999999'] }, 'history_token', 100)
  })

  it('taps and anomalies, newest first and by each filter, at any depth and in both directions', async () => {
    const tagHash = tagOf(777)
    const span = { after: '2026-01-01T02:00:00.000000Z', before: '2026-01-01T20:00:00.000000Z' }
    const cases: readonly [filter: TapFilter, taps: string | null, anomalies: string | null][] = [
      [{}, 'tap_log_time', 'tap_anomaly_time'],
      [{ tagHash }, 'tap_log_tag', 'tap_anomaly_tag'],
      [{ outcome: 'REPLAYED' }, 'tap_log_outcome', null],
      [{ country: 'PT' }, 'tap_log_country', null],
      [{ kind: 'MANY_REPLAYS' }, null, 'tap_anomaly_kind'],
    ]
    for (const [filter, taps, anomalies] of cases)
      for (const within of [filter, { ...filter, ...span }])
        for (const backward of [false, true])
          for (const after of within.tagHash ? [null] : [null, middle])
            for (const [list, index] of [
              [tapLists.taps, taps],
              [tapLists.anomalies, anomalies],
            ] as const)
              if (index !== null)
                await assertIndexed(tapPageStatement(list, within, { after, backward, limit: 21 }), index, 21)
    const questions = [1, 2, 3]
    const values = [
      questions,
      questions.map((n) => tagOf(n).slice(2)),
      [null, null, null],
      [null, null, null],
      [21, 21, 21],
    ]
    for (const backward of [false, true])
      await assertIndexed({ text: tagsStatement(backward), values }, 'tap_log_tag', 60)
  })

  it('taps by two filters, through the index of the narrower one', async () => {
    const newest = { after: null, backward: false, limit: 21 }
    const of = (filter: TapFilter) => tapPageStatement(tapLists.taps, filter, newest)
    await assertIndexed(of({ tagHash: tagOf(20), outcome: 'REPLAYED' }), 'tap_log_tag', 1)
    await assertIndexed(of({ outcome: 'COUNTERFEIT_SUSPECTED', country: 'FR' }), 'tap_log_outcome', 100)
  })

  it('sums equal counts', async () => {
    const products = productStore(database)
    assert.equal(await products.count(all), 100_000)
    assert.equal(await products.count({ kind: 'brand', value: 'Brand 7' }), 500)
    assert.equal(await products.count({ kind: 'state', value: 3 }), 25_000)
    assert.equal(await transferStore(database).count({ tokenId: null, status: 'PENDING' }), 980)
    assert.equal(await transferStore(database).count({ tokenId: null, status: 'FAILED' }), 120)
  })

  it('transfers that failed, among many open offers', async () => {
    await database.query(`insert into transfer (id, token_id, asset_pk, from_addr, to_addr, status, initiated_at, initiated_tx, expires_at)
      select token_id || '-2', token_id, asset_pk, from_addr, to_addr, 'PENDING', initiated_at, initiated_tx, '9999-01-01' from transfer limit 20000`)
    await database.exec('analyze transfer')
    const page = { tokenId: null, status: 'FAILED', after: null, backward: false, limit: 21 } as const
    await assertIndexed(transferPageStatement(page), 'transfer_due', 42)
  })
})
