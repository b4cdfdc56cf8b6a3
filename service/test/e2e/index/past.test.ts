/** The index at an earlier block (spec §2.9): what it answered then, it answers again, whatever has happened since. */
import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import fc from 'fast-check'
import type { Database } from '../../../src/db/database.ts'
import { createLoaders } from '../../../src/graphql/context.ts'
import { indexStores } from '../../../src/graphql/stores.ts'
import type { ProductCondition } from '../../../src/index/queries/condition.ts'
import { pastStore } from '../../../src/index/queries/past.ts'
import type { PastBlock, ProductRow } from '../../../src/index/queries/products.ts'
import type { TransferRow } from '../../../src/index/queries/transfers.ts'
import { startGraphql } from '../../support/graphql/host.ts'
import { testDatabases } from '../../support/database/databases.ts'
import { createStory, wholeLife } from '../../support/index/story.ts'
import { atHead, hash, indexerOver, operator, startIndexChain } from '../../support/index/world.ts'
import { useOpened } from '../../support/opened.ts'
import type { Indexer } from '../../../src/chain/indexer/indexer.ts'

const all: ProductCondition = { kind: 'and', of: [] }
const conditions: readonly ProductCondition[] = [
  all,
  { kind: 'state', value: 1 },
  { kind: 'not', of: { kind: 'state', value: 4 } },
]

