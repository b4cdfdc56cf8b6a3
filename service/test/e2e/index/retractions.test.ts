/** Retractions of events (spec §5, §6) reach the keys that got the events, on a real chain. */
import assert from 'node:assert/strict'
import { afterEach, before, beforeEach, describe, it } from 'node:test'
import type { Hex } from '@touchstone/verdict'
import { canonicalMetadata } from '../../../src/assets/metadata.ts'
import { metadataStore } from '../../../src/assets/metadata-store.ts'
import type { Indexer } from '../../../src/chain/indexer/indexer.ts'
import type { Database } from '../../../src/db/database.ts'
import { refreshAssetText } from '../../../src/index/assets/texts.ts'
import { outboxStore, parsePosition } from '../../../src/index/outbox.ts'
import { rebuildIndex } from '../../../src/index/store.ts'
import { testDatabases } from '../../support/database/databases.ts'
import { startSockets, subscribe } from '../../support/graphql/socket.ts'
import { alice, atHead, bob, hash, indexerOver, operator, startIndexChain } from '../../support/index/world.ts'
import { useOpened } from '../../support/opened.ts'
import { until } from '../../support/wait.ts'

type Event = Readonly<{
  position: string
  kind: string
  productId: string
  retracts: string | null
  product: { id: string; brand: string | null } | null
  transfer: { status: string } | null
}>

const fields = 'position kind productId retracts product { id brand } transfer { status }'
const brands = ['Acme', 'Bolt'] as const

