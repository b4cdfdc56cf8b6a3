/**
 * Keys with brands (spec §5), on both databases. A key for all asks every query before products of other brands exist; a key for the first
 * brand asks afterwards. Both answers must be the same to the last cursor and count.
 */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { type ExecutionResult, parse, subscribe } from 'graphql'
import { testDatabases } from '../../../test/support/database/databases.ts'
import { startGraphql } from '../../../test/support/graphql/host.ts'
import { openEvents } from '../../../test/support/graphql/socket.ts'
import {
  hashOf,
  insertAsset,
  insertEvent,
  insertOperation,
  insertTransfer,
  recountProducts,
  setCursor,
} from '../../../test/support/index/rows.ts'
import { canonicalMetadata } from '../../assets/metadata.ts'
import { metadataStore } from '../../assets/metadata-store.ts'
import type { Database } from '../../db/database.ts'
import { eventKinds } from '../../domain/registry-event.ts'
import { outboxStore } from '../../index/outbox.ts'
import { createLog } from '../../lib/log.ts'
import { createTapLog } from '../../tap/log/recorder.ts'
import { contextFactory } from '../context.ts'
import { scopes, type Verb, verbsOf } from '../../access/rights.ts'
import { indexStores } from '../stores.ts'
import type { EventDispatcher } from '../subscriptions/dispatcher.ts'
import { type SubscriptionEvent, subscriptionResolvers } from '../subscriptions/subscriptions.ts'

const alice = '0x70997970c51812dc3a010c7d01b50e0d17dc79c8'
const page = 'pageInfo { hasNextPage hasPreviousPage startCursor endCursor } totalCount'
const taps = `edges { cursor node { id time times counter outcome country product { id } } } ${page}`
const product = `id name brand tagId state currentOwner { address } transfers { id from { address } product { id } }
  history { edges { cursor node { type txHash } } ${page} } taps(first: 5) { ${taps} }`
const products = `edges { cursor node { id name } } ${page}`
const transfers = `edges { cursor node { id status from { address } to { address } message product { id } } } ${page}`
const event = 'position kind productId product { id name } transfer { id } cause { type }'

const reads: readonly string[] = [
  `{ product(id: "1") { ${product} } }`,
  `{ product(id: "1", block: { number: 77 }) { id brand transfers { id } } }`,
  '{ node(id: "1") { id } other: node(id: "1-1") { id } }',
  `{ transfer(id: "1-1") { id message product { id } } }`,
  `{ products { ${products} } }`,
  `{ products(first: 1, orderBy: { field: NAME, direction: ASC }) { ${products} } }`,
  `{ products(last: 1, orderBy: { field: UPDATED_AT }) { ${products} } }`,
  `{ products(block: { number: 77 }) { ${products} } }`,
  '{ products(first: 0) { totalCount } }',
  ...[
    'brand: "Acme"',
    'brand: "Bolt"',
    'verified: false',
    'nameContains: "Wat"',
    `owner: "${alice}"`,
    'state: CLAIMED',
    'states: [CLAIMED, MINTED]',
    'flagged: true',
    'tagged: true',
    'report: STOLEN',
    'or: [{ brand: "Acme" }, { brand: "Bolt" }]',
    'not: { brand: "Bolt" }',
    'not: { brand: "Acme" }',
  ].map((filter) => `{ products(filter: { ${filter} }) { ${products} } }`),
  `{ transfers { ${transfers} } }`,
  `{ transfers(status: PENDING, filter: { party: "${alice}" }) { ${transfers} } }`,
  `{ transfers(productId: "1", block: { number: 77 }) { totalCount edges { node { id } } } }`,
  ...['BRAND', 'STATE', 'FLAG', 'DAY'].map(
    (group) => `{ productStats(groupBy: ${group}) { edges { cursor node { key count } } ${page} } }`,
  ),
  `{ taps { ${taps} } }`,
  `{ taps(filter: { country: "FR" }) { ${taps} } }`,
  `{ tapAnomalies { edges { cursor node { id kind product { id } } } ${page} } }`,
  `{ events { edges { cursor node { ${event} } } pageInfo { hasNextPage } } }`,
]

