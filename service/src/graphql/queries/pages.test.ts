/** Pages over rows that lie one microsecond apart or at the same instant, and what a page costs in statements. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { metadataHashOf } from '@touchstone/verdict'
import { testDatabases } from '../../../test/support/database/databases.ts'
import { startGraphql, watched } from '../../../test/support/graphql/host.ts'
import {
  insertAsset,
  insertEvent,
  insertTransfer,
  recountProducts,
  setCursor,
} from '../../../test/support/index/rows.ts'
import type { Database } from '../../db/database.ts'
import { metadataStore } from '../../assets/metadata-store.ts'

/** Names with spaces, signs of other scripts, capitals, and the longest one. */
const names = ['Ä b', 'watch', 'Watch', '%41 "\\', '時計', '😀'.repeat(200), 'a']

type PageInfo = { hasNextPage: boolean; hasPreviousPage: boolean; startCursor: string | null; endCursor: string | null }
type List = { edges: { node: { id: string }; cursor: string }[]; pageInfo: PageInfo; totalCount: number | null }

const fields = 'edges { cursor node { id } } pageInfo { hasNextPage hasPreviousPage startCursor endCursor }'
const products = `query ($filter: ProductFilter, $first: Int, $after: String, $last: Int, $before: String, $orderBy: ProductOrder) {
  list: products(filter: $filter, first: $first, after: $after, last: $last, before: $before, orderBy: $orderBy) { ${fields} } }`
const transfers = `query ($first: Int, $after: String, $last: Int, $before: String, $status: TransferStatus) {
  list: transfers(first: $first, after: $after, last: $last, before: $before, status: $status) { ${fields} } }`