for (const { name, open, skip } of testDatabases())
  describe(`retractions for keys with brands in ${name}`, { skip }, () => {
    const database = useOpened(open)
    const chain = useOpened(startIndexChain)
    const world = useOpened(() => startSockets(database))
    let indexer: Indexer
    const metadata = new Map<string, { body: string; hash: Hex }>()
    const keys = new Map<string, string>()
    before(async () => {
      for (const brand of brands) {
        const made = canonicalMetadata({ name: `A watch of ${brand}`, brand })
        assert.ok(made.ok)
        metadata.set(brand, made)
        keys.set(brand, (await world.newKey(['read'], [brand])).text)
      }
      await Promise.all([...metadata.values()].map((one) => metadataStore(database).put(one)))
    })
    beforeEach(async () => {
      start()
      await atHead(indexer, chain)
    })
    afterEach(() => indexer.close())

    const start = () => {
      indexer = indexerOver(chain, database, { pruneMs: 50 })
      indexer.start()
    }
    const mintOf = async (brand: string) => {
      assert.ok(await chain.send(operator.address, 'mint', [alice.address, metadata.get(brand)?.hash ?? hash(0)]))
      return String((await chain.events()).at(-1)?.args['tokenId'])
    }
    const newest = async () => {
      await atHead(indexer, chain)
      const { seq } = await outboxStore(database).newest()
      let position = ''
      await until(async () => {
        const { data } = await world.ask('{ events(first: 0) { newest } }')
        position = (data?.['events'] as { newest: string } | undefined)?.newest ?? ''
        return (parsePosition(position)?.seq ?? -1n) >= seq
      })
      return position
    }
    /** All events of a brand's key since a position, in pages. */
    const eventsSince = async (after: string, brand: string): Promise<Event[]> => {
      await newest()
      const query = `query ($after: ID) { events(after: $after, first: 3) {
        edges { node { ${fields} } } pageInfo { hasNextPage endCursor } } }`
      const found: Event[] = []
      for (let from = after; ;) {
        const { data, errors } = await world.ask(query, { after: from }, keys.get(brand))
        assert.deepEqual(errors, [])
        const page = data?.['events'] as unknown as {
          edges: { node: Event }[]
          pageInfo: { hasNextPage: boolean; endCursor: string }
        }
        found.push(...page.edges.map(({ node }) => node))
        if (!page.pageInfo.hasNextPage) return found
        from = page.pageInfo.endCursor
      }
    }
    /** Subscribes with the key of a brand. */
    const listen = (brand: string, after: string) =>
      subscribe<{ events: Event }>(
        world.connect(keys.get(brand)),
        `subscription ($after: ID) { events(after: $after) { ${fields} } }`,
        { after },
      )
    const holding = (events: readonly Event[]) => {
      const taken = new Set(events.flatMap(({ retracts }) => retracts ?? []))
      return events.filter(({ position, retracts }) => retracts === null && !taken.has(position))
    }
    const shown = (events: readonly Event[]) =>
      events.map(({ kind, retracts, product }) => `${retracts === null ? '' : 'not '}${kind} ${product?.brand ?? '–'}`)

    it('go to the key that got the events, where the product is gone and then another brand has its id', async () => {
      const since = await newest()
      const [acme, bolt] = [listen('Acme', since), listen('Bolt', since)]
      const id = await mintOf('Acme')
      const before = await eventsSince(since, 'Acme')
      assert.deepEqual(shown(before), ['REGISTERED Acme', 'STATE_CHANGED Acme'])
      await until(() => acme.events.length === 2)

      await chain.reorg(1)
      const retracted = await eventsSince(since, 'Acme')
      assert.deepEqual(shown(retracted), ['REGISTERED –', 'STATE_CHANGED –', 'not STATE_CHANGED –', 'not REGISTERED –'])
      await until(() => acme.events.length === 4)

      assert.equal(await mintOf('Bolt'), id)
      assert.deepEqual(shown(await eventsSince(since, 'Acme')), shown(retracted))
      assert.deepEqual(shown(await eventsSince(since, 'Bolt')), ['REGISTERED Bolt', 'STATE_CHANGED Bolt'])
      await until(() => bolt.events.length === 2)
      assert.deepEqual(shown(bolt.events.map(({ events }) => events)), ['REGISTERED Bolt', 'STATE_CHANGED Bolt'])
      const live = acme.events.map(({ events }) => events)
      assert.deepEqual(shown(live), [
        'REGISTERED Acme',
        'STATE_CHANGED Acme',
        'not STATE_CHANGED –',
        'not REGISTERED –',
      ])
      assert.deepEqual(holding(live), [])
      acme.stop()
      bolt.stop()
    })

    it('show nothing of the other brand, in one step from brand to brand', async () => {
      const since = await newest()
      const id = await mintOf('Acme')
      await chain.send(alice.address, 'initiateTransfer', [id, bob.address, 2n ** 40n, hash(3)])
      assert.equal((await eventsSince(since, 'Acme')).length, 3)
      await newest()
      const query = `subscription ($after: ID) { events(after: $after) {
        ${fields} other: transfer { product { id brand } } cause { type } } }`
      const client = world.connect(keys.get('Acme'))
      const live = subscribe<{ events: Event & { other: unknown } }>(client, query, { after: await newest() })
      await indexer.close()
      await chain.reorg(2)
      assert.equal(await mintOf('Bolt'), id)
      start()
      const acme = await eventsSince(since, 'Acme')
      assert.deepEqual(shown(acme), [
        'REGISTERED –',
        'STATE_CHANGED –',
        'TRANSFER –',
        'not TRANSFER –',
        'not STATE_CHANGED –',
        'not REGISTERED –',
      ])
      assert.deepEqual(holding(acme), [])
      assert.deepEqual(shown(await eventsSince(since, 'Bolt')), ['REGISTERED Bolt', 'STATE_CHANGED Bolt'])
      const errors = (await live.ended) as readonly { path: readonly string[]; extensions: { code: string } }[]
      assert.deepEqual(
        errors.map(({ path, extensions }) => [path.join('.'), extensions.code]),
        [['events.other.product', 'NOT_FOUND']],
      )
      assert.ok(live.events.every(({ events }) => events.product === null && events.other === null))
    })

    it('go to the keys of both brands, where the product had both while the event held', async () => {
      const since = await newest()
      const id = await mintOf('Acme')
      assert.equal((await eventsSince(since, 'Acme')).length, 2)
      assert.ok(await chain.send(operator.address, 'setMetadataHash', [id, metadata.get('Bolt')?.hash]))
      assert.deepEqual(shown(await eventsSince(since, 'Bolt')), [
        'REGISTERED Bolt',
        'STATE_CHANGED Bolt',
        'METADATA_SET Bolt',
      ])
      await chain.reorg(2)
      for (const brand of brands) assert.deepEqual(holding(await eventsSince(since, brand)), [], brand)
      const retracted = async (brand: string) =>
        (await eventsSince(since, brand)).flatMap(({ kind, retracts }) => (retracts === null ? [] : [kind]))
      assert.deepEqual(await retracted('Bolt'), ['METADATA_SET', 'STATE_CHANGED', 'REGISTERED'])
      assert.deepEqual(await retracted('Acme'), ['STATE_CHANGED', 'REGISTERED'])
    })

    it('concern no key that reads the events of the former brand while the reorganisation comes', async () => {
      const after = parsePosition(await newest())?.seq ?? 0n
      const id = await mintOf('Acme')
      const upTo = parsePosition(await newest())?.seq ?? 0n
      await indexer.close()
      let reads = 0
      const query: Database['query'] = async (text, values) => {
        if (/from asset/.test(text) && (reads += 1) === 1) {
          await chain.reorg(1)
          assert.equal(await mintOf('Bolt'), id)
          start()
          await atHead(indexer, chain)
        }
        return database.query(text, values)
      }
      const outbox = outboxStore({ ...database, query })
      const page = await outbox.range({ after, upTo, limit: 10, brands: ['Bolt'] })
      assert.deepEqual([page?.events, reads], [[], 1])
      assert.deepEqual((await outbox.range({ after, upTo, limit: 10, brands: ['Acme'] }))?.events.length, 2)
    })

    it('go to the key of a brand that came with metadata after the events', async () => {
      const since = await newest()
      const late = canonicalMetadata({ name: 'Late', brand: 'Acme' })
      assert.ok(late.ok)
      assert.ok(await chain.send(operator.address, 'mint', [alice.address, late.hash]))
      assert.deepEqual(await eventsSince(since, 'Acme'), [])
      await metadataStore(database).put(late)
      await refreshAssetText(database, late.hash)
      assert.equal((await eventsSince(since, 'Acme')).length, 2)
      await chain.reorg(1)
      const acme = await eventsSince(since, 'Acme')
      assert.deepEqual([acme.length, holding(acme).length], [4, 0])
      assert.deepEqual(await eventsSince(since, 'Bolt'), [])
    })

    it('go to the key of a brand that came with metadata after the events, and that is replaced since', async () => {
      const since = await newest()
      const late = canonicalMetadata({ name: 'Late and replaced', brand: 'Acme' })
      assert.ok(late.ok)
      assert.ok(await chain.send(operator.address, 'mint', [alice.address, late.hash]))
      const id = (await chain.events()).at(-1)?.args['tokenId']
      await newest()
      await metadataStore(database).put(late)
      await refreshAssetText(database, late.hash)
      assert.equal((await eventsSince(since, 'Acme')).length, 2)
      assert.ok(await chain.send(operator.address, 'setMetadataHash', [id, metadata.get('Bolt')?.hash]))
      assert.equal((await eventsSince(since, 'Bolt')).length, 3)
      await chain.reorg(2)
      const acme = await eventsSince(since, 'Acme')
      assert.deepEqual(shown(acme), ['REGISTERED –', 'STATE_CHANGED –', 'not STATE_CHANGED –', 'not REGISTERED –'])
      assert.deepEqual(holding(await eventsSince(since, 'Bolt')), [])
    })

    it('go to the same key after the index was built anew on another branch', async () => {
      const since = await newest()
      const id = await mintOf('Acme')
      assert.equal((await eventsSince(since, 'Acme')).length, 2)
      await indexer.close()
      await rebuildIndex(database)
      await chain.reorg(1)
      assert.equal(await mintOf('Bolt'), id)
      start()
      await until(async () => {
        const [row] = await database.query<{ isFed: boolean }>('select fed_epoch = epoch as "isFed" from index_cursor')
        return row?.isFed === true
      })
      const acme = await eventsSince(since, 'Acme')
      assert.deepEqual([acme.length, holding(acme).length], [4, 0])
      assert.deepEqual(shown(await eventsSince(since, 'Bolt')), ['REGISTERED Bolt', 'STATE_CHANGED Bolt'])
    })

    it('go to the brand before the reorganisation, where a version without brands of events wrote the event', async () => {
      const since = await newest()
      await mintOf('Acme')
      await newest()
      await database.query('update outbox set brands = null')
      await chain.reorg(1)
      const acme = await eventsSince(since, 'Acme')
      assert.deepEqual([acme.length, holding(acme).length], [4, 0])
    })
  })
