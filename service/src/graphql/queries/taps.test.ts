/** Taps and their anomalies over GraphQL: scope, filters, pages, and what never appears. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { testDatabases } from '../../../test/support/database/databases.ts'
import { startGraphql, watched } from '../../../test/support/graphql/host.ts'
import { hashOf, insertAsset } from '../../../test/support/index/rows.ts'
import type { Database } from '../../db/database.ts'
import { createLog } from '../../lib/log.ts'
import { createTapLog, type TapPresentation } from '../../tap/log/recorder.ts'

type Node = {
  id: string
  counter: number | null
  outcome: string
  country: string | null
  product: { id: string } | null
}
type Page = {
  edges: { node: Node; cursor: string }[]
  pageInfo: { hasNextPage: boolean; hasPreviousPage: boolean; endCursor: string | null; startCursor: string | null }
  totalCount: number
}
const page = `edges { node { id time lastTime times counter outcome country product { id } } cursor }
  pageInfo { hasNextPage hasPreviousPage startCursor endCursor } totalCount`
const tapsQuery = `query ($filter: TapFilter, $first: Int, $after: String, $last: Int, $before: String) {
  taps(filter: $filter, first: $first, after: $after, last: $last, before: $before) { ${page} } }`

for (const { name, open, skip } of testDatabases())
  describe(`taps in GraphQL on ${name}`, { skip }, () => {
    let database: Database
    let graphql: Awaited<ReturnType<typeof startGraphql>>
    let statements: string[]
    let key: string
    const tagOf = (n: number) => hashOf(n) as `0x${string}`
    before(async () => {
      database = await open()
      for (let n = 1; n <= 3; n += 1)
        await insertAsset(database, { tokenId: n, name: `Watch ${n}`, ...(n < 3 && { tagHash: hashOf(n) }) })
      const log = createLog(() => {})
      const add = async (presentation: Partial<TapPresentation>) => {
        await using taps = createTapLog({ database, log })
        taps.record({ tagHash: tagOf(1), counter: 1, jumpFrom: null, country: null, outcome: 'FRESH', ...presentation })
      }
      for (let counter = 1; counter <= 5; counter += 1) await add({ counter, country: counter % 2 === 0 ? 'FR' : 'JP' })
      await add({ counter: 2, outcome: 'REPLAYED' })
      await add({ tagHash: tagOf(2), counter: 60, jumpFrom: 2 })
      await add({ tagHash: tagOf(9), counter: 1 })
      await add({ tagHash: null, counter: null, outcome: 'COUNTERFEIT_SUSPECTED' })
      const watching = watched(database)
      statements = watching.statements
      graphql = await startGraphql(watching.database)
      key = (await graphql.newKey(['read', 'taps'])).text
    })
    after(async () => {
      await graphql.end()
      await database.close()
    })

    async function taps(variables: Record<string, unknown>): Promise<Page> {
      const { data, errors } = await graphql.ask(tapsQuery, variables, key)
      assert.deepEqual(errors, [])
      return data?.['taps'] as unknown as Page
    }
    const counters = ({ edges }: Page) => edges.map(({ node }) => node.counter)

    it('need a scope of their own', async () => {
      const others = (await graphql.newKey(['read', 'write'])).text
      for (const query of [
        '{ taps { totalCount } }',
        '{ tapAnomalies { totalCount } }',
        '{ product(id: "1") { taps { totalCount } } }',
      ]) {
        const { errors } = await graphql.ask(query, undefined, others)
        assert.deepEqual(
          errors.map(({ extensions }) => extensions['code']),
          ['FORBIDDEN'],
        )
        assert.match(errors[0]?.message ?? '', /scope read:taps/)
      }
    })

    it('come the newest first, with their products', async () => {
      const all = await taps({})
      assert.equal(all.totalCount, 9)
      assert.deepEqual(
        all.edges.map(({ node }) => [node.counter, node.outcome, node.product?.id ?? null]).slice(0, 4),
        [
          [null, 'COUNTERFEIT_SUSPECTED', null],
          [1, 'FRESH', null],
          [60, 'FRESH', '2'],
          [2, 'REPLAYED', '1'],
        ],
      )
    })

    it('are narrowed by product, outcome, country and time', async () => {
      assert.deepEqual(counters(await taps({ filter: { productId: '1', country: 'FR' } })), [4, 2])
      assert.deepEqual(counters(await taps({ filter: { outcome: 'REPLAYED' } })), [2])
      assert.equal((await taps({ filter: { productId: '1' } })).totalCount, 6)
      for (const productId of ['3', '77']) assert.equal((await taps({ filter: { productId } })).totalCount, 0)
      assert.equal((await taps({ filter: { timeAfter: '2030-01-01T00:00:00Z' } })).edges.length, 0)
      assert.equal(
        (await taps({ filter: { timeBefore: '2090-01-01T00:00:00Z', timeAfter: '2020-01-01T00:00:00Z' } })).totalCount,
        9,
      )
      const { errors } = await graphql.ask(tapsQuery, { filter: { country: 'France' } }, key)
      assert.equal(errors[0]?.extensions['code'], 'BAD_USER_INPUT')
    })

    it('page forward and backward', async () => {
      for (const filter of [{}, { productId: '1' }, { outcome: 'FRESH' }]) {
        const all = (await taps({ filter, first: 100 })).edges.map(({ node }) => node.id)
        const forward: string[] = []
        for (let after: string | null = null, more = true; more;) {
          const { edges, pageInfo } = await taps({ filter, first: 2, after })
          forward.push(...edges.map(({ node }) => node.id))
          ;[after, more] = [pageInfo.endCursor, pageInfo.hasNextPage]
        }
        assert.deepEqual(forward, all)
        const backward: string[] = []
        for (let before: string | null = null, more = true; more;) {
          const { edges, pageInfo } = await taps({ filter, last: 2, before })
          backward.unshift(...edges.map(({ node }) => node.id))
          ;[before, more] = [pageInfo.startCursor, pageInfo.hasPreviousPage]
        }
        assert.deepEqual(backward, all)
      }
    })

    it('of a page of products take one statement', async () => {
      statements.length = 0
      const { data, errors } = await graphql.ask(
        '{ products(first: 3) { edges { node { id taps(first: 2) { edges { node { counter } } } } } } }',
        undefined,
        key,
      )
      assert.deepEqual(errors, [])
      const found = data?.['products'] as unknown as {
        edges: { node: { id: string; taps: { edges: { node: { counter: number } }[] } } }[]
      }
      const byProduct = found.edges.map(({ node }) => [node.id, node.taps.edges.map((edge) => edge.node.counter)])
      assert.deepEqual(byProduct.toReversed(), [
        ['1', [2, 5]],
        ['2', [60]],
        ['3', []],
      ])
      assert.equal(statements.filter((text) => text.includes('tap_log')).length, 1)
    })

    it('have anomalies', async () => {
      const fields = 'kind counter lastCounter countries times product { id }'
      const ask = async (filter: object) => {
        const query = `query ($filter: TapAnomalyFilter) { tapAnomalies(filter: $filter) { totalCount edges { node { ${fields} } } } }`
        const { data, errors } = await graphql.ask(query, { filter }, key)
        assert.deepEqual(errors, [])
        const found = data?.['tapAnomalies'] as unknown as {
          totalCount: number
          edges: { node: Record<string, unknown> }[]
        }
        assert.equal(found.totalCount, found.edges.length)
        return found.edges.map(({ node }) => ({ ...node }))
      }
      const jump = {
        kind: 'COUNTER_JUMP',
        counter: 60,
        lastCounter: 2,
        countries: null,
        times: null,
        product: { id: '2' },
      }
      const places = {
        kind: 'TWO_PLACES',
        counter: null,
        lastCounter: null,
        countries: ['FR', 'JP'],
        times: null,
        product: { id: '1' },
      }
      assert.deepEqual(await ask({}), [jump, places])
      assert.deepEqual(await ask({ productId: '1' }), [places])
      assert.deepEqual(await ask({ kind: 'COUNTER_JUMP' }), [jump])
      assert.deepEqual(await ask({ productId: '3' }), [])
    })

    it('cost by the size of their lists', async () => {
      const query = '{ products(first: 50) { edges { node { taps(first: 50) { edges { node { counter } } } } } } }'
      const { errors } = await graphql.ask(query, undefined, key)
      assert.equal(errors[0]?.extensions['code'], 'TOO_COMPLEX')
    })
  })
