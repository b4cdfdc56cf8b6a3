/** The queries of spec §4.9 over both databases: the same questions, the same answers. */
import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { testDatabases } from '../../../test/support/database/databases.ts'
import { postGraphql } from '../../../test/support/graphql/client.ts'
import { startGraphql } from '../../../test/support/graphql/host.ts'
import { fillExample, huge } from '../../../test/support/index/example.ts'
import { hashOf, recountProducts } from '../../../test/support/index/rows.ts'
import { useOpened } from '../../../test/support/opened.ts'
import type { Database } from '../../db/database.ts'

for (const { name, open, skip } of testDatabases())
  describe(`queries on ${name}`, { skip }, () => {
    const database = useOpened(open)
    before(() => fillExample(database))
    const graphql = useOpened(() => startGraphql(database))

    /** The data of a query that must not fail. */
    async function data(query: string, variables?: Record<string, unknown>) {
      const { data: found, errors } = await graphql.ask(query, variables)
      assert.deepEqual(errors, [])
      return found as Record<string, unknown>
    }
    async function codes(query: string, variables?: Record<string, unknown>) {
      return (await graphql.ask(query, variables)).errors.map(({ extensions }) => extensions['code'])
    }
    async function ids(filter: object, rest = ''): Promise<string[]> {
      const query = `query ($filter: ProductFilter) { products(filter: $filter ${rest}) { totalCount edges { node { id } } } }`
      const { products } = (await data(query, { filter })) as {
        products: { totalCount: number; edges: { node: { id: string } }[] }
      }
      assert.equal(products.totalCount, products.edges.length)
      return products.edges.map(({ node }) => node.id)
    }

    it('gives every field of a product', async () => {
      const { product } = await data(`{ product(id: "1") {
        id tagId name brand serialNumber gtin verified authentic flagged state stateCode createdAt updatedAt
        metadata { description imageUrl manufactureDate origin customFields }
        currentOwner { address displayName verifiedAt }
        chainRef { chainId contract tokenId blockNumber blockHash }
      } }`)
      assert.deepEqual(product, {
        id: '1',
        tagId: 'TAG-1',
        name: 'Watch',
        brand: 'Acme',
        serialNumber: 'S1',
        gtin: '09506000134352',
        verified: true,
        authentic: true,
        flagged: false,
        state: 'CLAIMED',
        stateCode: 4,
        createdAt: '2026-01-01T00:00:00.000001Z',
        updatedAt: '2026-03-01T00:00:00.000Z',
        metadata: {
          description: 'A watch',
          imageUrl: 'https://x.example/a.png',
          manufactureDate: '2025-12-24',
          origin: 'CH',
          customFields: { care: 'dryclean' },
        },
        currentOwner: { address: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8', displayName: null, verifiedAt: null },
        chainRef: {
          chainId: 84532,
          contract: '0x5FbDB2315678afecb367f032d93F642f64180aa3',
          tokenId: '1',
          blockNumber: 77,
          blockHash: hashOf(77),
        },
      })
    })

    it('finds a node of each type by its id', async () => {
      const query =
        'query ($id: ID!) { node(id: $id) { __typename id ... on Product { name } ... on Transfer { status } } }'
      assert.deepEqual(await data(query, { id: '1' }), { node: { __typename: 'Product', id: '1', name: 'Watch' } })
      assert.deepEqual(await data(query, { id: '1-1' }), {
        node: { __typename: 'Transfer', id: '1-1', status: 'CONFIRMED' },
      })
      assert.deepEqual(
        [await data(query, { id: '99' }), await data(query, { id: '99-1' })],
        [{ node: null }, { node: null }],
      )
      assert.deepEqual(await codes(query, { id: 'UHJvZHVjdDox' }), ['BAD_USER_INPUT'])
    })

    it('takes leading zeros in every id, and shows it without', async () => {
      assert.deepEqual(
        await data('{ product(id: "001") { id } transfer(id: "01-001") { id } node(id: "01-01") { id } }'),
        { product: { id: '1' }, transfer: { id: '1-1' }, node: { id: '1-1' } },
      )
    })

    it('shows what an operation costs, also where it is refused', async () => {
      const ask = async (first: number) => {
        const query = `{ products(first: ${first}) { totalCount edges { node { id transfers { id } } } } }`
        const response = await postGraphql(graphql.url, graphql.key, { query })
        return (await response.json()) as { extensions?: object; errors?: { message: string; extensions: object }[] }
      }
      assert.deepEqual((await ask(5)).extensions, { cost: 65, maxCost: 1_000 })
      const { errors } = await ask(100)
      assert.deepEqual(errors?.[0]?.extensions, { code: 'TOO_COMPLEX', cost: 1_110, maxCost: 1_000 })
      assert.match(errors?.[0]?.message ?? '', /it costs 1110/)
    })

    it('names the block of the index, its lag and its last comparison with the chain', async () => {
      const query = '{ _meta { block { number hash timestamp } head lagBlocks verifiedAt hasErrors } }'
      const block = { number: 77, hash: hashOf(77), timestamp: '2026-01-06T00:00:00.000Z' }
      const unknown = { block, head: null, lagBlocks: null, verifiedAt: null, hasErrors: false }
      assert.deepEqual(await data(query), { _meta: unknown })
      await database.query("update index_cursor set compared_at = '2026-01-06T01:00:00Z'")
      const compared = { ...unknown, verifiedAt: '2026-01-06T01:00:00.000Z' }
      for (const [head, seen, lagBlocks] of [
        [80n, 80, 3],
        [70n, 77, 0],
      ]) {
        await using other = await startGraphql(database, {
          chainStatus: async () => ({ head: head as bigint, isFaulty: true }),
        })
        const { data: found } = await other.ask(query)
        assert.deepEqual(found, { _meta: { ...compared, head: seen, lagBlocks, hasErrors: true } })
      }
    })

    it('reads the block of _meta before any list of its operation', async () => {
      const done: string[] = []
      const query: Database['query'] = async (text, values) => {
        const of = /compared_at/.test(text) ? 'meta' : /from asset/.test(text) ? 'list' : null
        if (of === 'list') done.push(of)
        const rows = await database.query<never>(text, values)
        if (of === 'meta') done.push(of)
        return rows
      }
      await using other = await startGraphql({ ...database, query })
      const { errors } = await other.ask(
        'query { products { edges { node { id } } } product(id: 1) { id } ...meta } fragment meta on Query { _meta { block { number } } }',
      )
      assert.deepEqual([errors, done], [[], ['meta', 'list', 'list']])
    })

    it('names a product that was minted elsewhere by its token, and its tag by the commitment', async () => {
      const { product } = await data(
        `query ($id: ID!) { product(id: $id) { id name brand tagId metadata { origin } } }`,
        {
          id: huge.toString(),
        },
      )
      assert.deepEqual(product, { id: `${huge}`, name: `Asset ${huge}`, brand: null, tagId: hashOf(8), metadata: null })
    })

    it('gives null for a product or transfer that does not exist, and BAD_USER_INPUT for what is no id', async () => {
      assert.deepEqual(await data('{ product(id: 99) { id } transfer(id: "99-1") { id } }'), {
        product: null,
        transfer: null,
      })
      assert.deepEqual(await codes('{ product(id: "0x7") { id } }'), ['BAD_USER_INPUT'])
      assert.deepEqual(await codes('{ transfer(id: "x") { id } }'), ['BAD_USER_INPUT'])
      assert.deepEqual(await codes('{ transfers(productId: "-1") { totalCount } }'), ['BAD_USER_INPUT'])
    })

    it('filters by each field, and by and, or, not', async () => {
      const all = ['3', `${huge}`, '1']
      assert.deepEqual(await ids({}), all)
      assert.deepEqual(await ids({ brand: 'Acme' }), ['3', '1'])
      assert.deepEqual(await ids({ brand: 'acme' }), [])
      assert.deepEqual(await ids({ verified: true }), ['1'])
      assert.deepEqual(await ids({ verified: false, brand: 'Acme' }), ['3'])
      assert.deepEqual(await ids({ owner: '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC' }), [`${huge}`])
      assert.deepEqual(await ids({ state: 'FLAGGED' }), ['3'])
      assert.deepEqual(await ids({ tagId: 'TAG-1' }), ['1'])
      assert.deepEqual(await ids({ createdAfter: '2026-01-01T00:00:00.000001Z' }), ['3', `${huge}`])
      assert.deepEqual(await ids({ createdBefore: '2026-01-01T01:00:00+01:00' }), [])
      assert.deepEqual(await ids({ createdBefore: '2026-01-01T00:00:00.000002Z' }), ['1'])
      assert.deepEqual(await ids({ or: [{ tagId: 'TAG-1' }, { state: 'FLAGGED' }] }), ['3', '1'])
      assert.deepEqual(await ids({ and: [{ brand: 'Acme' }, { not: { state: 'FLAGGED' } }] }), ['1'])
      assert.deepEqual(await ids({ not: { brand: 'Acme' } }), [`${huge}`])
      assert.deepEqual(await ids({ brand: null, verified: null }), all)
    })

    it('filters by ids, item, states, reports, tag and last change', async () => {
      const all = ['3', `${huge}`, '1']
      assert.deepEqual(await ids({ ids: ['3', '1', '99'] }), ['3', '1'])
      assert.deepEqual(await ids({ ids: [] }), [])
      assert.deepEqual(await ids({ gtin: '09506000134352' }), ['1'])
      assert.deepEqual(await ids({ serialNumber: 'S1' }), ['1'])
      assert.deepEqual(await ids({ states: ['CLAIMED', 'FLAGGED', 'CLAIMED'] }), ['3', '1'])
      assert.deepEqual(await ids({ states: [] }), [])
      assert.deepEqual(await ids({ states: ['CLAIMED', 'MINTED'], tagged: true }), [`${huge}`, '1'])
      assert.deepEqual(await ids({ or: [{ states: ['CLAIMED'] }, { flagged: true }] }), ['3', '1'])
      assert.deepEqual(await ids({ flagged: true }), ['3'])
      assert.deepEqual(await ids({ flagged: false }), [`${huge}`, '1'])
      assert.deepEqual(await ids({ report: 'STOLEN' }), ['3'])
      assert.deepEqual(await ids({ report: 'LOST' }), [])
      assert.deepEqual(await ids({ tagged: false }), ['3'])
      assert.deepEqual(await ids({ updatedAfter: '2026-01-03T00:00:00Z' }, ', orderBy: {field: UPDATED_AT}'), ['1'])
      assert.deepEqual(await ids({ updatedBefore: '2026-01-03T00:00:00Z' }), [`${huge}`])
      assert.deepEqual(await ids({ ids: null, states: null, report: null }), all)
      const ask = (filter: object) =>
        codes('query ($f: ProductFilter) { products(filter: $f) { totalCount } }', { f: filter })
      assert.deepEqual(await ask({ ids: ['0x7'] }), ['BAD_USER_INPUT'])
      assert.deepEqual(await ask({ ids: Array.from({ length: 101 }, (_, id) => String(id)) }), ['TOO_COMPLEX'])
    })

    it('counts products by brand, state, report and day', async () => {
      const stats = async (groupBy: string, given = '') => {
        const query = `{ productStats(groupBy: ${groupBy} ${given}) { totalCount pageInfo { hasNextPage endCursor } edges { node { key count } } } }`
        const { productStats } = (await data(query)) as {
          productStats: {
            totalCount: number
            pageInfo: { hasNextPage: boolean; endCursor: string }
            edges: { node: { key: string; count: number } }[]
          }
        }
        const { edges, ...rest } = productStats
        return { ...rest, groups: edges.map(({ node: { key, count } }) => [key, count]) }
      }
      assert.deepEqual((await stats('BRAND')).groups, [
        [null, 1],
        ['Acme', 2],
      ])
      assert.deepEqual((await stats('STATE')).groups, [
        ['MINTED', 1],
        ['CLAIMED', 1],
        ['FLAGGED', 1],
      ])
      assert.deepEqual((await stats('FLAG')).groups, [['STOLEN', 1]])
      const days = [
        ['2026-01-03', 1],
        ['2026-01-02', 1],
        ['2026-01-01', 1],
      ]
      const first = await stats('DAY', ', first: 2')
      assert.deepEqual([first.groups, first.totalCount, first.pageInfo.hasNextPage], [days.slice(0, 2), 3, true])
      const rest = await stats('DAY', `, first: 2, after: "${first.pageInfo.endCursor}"`)
      assert.deepEqual([rest.groups, rest.pageInfo.hasNextPage], [days.slice(2), false])
      assert.deepEqual((await stats('DAY', ', last: 1')).groups, days.slice(2))
      const counted = await data(
        `{ one: products(filter: {state: CLAIMED}) { totalCount } two: products(filter: {states: [CLAIMED, MINTED]}) { totalCount } }`,
      )
      assert.deepEqual(counted, { one: { totalCount: 1 }, two: { totalCount: 2 } })
    })

    it('finds part of a name in any case, its signs as they are', async () => {
      assert.deepEqual(await ids({ nameContains: 'wat' }), ['1'])
      assert.deepEqual(await ids({ nameContains: '50%' }), ['3'])
      assert.deepEqual(await ids({ nameContains: '%_o' }), ['3'])
      assert.deepEqual(await ids({ nameContains: 'off\\' }), ['3'])
      assert.deepEqual(await ids({ nameContains: 'w%h' }), [])
      assert.deepEqual(await ids({ nameContains: 'w_t' }), [])
      assert.deepEqual(await ids({ nameContains: 'wat', brand: 'Acme', state: 'CLAIMED' }), ['1'])
      assert.deepEqual(await ids({ nameContains: 'wat', brand: 'Other' }), [])
      assert.deepEqual(await ids({ or: [{ nameContains: 'wat' }, { nameContains: 'off' }] }), ['3', '1'])
      await database.query("update asset set name = 'Watchband' where token_id = 3")
      await recountProducts(database)
      assert.deepEqual(await ids({ nameContains: 'watch' }), ['3', '1'])
      assert.deepEqual(await ids({ nameContains: 'watch' }, ', orderBy: {field: NAME, direction: ASC}'), ['1', '3'])
      assert.deepEqual(await ids({ nameContains: '50%' }), [], 'a name that no product has any more')
      await database.query("update asset set name = '50%_off\\' where token_id = 3")
      await recountProducts(database)
      assert.deepEqual(await codes('{ products(filter: {nameContains: "wa"}) { totalCount } }'), ['BAD_USER_INPUT'])
    })

    it('finds a part that more names have than are looked up one by one', async () => {
      await database.query(`insert into asset (token_id, owner, state, flags, name, created_at, updated_at, updated_block)
        select 1000 + n, decode(repeat('cd', 20), 'hex'), 1, 0, 'Jacket ' || n, '2025-01-01'::timestamptz + n * interval '1 s', now(), 1
        from generate_series(1, 300) n`)
      await recountProducts(database)
      const query = '{ products(first: 2, filter: {nameContains: "jacket"}) { totalCount edges { node { name } } } }'
      const edges = [{ node: { name: 'Jacket 300' } }, { node: { name: 'Jacket 299' } }]
      assert.deepEqual(await data(query), { products: { totalCount: 300, edges } })
      const tens = '{ products(first: 2, filter: {nameContains: "jacket 29"}) { totalCount edges { node { name } } } }'
      const found = [{ node: { name: 'Jacket 299' } }, { node: { name: 'Jacket 298' } }]
      assert.deepEqual(await data(tens), { products: { totalCount: 11, edges: found } })
      await database.query("delete from asset where name like 'Jacket%'")
      await recountProducts(database)
    })

    it('refuses filters that it cannot use', async () => {
      const ask = (filter: object) =>
        codes('query ($f: ProductFilter) { products(filter: $f) { totalCount } }', { f: filter })
      for (const filter of [{ owner: '0x12' }, { owner: '0x3c44CdDdB6a900fa2b585dd299e03d12FA4293BC' }, { or: [] }])
        assert.deepEqual(await ask(filter), ['BAD_USER_INPUT'], JSON.stringify(filter))
      for (const filter of [
        { brand: 'a\0b' },
        { brand: '\ud800' },
        { createdAfter: '2026-02-30T00:00:00Z' },
        { state: 'LOST' },
      ])
        assert.deepEqual(await ask(filter), ['BAD_USER_INPUT'], JSON.stringify(filter))
    })

    it('orders by creation or last change, in both directions', async () => {
      assert.deepEqual(await ids({}, ', orderBy: {field: UPDATED_AT}'), ['1', '3', `${huge}`])
      assert.deepEqual(await ids({}, ', orderBy: {direction: ASC}'), ['1', `${huge}`, '3'])
      assert.deepEqual(await ids({}, ', orderBy: {field: NAME, direction: ASC}'), [`${huge}`, '3', '1'])
    })

    it('lists transfers newest first; an offer past its time has failed', async () => {
      const of = async (given: string) => {
        const { transfers } = (await data(
          `{ transfers(${given}first: 10) { totalCount edges { node { id status } } } }`,
        )) as {
          transfers: { totalCount: number; edges: { node: { id: string; status: string } }[] }
        }
        assert.equal(transfers.totalCount, transfers.edges.length)
        return transfers.edges.map(({ node }) => `${node.id} ${node.status}`)
      }
      assert.deepEqual(await of(''), ['1-3 PENDING', '1-2 FAILED', '1-1 CONFIRMED'])
      assert.deepEqual(await of('status: PENDING, '), ['1-3 PENDING'])
      assert.deepEqual(await of('status: FAILED, '), ['1-2 FAILED'])
      assert.deepEqual(await of('status: FAILED, productId: 1, '), ['1-2 FAILED'])
      assert.deepEqual(await of('status: CONFIRMED, productId: "1", '), ['1-1 CONFIRMED'])
      assert.deepEqual(await of('productId: 3, '), [])
      const party = (address: string) => `filter: { party: "${address}" }, `
      const all = ['1-3 PENDING', '1-2 FAILED', '1-1 CONFIRMED']
      assert.deepEqual(await of(party('0x70997970c51812dc3a010c7d01b50e0d17dc79c8')), all)
      assert.deepEqual(await of(`status: FAILED, ${party('0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC')}`), [
        '1-2 FAILED',
      ])
      assert.deepEqual(await of(party('0x90f79bf6eb2c4f870365e785982e1f101e93b906')), [])
      const between = 'filter: { initiatedAfter: "2026-01-02T00:00:00Z", initiatedBefore: "2026-01-04T00:00:00Z" }, '
      assert.deepEqual(await of(between), ['1-2 FAILED'])
      assert.deepEqual(await codes('{ transfers(filter: { party: "0x7" }) { totalCount } }'), ['BAD_USER_INPUT'])
    })

    it('gives every field of a transfer, with its product', async () => {
      const { transfer } =
        await data(`{ transfer(id: "1-1") { id status timestamp txHash settledTxHash expiresAt message
        from { address } to { address } product { id transfers { id } } } }`)
      assert.deepEqual(transfer, {
        id: '1-1',
        status: 'CONFIRMED',
        timestamp: '2026-01-02T00:00:00.000Z',
        txHash: hashOf(7),
        settledTxHash: hashOf(5),
        expiresAt: null,
        message: 'Yours now',
        from: { address: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8' },
        to: { address: '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC' },
        product: { id: '1', transfers: [{ id: '1-3' }, { id: '1-2' }, { id: '1-1' }] },
      })
    })

    it('refuses products with more transfers than one operation may read, whatever it was estimated to cost', async () => {
      await database.query(`insert into transfer (id, token_id, asset_pk, from_addr, to_addr, status, initiated_at, initiated_tx)
        select '3-' || n, 3, pk, owner, owner, 'CONFIRMED', now(), '\\x07' from asset, generate_series(1, 120) n where token_id = 3`)
      const { product } = (await data('{ product(id: 3) { transfers { id product { id } } } }')) as {
        product: { transfers: object[] }
      }
      assert.equal(product.transfers.length, 100)
      const nested = await graphql.ask('{ product(id: 3) { transfers { product { transfers { id } } } } }')
      const [error, ...more] = nested.errors
      assert.deepEqual([error?.extensions['code'], more.length, nested.data], ['TOO_COMPLEX', 0, { product: null }])
      await database.query('delete from transfer where token_id = 3')
    })

    it('pages through the history of a product, the oldest first', async () => {
      const query = `query ($after: String) { product(id: 1) { history(first: 2, after: $after) { totalCount
        pageInfo { hasNextPage hasPreviousPage endCursor }
        edges { node { type blockNumber blockHash logIndex txHash timestamp fromState toState reports hash actor { address } } } } } }`
      type Page = {
        product: {
          history: {
            totalCount: number
            pageInfo: { hasNextPage: boolean; endCursor: string }
            edges: { node: Record<string, unknown> }[]
          }
        }
      }
      const blocks: unknown[] = []
      let after: string | null = null
      for (let more = true; more;) {
        const { product }: Page = (await data(query, { after })) as Page
        assert.equal(product.history.totalCount, 5)
        blocks.push(...product.history.edges.map(({ node }) => node['blockNumber']))
        after = product.history.pageInfo.endCursor
        more = product.history.pageInfo.hasNextPage
      }
      assert.deepEqual(blocks, [1, 2, 3, 4, 5])
      const backward = `query ($before: String) { product(id: 1) { history(last: 2, before: $before) {
        pageInfo { hasNextPage hasPreviousPage startCursor } edges { node { blockNumber } } } } }`
      const newest: unknown[] = []
      let before: string | null = null
      for (let more = true; more;) {
        const { product } = (await data(backward, { before })) as {
          product: {
            history: {
              pageInfo: { hasPreviousPage: boolean; startCursor: string }
              edges: { node: { blockNumber: number } }[]
            }
          }
        }
        newest.unshift(...product.history.edges.map(({ node }) => node.blockNumber))
        before = product.history.pageInfo.startCursor
        more = product.history.pageInfo.hasPreviousPage
      }
      assert.deepEqual(newest, [1, 2, 3, 4, 5])
      const { product } = (await data(query)) as Page
      assert.deepEqual(product.history.edges[0]?.node, {
        type: 'STATE_CHANGED',
        blockNumber: 1,
        blockHash: hashOf(1),
        logIndex: 0,
        txHash: hashOf(1001),
        timestamp: '2026-01-01T00:00:01.000Z',
        fromState: 'NONE',
        toState: 'MINTED',
        reports: ['LOST', 'TAMPER'],
        hash: null,
        actor: { address: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8' },
      })
      assert.deepEqual(await data('{ product(id: 3) { history { totalCount edges { cursor } } } }'), {
        product: { history: { totalCount: 0, edges: [] } },
      })
    })
  })