/** Questions about one product or transfer, by its id. */
const lookups = (id: string): readonly string[] => [
  `{ product(id: "${id}") { id } }`,
  `{ product(id: "${id}", block: { number: 77 }) { id } }`,
  `{ node(id: "${id}") { id } }`,
  `{ node(id: "${id}-1") { id } }`,
  `{ transfer(id: "${id}-1") { id } }`,
  `{ transfer(id: "${id}-1", block: { number: 77 }) { id } }`,
  `{ transfers(productId: "${id}") { ${transfers} } }`,
  `{ transfers(productId: "${id}", block: { number: 77 }) { totalCount } }`,
  `{ products(filter: { ids: ["${id}"] }) { ${products} } }`,
  `{ taps(filter: { productId: "${id}" }) { ${taps} } }`,
  `{ tapAnomalies(filter: { productId: "${id}" }) { totalCount } }`,
  `{ events(productId: "${id}") { edges { cursor } } }`,
]

/** Mutations of a product, with the verbs of which each needs one. */
const steps: readonly (readonly [field: string, input: string, about: string, needed: readonly Verb[]])[] = [
  ['initiateTransfer', `productId: "ID", toAddress: "${alice}"`, 'productId', ['transfer']],
  ['acceptTransfer', 'transferId: "ID-1", signature: "0x"', 'transferId', ['transfer']],
  ['cancelTransfer', 'transferId: "ID-1", signature: "0x"', 'transferId', ['transfer']],
  ['invalidateNonce', 'productId: "ID", signature: "0x"', 'productId', ['transfer']],
  ['bindTag', 'productId: "ID", uid: "04", batchId: "b"', 'productId', ['bind']],
  ['activateProduct', 'productId: "ID"', 'productId', ['activate']],
  ['claimProduct', `productId: "ID", claimant: "${alice}", picc: "", cmac: ""`, 'productId', ['claim']],
  ['flagProduct', 'productId: "ID", reports: [LOST]', 'productId', ['flag:lost']],
  ['resolveProduct', 'productId: "ID"', 'productId', ['resolve']],
  ['recycleProduct', 'productId: "ID"', 'productId', ['recycle']],
  ['announceRecycle', 'productId: "ID"', 'productId', ['recycle']],
]