for (const { name, open, skip } of testDatabases())
  describe(`pages on ${name}`, { skip }, () => {
    let database: Database
    let statements: string[]
    let graphql: Awaited<ReturnType<typeof startGraphql>>
    before(async () => {
      const opened = await open()
      ;({ database, statements } = watched(opened))
      const body = '{"name":"Watch","origin":"CH"}'
      await metadataStore(database).put({ body, hash: metadataHashOf(body) })
      for (let n = 1; n <= 50; n += 1) {
        // Two at every microsecond.
        const at = `2026-01-01T00:00:00.0000${String(10 + Math.floor(n / 2))}Z`
        const row = {
          tokenId: n,
          name: names[n % names.length] ?? '',
          state: n % 3 === 0 ? 4 : 1,
          brand: n % 2 === 0 ? 'Even' : 'Odd',
          metadataHash: metadataHashOf(body),
        }
        const assetPk = await insertAsset(database, { ...row, createdAt: at, updatedAt: '2026-02-01T00:00:00Z' })
        const settled = n % 3 === 0 ? 'CONFIRMED' : n % 3 === 1 ? 'FAILED' : 'PENDING'
        await insertTransfer(database, { id: `${n}-1`, assetPk, status: settled, initiatedAt: at, expiresAt: at })
      }
      await insertEvent(database, { tokenId: 1, block: 1 })
      await setCursor(database, { number: 5, at: '2026-01-06T00:00:00Z' })
      graphql = await startGraphql(database)
    })
    after(async () => {
      await graphql.end()
      await database.close()
    })

    async function list(query: string, variables: object): Promise<List> {
      const { data, errors } = await graphql.ask(query, { ...variables })
      assert.deepEqual(errors, [])
      return (data as unknown as { list: List }).list
    }
    /** Returns all ids, page by page, and checks the pageInfo of every page. */
    async function walk(query: string, variables: object, backward = false): Promise<string[]> {
      const found: string[] = []
      let cursor: string | null = null
      for (;;) {
        const at = backward ? { last: 7, before: cursor } : { first: 7, after: cursor }
        const { edges, pageInfo } = await list(query, { ...variables, ...at })
        const ids = edges.map(({ node }) => node.id)
        if (backward) found.unshift(...ids)
        else found.push(...ids)
        assert.equal(pageInfo.startCursor, edges[0]?.cursor ?? null)
        assert.equal(pageInfo.endCursor, edges.at(-1)?.cursor ?? null)
        assert.equal(backward ? pageInfo.hasNextPage : pageInfo.hasPreviousPage, cursor !== null)
        if (!(backward ? pageInfo.hasPreviousPage : pageInfo.hasNextPage)) return found
        cursor = backward ? pageInfo.startCursor : pageInfo.endCursor
      }
    }
    /** The statements, without the look-ups of the key and, on a cluster, of whole steps. */
    const indexed = () => statements.filter((text) => !/api_key|index_shown/.test(text))
    const upTo = (n: number) => Array.from({ length: n }, (_, index) => String(index + 1))
    const newestFirst = upTo(50).reverse()

    it('neither skip nor repeat a product, in both directions and orders', async () => {
      assert.deepEqual(await walk(products, {}), newestFirst)
      assert.deepEqual(await walk(products, {}, true), newestFirst)
      const orderBy = { field: 'UPDATED_AT', direction: 'ASC' }
      assert.deepEqual(await walk(products, { orderBy }), upTo(50))
      assert.deepEqual(await walk(products, { orderBy }, true), upTo(50))
      const byName = { field: 'NAME', direction: 'ASC' }
      const named = await walk(products, { orderBy: byName })
      assert.deepEqual(named.toSorted(), upTo(50).toSorted())
      assert.deepEqual(await walk(products, { orderBy: byName }, true), named)
      const filter = { states: ['MINTED', 'CLAIMED'] }
      assert.deepEqual(await walk(products, { filter }), newestFirst)
      assert.deepEqual(await walk(products, { filter }, true), newestFirst)
      const even = newestFirst.filter((id) => Number(id) % 2 === 0)
      assert.deepEqual(await walk(products, { filter: { brand: 'Even' } }), even)
    })

    it('neither skip nor repeat a transfer, under each status', async () => {
      const of = (rest: number[]) => newestFirst.filter((id) => rest.includes(Number(id) % 3)).map((id) => `${id}-1`)
      assert.deepEqual(await walk(transfers, {}), of([0, 1, 2]))
      assert.deepEqual(await walk(transfers, {}, true), of([0, 1, 2]))
      assert.deepEqual(await walk(transfers, { status: 'FAILED' }, true), of([1, 2]))
      assert.deepEqual(await walk(transfers, { status: 'CONFIRMED' }), of([0]))
      assert.deepEqual(await walk(transfers, { status: 'FAILED' }), of([1, 2]))
      assert.deepEqual(await walk(transfers, { status: 'PENDING' }), [])
    })

    it('a row that comes in between moves no page', async () => {
      const first = await list(products, { first: 5 })
      await insertAsset(database, { tokenId: 51, createdAt: '2026-05-01T00:00:00Z' })
      const second = await list(products, { first: 5, after: first.pageInfo.endCursor })
      await database.query('delete from asset where token_id = 51')
      await recountProducts(database)
      assert.deepEqual(
        second.edges.map(({ node }) => node.id),
        newestFirst.slice(5, 10),
      )
    })

    it('a cursor of another filter, order or list is refused, and so is a broken one', async () => {
      const { pageInfo } = await list(products, { first: 2 })
      const after = pageInfo.endCursor
      const refused = [
        { after, filter: { brand: 'Even' } },
        { after, orderBy: { field: 'UPDATED_AT', direction: 'DESC' } },
        { after: 'x' },
        { after: '' },
        { after: Buffer.from('1 a 2026-01-01T00:00:00.000000Z 1; drop table asset').toString('base64url') },
        { after: after?.slice(0, -3) },
        { first: 5, last: 5 },
        { first: -1 },
        { first: 101 },
        { last: -1 },
      ]
      for (const variables of refused) {
        const { errors } = await graphql.ask(products, variables)
        assert.equal(errors[0]?.extensions['code'], 'BAD_USER_INPUT', JSON.stringify(variables))
      }
      const { errors } = await graphql.ask(transfers, { after })
      assert.equal(errors[0]?.extensions['code'], 'BAD_USER_INPUT')
    })

    it('a cursor with an altered key is refused by the list, saying what to send', async () => {
      const forge = (cursor: string, ...place: string[]) =>
        Buffer.from(
          [...Buffer.from(cursor, 'base64url').toString().split(' ').slice(0, 2), ...place].join(' '),
        ).toString('base64url')
      const { pageInfo } = await list(products, { first: 2 })
      const histories =
        'query ($after: String) { product(id: 1) { list: history(first: 1, after: $after) { edges { cursor } } } }'
      const refused: [query: string, after: string][] = [
        ['7', '7'],
        ['-infinity', '7'],
        ['2026-01-01', '7'],
        ['2026-13-01T00:00:00.000000Z', '7'],
        ['2026-01-01T00:00:00.000000Z', '-7'],
        ['2026-01-01T00:00:00.000000Z', '9'.repeat(19)],
      ].map((place) => [products, forge(pageInfo.endCursor ?? '', ...place)])
      const { data } = await graphql.ask(histories)
      const [event] = (data as unknown as { product: { list: List } }).product.list.edges
      for (const place of [
        ['2026-01-01T00:00:00.000000Z', '0'],
        ['1', '9'.repeat(12)],
        ['9'.repeat(19), '0'],
      ])
        refused.push([histories, forge(event?.cursor ?? '', ...place)])
      for (const [query, after] of refused) {
        const { errors } = await graphql.ask(query, { after })
        assert.equal(errors[0]?.extensions['code'], 'BAD_USER_INPUT', Buffer.from(after, 'base64url').toString())
        assert.match(errors[0]?.message ?? '', /send one from edges.cursor or pageInfo/)
      }
    })

    it('first: 0 and last: 0 are empty pages that say whether there is more', async () => {
      const info = { startCursor: null, endCursor: null }
      assert.deepEqual(await list(products, { first: 0 }), {
        edges: [],
        pageInfo: { hasNextPage: true, hasPreviousPage: false, ...info },
      })
      assert.deepEqual((await list(products, { last: 0 })).pageInfo, {
        hasNextPage: false,
        hasPreviousPage: true,
        ...info,
      })
      const { data, errors } = await graphql.ask('{ transfers(first: 0) { totalCount edges { cursor } } }')
      assert.deepEqual([data, errors], [{ transfers: { totalCount: 50, edges: [] } }, []])
    })

    it('a page of 50 products with all that hangs on them takes three statements', async () => {
      statements.length = 0
      const { errors, data } = await graphql.ask(`{ products(first: 50) { edges { cursor node {
        id tagId name brand serialNumber metadata { description origin customFields } currentOwner { address }
        transfers { id status from { address } to { address } } verified state chainRef { blockNumber }
      } } } }`)
      assert.deepEqual(errors, [])
      assert.equal((data as unknown as { products: List }).products.edges.length, 50)
      assert.equal(indexed().length, 3, indexed().join('\n---\n'))
    })

    it('transfers with their products take two statements', async () => {
      statements.length = 0
      const { errors } = await graphql.ask('{ transfers(first: 50) { edges { node { id product { id name } } } } }')
      assert.deepEqual([errors, indexed().length], [[], 2])
    })

    it('counts only when it is asked to', async () => {
      statements.length = 0
      await graphql.ask('{ products { edges { node { id } } } }')
      assert.equal(indexed().length, 1)
      await graphql.ask('{ products { totalCount } }')
      assert.match(statements.at(-1) ?? '', /product_total/)
      await graphql.ask('{ products(filter: { brand: "Brand 7" }) { totalCount } }')
      assert.match(statements.at(-1) ?? '', /product_count/)
    })

    it('a count that takes too long is null with TOO_COMPLEX, and the page stays', async () => {
      await using slow = await startGraphql(database, { products: { count: async () => null } })
      const { data, errors } = await slow.ask('{ products(first: 1) { totalCount edges { node { id } } } }')
      assert.deepEqual(data, { products: { totalCount: null, edges: [{ node: { id: '50' } }] } })
      assert.deepEqual([errors[0]?.extensions['code'], errors[0]?.path], ['TOO_COMPLEX', ['products', 'totalCount']])
    })

    it('the sums equal a count after every kind of change', async () => {
      await database.query(
        "update asset set tag_hash = decode(repeat('ab', 32), 'hex'), tapped_at = now(), state = 3 where token_id < 9",
      )
      await database.query('update asset set brand = null where token_id in (2, 4)')
      await database.query('delete from asset where token_id = 50')
      await recountProducts(database)
      const filters = [
        {},
        { brand: 'Even' },
        { verified: true },
        { brand: 'Odd', verified: true },
        { brand: 'Odd', verified: false },
      ]
      for (const filter of filters) {
        const query = `query ($filter: ProductFilter, $counted: ProductFilter) {
          summed: products(filter: $filter) { totalCount } counted: products(filter: $counted) { totalCount } }`
        const counted = { and: [filter, { createdAfter: '2000-01-01T00:00:00Z' }] }
        const { data, errors } = await graphql.ask(query, { filter, counted })
        assert.deepEqual(errors, [])
        const found = data as unknown as { summed: List; counted: List }
        assert.equal(found.summed.totalCount, found.counted.totalCount, JSON.stringify(filter))
        assert.ok((found.summed.totalCount ?? 0) > 0)
      }
    })
  })