for (const { name, open, skip } of testDatabases())
  describe(`the past of the index in ${name}`, { skip }, () => {
    const database = useOpened(open)
    const chain = useOpened(startIndexChain)
    let indexer: Indexer
    let stores: ReturnType<typeof indexStores>
    before(async () => {
      stores = indexStores(database)
      indexer = indexerOver(chain, database)
      indexer.start()
    })

    /** All that the index answers now, and the block that it answers at. */
    async function present() {
      const { block } = await stores.meta()
      const tokens = (await database.query<{ id: string }>('select token_id::text as id from asset order by 1')).map(
        ({ id }) => BigInt(id),
      )
      const products = (await stores.products.byTokens(tokens)).map(productText).toSorted()
      const transfers = [...(await stores.transfers.newestOf(tokens)).values()].flat()
      const pages = await Promise.all(
        conditions.map(async (condition) => ({
          count: await stores.products.count(condition),
          rows: (await stores.products.page({ condition, ...firstPage })).map(productText),
        })),
      )
      return { block, tokens, products, transfers: transfers.map(transferText).toSorted(), pages }
    }
    const firstPage = { by: 'updated', descending: true, after: null, limit: 7 } as const

    it('is what it was when it was the present', async () => {
      let tags = 0
      const story = createStory(chain, () => hash((tags += 1)))
      await wholeLife(chain, hash(0xffff))
      const acts = fc.sample(fc.tuple(fc.nat(7), fc.nat(10_000)), 60)
      const seen: Awaited<ReturnType<typeof present>>[] = []
      for (const act of acts) {
        await story(act)
        await atHead(indexer, chain)
        seen.push(await present())
      }
      let canonical = 0
      for (const { block, tokens, ...then } of seen) {
        const found = await stores.past.find(block?.number ?? -1n)
        if (found.block?.hash !== block?.hash || found.block === null) continue // reorganised away
        canonical += 1
        const at = found.block
        const asked = tokens.map((tokenId) => ({ tokenId, at }))
        assert.deepEqual((await stores.past.products(asked))?.map(productText).toSorted(), then.products)
        assert.deepEqual((await stores.past.transfers(asked))?.map(transferText).toSorted(), then.transfers)
        for (const [index, condition] of conditions.entries()) {
          const rows = await stores.past.page(at, { condition, ...firstPage })
          assert.deepEqual(rows?.map(productText), then.pages[index]?.rows)
          assert.equal(await stores.past.count(at, condition), then.pages[index]?.count)
        }
      }
      assert.ok(canonical > 20, `${canonical} blocks of ${seen.length} are still on the chain`)
    })

    it('has no events of another branch than that of its block', async () => {
      assert.ok(await chain.send(operator.address, 'mint', [operator.address, hash(0xfffc)]))
      await atHead(indexer, chain)
      const { block: at } = await stores.past.find(await chain.head())
      assert.ok(at)
      const [minted] = await database.query<{ id: string }>('select max(token_id)::text as id from asset')
      const asked = { tokenId: BigInt(minted?.id ?? 0), after: null, backward: false, limit: 9, at }
      assert.equal((await createLoaders(stores).history.load(asked)).total, 3)
      const pages: typeof stores.history.pages = async (questions) => {
        await chain.reorg(1)
        await chain.mine(1)
        await atHead(indexer, chain)
        return stores.history.pages(questions)
      }
      const loaders = createLoaders({ ...stores, history: { ...stores.history, pages } })
      await assert.rejects(loaders.history.load(asked), { code: 'CHAIN_UNAVAILABLE' })
    })

    it(
      'is counted in one snapshot, also when the index goes on meanwhile',
      { skip: name !== 'PostgreSQL' },
      async () => {
        assert.ok(await chain.send(operator.address, 'mint', [operator.address, hash(0xfffd)]))
        await atHead(indexer, chain)
        const [minted] = await database.query<{ id: string }>('select max(token_id)::text as id from asset')
        const { block } = await stores.meta()
        const then = await stores.past.count((await stores.past.find(block?.number ?? -1n)).block as PastBlock, all)
        let isNext = true
        /** The index has another step after the first statement of the count. */
        const changing: Database = {
          ...database,
          transaction: (run) =>
            database.transaction((sql) =>
              run({
                query: async (...given) => {
                  const rows = await sql.query<never>(...given)
                  if (given[0].includes('history') && isNext) {
                    isNext = false
                    assert.ok(await chain.send(operator.address, 'setMetadataHash', [minted?.id, hash(0xfffe)]))
                    await atHead(indexer, chain)
                  }
                  return rows
                },
              }),
            ),
        }
        const past = pastStore(changing)
        const found = await past.find(block?.number ?? -1n)
        assert.equal(await past.count(found.block as PastBlock, all), then)
        assert.equal(isNext, false)
      },
    )

    it('is asked for by GraphQL at kept blocks, and refused elsewhere with those that are kept', async () => {
      const graphql = await startGraphql(database)
      const { block } = await stores.meta()
      const head = Number(block?.number)
      const query = `query ($block: BlockInput) {
        products(first: 3, block: $block) { totalCount pageInfo { endCursor }
          edges { node { id state chainRef { blockNumber } transfers { id status product { id state } }
            history(first: 100) { totalCount edges { node { blockNumber } } } } } }
        product(id: 1, block: $block) { id state }
        transfers(productId: 1, block: $block) { totalCount edges { node { id } } }
        transfer(id: "1-1", block: $block) { id status }
        zeros: transfer(id: "01-001", block: $block) { id status } }`
      const now = await graphql.ask(query)
      const then = await graphql.ask(query, { block: { number: head } })
      assert.deepEqual([now.errors, then.errors], [[], []])
      assert.deepEqual({ ...then.data, products: null }, { ...now.data, products: null })
      assert.deepEqual(then.data?.['zeros'], then.data?.['transfer'])
      type Nodes = {
        products: { edges: { node: { history: { totalCount: number; edges: { node: { blockNumber: number } }[] } } }[] }
      }
      const earlier = await graphql.ask(query, { block: { number: head - 5 } })
      assert.deepEqual(earlier.errors, [])
      for (const { node } of (earlier.data as unknown as Nodes).products.edges) {
        assert.equal(node.history.totalCount, node.history.edges.length)
        assert.ok(node.history.edges.every(({ node: event }) => event.blockNumber <= head - 5))
      }
      await database.query('delete from index_block where number < $1', [head - 10])
      for (const number of [head + 1, head - 11, -1]) {
        const { errors } = await graphql.ask('query ($block: BlockInput) { product(id: 1, block: $block) { id } }', {
          block: { number },
        })
        assert.equal(errors[0]?.extensions['code'], 'BAD_USER_INPUT')
        assert.match(errors[0]?.message ?? '', new RegExp(`ask for one from ${head - 10} to ${head}`))
      }
      const { errors } = await graphql.ask('query ($block: BlockInput) { transfers(block: $block) { totalCount } }', {
        block: { number: head },
      })
      assert.match(errors[0]?.message ?? '', /give its productId/)
      await graphql.end()
    })

    it('has the transfers of a product in the same pages as the present, whatever they are narrowed to', async () => {
      const [row] = await database.query<{ id: string; count: bigint }>(
        'select token_id::text as id, count(*) as count from transfer group by 1 order by 2 desc limit 1',
      )
      const { id = '', count = 0n } = row ?? {}
      assert.ok(count >= 3n, String(count))
      const { block } = await stores.meta()
      const graphql = await startGraphql(database)
      type Node = { id: string; timestamp: string; to: { address: string } }
      type Page = {
        totalCount: number
        pageInfo: { hasNextPage: boolean; hasPreviousPage: boolean }
        edges: { cursor: string; node: Node }[]
      }
      const { text: own } = await graphql.newKey(['read'], ['Acme'])
      const { text: other } = await graphql.newKey(['read'], ['Bolt'])
      const read = async (given: object, by = graphql.key): Promise<Page> => {
        const { data, errors } = await graphql.ask(
          `query ($block: BlockInput, $id: ID, $status: TransferStatus, $filter: TransferFilter, $first: Int, $after: String, $last: Int, $before: String) {
            transfers(productId: $id, block: $block, status: $status, filter: $filter, first: $first, after: $after, last: $last, before: $before) {
              totalCount pageInfo { hasNextPage hasPreviousPage } edges { cursor node { id timestamp to { address } } } } }`,
          { id, ...given },
          by,
        )
        assert.deepEqual(errors, [])
        return data?.['transfers'] as unknown as Page
      }
      /** The pages of one or two transfers, in both directions; cursors are those of their own list. */
      async function pagesOf(given: object): Promise<unknown[]> {
        const pages = []
        for (const [size, place] of [
          ['first', 'after'],
          ['last', 'before'],
        ] as const)
          for (let cursor: string | null = null; ;) {
            const { edges, ...rest } = await read({ ...given, [size]: 2, [place]: cursor })
            pages.push({ ...rest, nodes: edges.map(({ node }) => node) })
            assert.ok(pages.length < 100, 'the pages have an end')
            cursor = (size === 'first' ? edges.at(-1) : edges[0])?.cursor ?? null
            if (!rest.pageInfo[size === 'first' ? 'hasNextPage' : 'hasPreviousPage']) break
          }
        return pages
      }
      const nodes = (await read({ first: 100 })).edges.map(({ node }) => node)
      const middle = nodes[Math.floor(nodes.length / 2)]
      for (const filter of [
        {},
        { party: middle?.to.address },
        { initiatedAfter: middle?.timestamp },
        { initiatedBefore: middle?.timestamp },
      ])
        // An offer fails now by the clock, and at a block by the time of that block.
        for (const status of [null, 'CONFIRMED'])
          assert.deepEqual(
            await pagesOf({ filter, status, block: { number: Number(block?.number) } }),
            await pagesOf({ filter, status }),
          )
      await database.query("update asset set brand = 'Acme' where token_id = $1::numeric", [id])
      const at = { first: 100, block: { number: Number(block?.number) } }
      assert.deepEqual(await read(at, own), await read(at))
      assert.equal((await read(at, other)).totalCount, 0)
      await graphql.end()
    })

    it('is refused for tokens with too many events, which an owner can make without end', async () => {
      const [row] = await database.query<{ id: string; events: bigint }>(
        `select token_id::text as id, count(*) as events from history group by 1 order by 2 desc limit 1`,
      )
      const { id = '', events = 0n } = row ?? {}
      const { block: at } = await stores.past.find((await stores.meta()).block?.number ?? -1n)
      assert.ok(at !== null && events > 3n)
      const enough = pastStore(database, { mostOfTokens: Number(events) })
      assert.equal((await enough.products([{ tokenId: BigInt(id), at }]))?.length, 1)
      const few = pastStore(database, { mostOfTokens: Number(events) - 1 })
      assert.equal(await few.products([{ tokenId: BigInt(id), at }]), null)
      assert.equal(await few.transfers([{ tokenId: BigInt(id), at }]), null)
      const graphql = await startGraphql(database, { past: few })
      const { text: branded } = await graphql.newKey(['read'], ['Acme'])
      try {
        const given = `(productId: "${id}", block: { number: ${at.number} })`
        for (const query of [
          `{ product${given.replace('productId', 'id')} { id } }`,
          `{ transfers${given} { totalCount } }`,
        ])
          for (const key of [graphql.key, branded]) {
            const { errors } = await graphql.ask(query, undefined, key)
            assert.deepEqual(
              errors.map(({ extensions }) => extensions['code']),
              ['TOO_COMPLEX'],
            )
          }
      } finally {
        await graphql.end()
      }
    })

    it('is refused where too much has changed since', async () => {
      const { block } = await stores.meta()
      for (let batch = 0; batch < 6; batch += 1)
        assert.ok(
          await chain.send(operator.address, 'mintBatch', [
            operator.address,
            Array.from({ length: 200 }, () => hash(0)),
          ]),
        )
      await atHead(indexer, chain)
      const graphql = await startGraphql(database)
      const query =
        'query ($block: BlockInput) { product(id: 1, block: $block) { id } products(block: $block) { edges { cursor } } }'
      const { errors } = await graphql.ask(query, { block: { number: Number(block?.number) } })
      assert.deepEqual(
        errors.map(({ path, extensions }) => [path, extensions['code']]),
        [[['products'], 'TOO_COMPLEX']],
      )
      await graphql.end()
    })
  })

/** A row as text, without its number and the block that it is complete to. */
function productText({ indexed: _indexed, at: _at, pk: _pk, ...row }: ProductRow): string {
  return textOf(row)
}

/** An offer may run out between two looks, so open ones and those that ran out are the same here. */
function transferText({ at: _at, pk: _pk, status, ...row }: TransferRow): string {
  return textOf({ ...row, status: row.settledTx === null ? 'OPEN' : status })
}

function textOf(row: object): string {
  const entries = Object.entries(row).map(([key, value]) => `${key} ${String(value)}`)
  return entries.toSorted().join(', ')
}