for (const { name, open, skip } of testDatabases())
  describe(`keys with brands on ${name}`, { skip }, () => {
    let database: Database
    let dispatcher: EventDispatcher<SubscriptionEvent>
    let graphql: Awaited<ReturnType<typeof startGraphql>>
    let acme: string
    let expected: unknown[]
    let called: string[]
    before(async () => {
      database = await open()
      const events = await openEvents(database, { pollMs: 20 })
      dispatcher = events.dispatcher
      called = []
      const done = (field: string) => () => {
        called.push(field)
        return { success: true, errors: [] }
      }
      const fields = ['registerProduct', 'approveRequest', 'rejectRequest', ...steps.map(([field]) => field)]
      const Mutation = Object.fromEntries(fields.map((field) => [field, done(field)]))
      const Query = { transferTypedData: done('transferTypedData') }
      graphql = await startGraphql(database, {
        resolvers: [subscriptionResolvers(events), { Mutation, Query }],
      })
      await setCursor(database, { number: 77, at: '2026-01-06T00:00:00Z' })
      await insertOperation(database, hashOf(7))
      await database.query("insert into index_block (number, hash) values (77, decode($1, 'hex'))", [
        hashOf(77).slice(2),
      ])
      await fill(1, 'Acme')
      await fill(2, 'Acme')
      const forAll = (await graphql.newKey(['read', 'taps'])).text
      expected = await answers(forAll)
      await fill(11, 'Bolt')
      await fill(12, undefined)
      await tapped(null)
      acme = (await graphql.newKey(['read', 'write', 'taps'], ['Acme'])).text
    })
    after(async () => {
      await dispatcher[Symbol.asyncDispose]()
      await graphql.end()
      await database.close()
    })

    /** Inserts a product with transfers, a history, taps, an anomaly and events. */
    async function fill(tokenId: number, brand: string | undefined): Promise<void> {
      const messageHash = hashOf(600 + tokenId)
      const state = tokenId % 2 === 0 ? 5 : 4
      const tagHash = hashOf(tokenId)
      const row = {
        tokenId,
        name: `Watch ${tokenId}`,
        tagId: `T-${tokenId}`,
        state,
        flags: tokenId % 2 === 0 ? 2 : 0,
        tagHash,
      }
      const assetPk = await insertAsset(database, { ...row, ...(brand !== undefined && { brand }) })
      await insertTransfer(database, { id: `${tokenId}-1`, assetPk, messageHash, expiresAt: '9999-01-01T00:00:00Z' })
      await database.query("insert into transfer_message (hash, body) values (decode($1, 'hex'), $2)", [
        messageHash.slice(2),
        `message ${tokenId}`,
      ])
      await insertEvent(database, { tokenId, block: tokenId, kind: eventKinds.AssetMinted })
      await insertEvent(database, { tokenId, block: tokenId, log: 1 })
      await insertEvent(database, { tokenId, block: tokenId, log: 2, kind: eventKinds.TransferInitiated })
      const offered = `update history set nonce = 1, from_addr = actor, to_addr = actor where token_id = $1::int and log_index = 2`
      await database.query(offered, [tokenId])
      await tapped(tagHash)
      await happened(tokenId)
    }
    async function tapped(tagHash: string | null): Promise<void> {
      await using log = createTapLog({ database, log: createLog(() => {}) })
      const tag = { tagHash: tagHash as `0x${string}` | null, country: 'FR' }
      if (tagHash === null) log.record({ ...tag, counter: null, jumpFrom: null, outcome: 'COUNTERFEIT_SUSPECTED' })
      else log.record({ ...tag, counter: 90, jumpFrom: 1, outcome: 'FRESH' })
    }
    async function happened(tokenId: number): Promise<void> {
      const text = `insert into outbox (topic, kind, token_id, payload) values ('tap', 'VERIFIED', $1::int, '{}')`
      await database.query(text, [tokenId])
    }
    /** The events of the dispatcher are up to date with the outbox. */
    async function caughtUp(): Promise<void> {
      const { seq } = await outboxStore(database).newest()
      while (dispatcher.newest().seq < seq) await new Promise((resolve) => setTimeout(resolve, 5))
    }
    async function answers(key: string): Promise<unknown[]> {
      await caughtUp()
      const found = []
      for (const query of reads) {
        const { data, errors } = await graphql.ask(query, undefined, key)
        assert.deepEqual(errors, [], query)
        found.push(data)
      }
      return found
    }

    it('read what there was before the products of others', async () => {
      for (const [index, answer] of (await answers(acme)).entries())
        assert.deepEqual(answer, expected[index], reads[index])
      assert.doesNotMatch(JSON.stringify(expected), /"product":null|"transfers":\[\]|"totalCount":0,"edges":\[\]/)
    })

    it('see more with another brand, and all products with none', async () => {
      const totalOf = async (brands: readonly string[] | null, filter = '') => {
        const { text } = await graphql.newKey(['read'], brands)
        const query = `{ products${filter} { totalCount edges { node { id } } } transfers { totalCount } }`
        const { data } = await graphql.ask(query, undefined, text)
        const found = data as unknown as {
          products: { totalCount: number; edges: unknown[] }
          transfers: { totalCount: number }
        }
        assert.equal(found.products.edges.length, found.products.totalCount)
        return [found.products.totalCount, found.transfers.totalCount]
      }
      assert.deepEqual(await totalOf(['Acme', 'Bolt']), [3, 3])
      assert.deepEqual(await totalOf(['Bolt']), [1, 1])
      assert.deepEqual(await totalOf(['Acm']), [0, 0])
      assert.deepEqual(await totalOf(['Watch', 'watch'], '(filter: { nameContains: "watch" })'), [0, 0])
      assert.deepEqual(await totalOf(null, '(filter: { nameContains: "watch" })'), [4, 4])
      assert.deepEqual(await totalOf(null), [4, 4])
    })

    it('find a product of another brand as little as one that does not exist', async () => {
      const other = lookups('11')
      for (const [index, query] of lookups('99').entries()) {
        const missing = await graphql.ask(query, undefined, acme)
        for (const asked of [other[index] ?? '', lookups('12')[index] ?? '']) {
          const found = await graphql.ask(asked, undefined, acme)
          assert.deepEqual([found.data, found.errors], [missing.data, missing.errors], asked)
        }
      }
    })

    it('get no message of another brand by its hash, which the chain shows and any owner can give to an own offer', async () => {
      const [own] = await database.query<{ pk: bigint }>('select pk from asset where token_id = 1')
      const offer = { id: '1-2', assetPk: own?.pk ?? 0n, messageHash: hashOf(611), initiatedTx: hashOf(8) }
      await insertTransfer(database, offer)
      const messageOf = async (key: string, id: string) =>
        (await graphql.ask(`{ transfer(id: "${id}") { message } }`, undefined, key)).data?.['transfer']
      const { text: bolt } = await graphql.newKey(['read'], ['Bolt'])
      assert.deepEqual(await messageOf(bolt, '11-1'), { message: 'message 11' })
      assert.deepEqual(await messageOf(acme, '1-2'), { message: null })
      assert.deepEqual(await messageOf(acme, '1-1'), { message: 'message 1' })
      await database.query("delete from transfer where id = '1-2'")
    })

    it('get no taps of a product that has another brand now, by a block at which it had theirs', async () => {
      const metadata = canonicalMetadata({ name: 'Sold', brand: 'Acme' })
      assert.ok(metadata.ok)
      await metadataStore(database).put(metadata)
      await insertAsset(database, { tokenId: 21, brand: 'Bolt', metadataHash: hashOf(2_100), tagHash: hashOf(21) })
      for (const [log, kind, data] of [
        [0, 1, metadata.hash],
        [1, 3, null],
        [2, 2, hashOf(21)],
      ] as const) {
        await insertEvent(database, { tokenId: 21, block: 21, log, kind })
        const text = `update history set data = decode($1, 'hex'), to_addr = decode($2, 'hex') where token_id = 21 and log_index = $3`
        await database.query(text, [data?.slice(2) ?? null, kind === 1 ? alice.slice(2) : null, log])
      }
      await tapped(hashOf(21))
      const query =
        '{ product(id: "21", block: { number: 77 }) { brand taps { totalCount edges { node { counter } } } } }'
      const tapsFor = async (brand: string) => {
        const { text } = await graphql.newKey(['read', 'taps'], [brand, 'Other'])
        return (await graphql.ask(query, undefined, text)).data?.['product']
      }
      assert.deepEqual(await tapsFor('Acme'), { brand: 'Acme', taps: { totalCount: 0, edges: [] } })
      for (const table of ['asset', 'history']) await database.query(`delete from ${table} where token_id = 21`)
      await recountProducts(database)
    })

    const costSkip = name === 'PGlite' ? false : 'PostgreSQL estimates small tables as small'
    it('are refused what reads too much of their products, not of those of others', { skip: costSkip }, async () => {
      const query = '{ products(filter: { gtin: "09520001000003", tagged: true }) { edges { cursor } } }'
      await database.query('insert into product_total (verified, n) values (false, 1e6)')
      assert.deepEqual((await graphql.ask(query, undefined, acme)).errors, [])
      await database.query("insert into product_count (brand, verified, n) values ('Acme', false, 1e6)")
      const { errors } = await graphql.ask(query, undefined, acme)
      assert.deepEqual(
        errors.map(({ message, extensions }) => [message, extensions]),
        [['This filter reads too much in this order. Narrow it, or sort by what it filters.', { code: 'TOO_COMPLEX' }]],
      )
      for (const sums of ['product_total', 'product_count']) await database.query(`delete from ${sums} where n = 1e6`)
    })

    it('change no product of another brand, and learn nothing from the refusal', async () => {
      for (const [field, input, about] of steps) {
        const ask = async (id: string) => {
          const query = `mutation { ${field}(input: { ${input.replace('ID', id)} }) { success txHash errors { field message } } }`
          const { data, errors } = await graphql.ask(query, undefined, acme)
          assert.deepEqual(errors, [])
          return data?.[field] as unknown
        }
        for (const id of ['11', '12', '99'])
          assert.deepEqual(await ask(id), {
            success: false,
            txHash: null,
            errors: [{ field: about, message: `Product ${id} does not exist.` }],
          })
        assert.deepEqual(called.splice(0), [], field)
        assert.deepEqual(await ask('1'), { success: true, txHash: null, errors: [] })
        assert.deepEqual(called.splice(0), [field])
      }
    })

    it('may do what the table says, for every mutation under every scope and brand, and nothing else', async () => {
      const all: typeof steps = [
        ...steps,
        ['registerProduct', 'tagId: "n", name: "n", brand: "Acme"', 'brand', ['mint']],
        ['approveRequest', 'approvalId: "k3x9a0qz12ab"', 'approvalId', ['approve']],
        ['rejectRequest', 'approvalId: "k3x9a0qz12ab"', 'approvalId', ['approve', 'recycle']],
      ]
      const root = graphql.schema.getMutationType()
      assert.deepEqual(all.map(([field]) => field).toSorted(), Object.keys(root?.getFields() ?? {}).toSorted())
      for (const scope of scopes) {
        const own = verbsOf([scope])
        for (const brands of [null, ['Acme'], ['Bolt'], ['Bolt', 'Acme']]) {
          const { text } = await graphql.newKey([scope], brands)
          for (const [field, input, about, needed] of all) {
            const query = `mutation { ${field}(input: { ${input.replace('ID', '1')} }) { success errors { field } } }`
            const { data, errors } = await graphql.ask(query, undefined, text)
            const isScoped = needed.some((verb) => own.includes(verb))
            const isOfBrand = brands === null || brands.includes('Acme') || about === 'approvalId'
            const wanted = isScoped && isOfBrand
            const label = `${field} with ${scope}, ${brands?.join(' and ') ?? 'all brands'}`
            assert.deepEqual(called.splice(0), wanted ? [field] : [], label)
            if (!isScoped)
              assert.deepEqual([errors.map(({ extensions }) => extensions['code']), data], [['FORBIDDEN'], null], label)
            else if (!wanted) assert.deepEqual(data, { [field]: { success: false, errors: [{ field: about }] } }, label)
          }
        }
      }
    })

    it('get nothing to sign for a product of another brand, whichever id names it', async () => {
      for (const input of [
        `action: INITIATE, productId: "11", toAddress: "${alice}"`,
        'action: RECYCLE, productId: "11", transferId: "1-1"',
        'action: CANCEL, productId: "1", transferId: "11-1"',
        'action: INVALIDATE, productId: "11", transferId: ""',
        `action: INITIATE, productId: "11", transferId: "x", toAddress: "${alice}"`,
        'action: ACCEPT, productId: "x", transferId: "11-1"',
      ]) {
        const { data } = await graphql.ask(`{ transferTypedData(input: { ${input} }) { success } }`, undefined, acme)
        assert.deepEqual(data, { transferTypedData: { success: false } }, input)
      }
      assert.deepEqual(called.splice(0), [])
    })

    it('register products of their brands only', async () => {
      const register = async (brand: string) => {
        const query = `mutation { registerProduct(input: { tagId: "n", name: "n" ${brand} }) { success errors { field message } } }`
        return (await graphql.ask(query, undefined, acme)).data?.['registerProduct'] as unknown
      }
      const message = 'This API key registers products of Acme only: send one as brand.'
      for (const brand of ['', 'brand: null', 'brand: "Bolt"', 'brand: "acme"'])
        assert.deepEqual(await register(brand), { success: false, errors: [{ field: 'brand', message }] }, brand)
      assert.deepEqual(called.splice(0), [])
      assert.deepEqual(await register('brand: "Acme"'), { success: true, errors: [] })
    })

    it('get the events of their brands only, live and since a position', async () => {
      const key = { id: 'testtest', name: 'test', scopes: ['read'], brands: ['Acme'] } as const
      const since = await graphql.ask('{ events(first: 1) { oldest } }', undefined, acme)
      const oldest = (since.data?.['events'] as { oldest: string } | undefined)?.oldest
      for (const after of ['', `(after: "${oldest}")`]) {
        const document = parse(`subscription { productVerified${after} { product { id } } }`)
        const contextValue = contextFactory(indexStores(database))(key, 'request')
        const stream = await subscribe({ schema: graphql.schema, document, contextValue })
        assert.ok(Symbol.asyncIterator in stream)
        const events = stream[Symbol.asyncIterator]()
        if (after !== '') for (const id of ['1', '2', '2']) assert.deepEqual(await tokenOf(events), id)
        for (const tokenId of [11, 12, 2]) await happened(tokenId)
        assert.deepEqual(await tokenOf(events), '2')
        await events.return?.()
      }
    })
    async function tokenOf(events: AsyncIterator<ExecutionResult>): Promise<unknown> {
      const { value } = (await events.next()) as {
        value: ExecutionResult<{ productVerified: { product: { id: string } } }>
      }
      return value.data?.productVerified.product.id
    }

    it('are unknown to a version without brands, which finds no scope of its own in them', async () => {
      const rows = await database.query<{ scopes: string[] }>('select scopes from api_key where brands is not null')
      assert.ok(rows.length > 0)
      for (const { scopes } of rows) assert.ok(!scopes.some((scope) => ['read', 'write', 'taps'].includes(scope)))
    })
  })
