/** Announcements of the index (spec §6), and what the operator adds to it (spec §4.9): registrations, items, names, taps. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { before, describe, it } from 'node:test'
import type { Hex } from '@touchstone/verdict'
import type { Indexer } from '../../../src/chain/indexer/indexer.ts'
import { operationStore } from '../../../src/chain/transactions/operations.ts'
import { registrationStore } from '../../../src/graphql/mutations/stores.ts'
import { historyStore } from '../../../src/index/history.ts'
import { refreshAssetItem } from '../../../src/index/assets/registrations.ts'
import { refreshAssetText } from '../../../src/index/assets/texts.ts'
import { indexStore, rebuildIndex } from '../../../src/index/store.ts'
import { itemStore } from '../../../src/assets/items.ts'
import { canonicalMetadata } from '../../../src/assets/metadata.ts'
import { metadataStore } from '../../../src/assets/metadata-store.ts'
import { createReplayLedger, createTapAnnouncement } from '../../../src/tap/replay-ledger.ts'
import { testDatabases } from '../../support/database/databases.ts'
import {
  alice,
  assertFeedIsIndex,
  assertIndexIsChain,
  atHead,
  bob,
  hash,
  indexerOver,
  operator,
  startIndexChain,
} from '../../support/index/world.ts'
import { useOpened } from '../../support/opened.ts'
import { until } from '../../support/wait.ts'

const far = 2n ** 64n - 1n

for (const { name, open, skip } of testDatabases()) {
  describe(`changes of the index in ${name}`, { skip }, () => {
    const database = useOpened(open)
    const chain = useOpened(startIndexChain)
    let indexer: Indexer
    before(async () => {
      indexer = indexerOver(chain, database, { pruneMs: 50 })
      indexer.start()
    })

    const indexed = () => atHead(indexer, chain)
    async function mint(metadataHash: Hex = hash(0)): Promise<bigint> {
      assert.ok(await chain.send(operator.address, 'mint', [alice.address, metadataHash]))
      await indexed()
      const [row] = await database.query<{ token_id: string }>('select max(token_id)::text as token_id from asset')
      return BigInt(row?.token_id ?? 0)
    }
    const offer = (id: bigint, expiry: bigint = far) =>
      chain.send(alice.address, 'initiateTransfer', [id, bob.address, expiry, hash(0)])
    const rebuild = async () => {
      await indexer.close()
      await rebuildIndex(database)
      indexer = indexerOver(chain, database, { pruneMs: 50 })
      indexer.start()
      await indexed()
    }
    /** A tap that is accepted, and announced for a token. */
    const tap = async (id: bigint, tagHash: Hex, counter = 1) => {
      const uid = new Uint8Array(7).fill(Number(id % 256n))
      const { outcome } = await createReplayLedger({ sql: database }).consume({
        uid,
        epoch: 0,
        counter,
        picc: randomBytes(16),
        batchId: 'batch',
      })
      assert.equal(outcome, 'FRESH')
      const resolved = { uid: Buffer.from(uid).toString('hex'), epoch: 0, tapCounter: counter, tokenId: id, tagHash }
      assert.equal(await createTapAnnouncement(database)(resolved), true)
    }
    const announced = async (id: bigint) => {
      await indexed()
      const rows = await database.query<{ said: string }>(
        `select payload->>'id' || ' ' || (payload->>'status') as said from outbox where topic = 'transfer' and token_id = $1::numeric order by seq`,
        [id.toString()],
      )
      return rows.map(({ said }) => said)
    }
    const product = async (id: bigint) => {
      const [row] = await database.query<Record<string, unknown>>(
        `select tag_id, name, brand, serial, gtin, tapped_at is not null as tapped, verified, state from asset where token_id = $1::numeric`,
        [id.toString()],
      )
      return row
    }

    it('announce every status of a transfer once', async () => {
      const id = await mint()
      await offer(id)
      assert.deepEqual(await announced(id), [`${id}-1 PENDING`])
      await chain.send(bob.address, 'acceptTransfer', [id])
      assert.deepEqual(await announced(id), [`${id}-1 PENDING`, `${id}-1 CONFIRMED`])
      await chain.send(bob.address, 'initiateTransfer', [id, alice.address, far, hash(0)])
      await chain.send(alice.address, 'cancelTransfer', [id])
      assert.deepEqual((await announced(id)).slice(2), [`${id}-2 PENDING`, `${id}-2 FAILED`])
    })

    it('announce an offer and its end in one step as two events', async () => {
      const id = await mint()
      await indexer.close()
      await offer(id)
      await chain.send(alice.address, 'cancelTransfer', [id])
      await offer(id)
      await chain.send(bob.address, 'acceptTransfer', [id])
      indexer = indexerOver(chain, database, { pruneMs: 50 })
      indexer.start()
      const statuses = [`${id}-1 PENDING`, `${id}-1 FAILED`, `${id}-2 PENDING`, `${id}-2 CONFIRMED`]
      assert.deepEqual(await announced(id), statuses)
    })

    it('announce what a reorganisation takes back, and nothing that it leaves', async () => {
      const [lost, left] = [await mint(), await mint()]
      await offer(left)
      await indexed()
      await offer(lost)
      await chain.send(bob.address, 'acceptTransfer', [left])
      assert.deepEqual(
        [(await announced(lost)).at(-1), (await announced(left)).at(-1)],
        [`${lost}-1 PENDING`, `${left}-1 CONFIRMED`],
      )
      await chain.reorg(2)
      assert.deepEqual(await announced(lost), [`${lost}-1 PENDING`, `${lost}-1 FAILED`])
      assert.deepEqual(await announced(left), [`${left}-1 PENDING`, `${left}-1 CONFIRMED`, `${left}-1 PENDING`])
      await assertIndexIsChain(chain, database)
    })

    it('announce that an offer has expired, though no block contains it', async () => {
      const id = await mint()
      const { timestamp } = (await chain.rpc('eth_getBlockByNumber', ['latest', false])) as { timestamp: Hex }
      await offer(id, BigInt(timestamp) + 3_600n)
      assert.deepEqual(await announced(id), [`${id}-1 PENDING`])
      await chain.rpc('evm_increaseTime', [7_200])
      await chain.mine(1)
      await until(async () => (await announced(id)).length === 2)
      assert.deepEqual(await announced(id), [`${id}-1 PENDING`, `${id}-1 FAILED`])
      await assertIndexIsChain(chain, database)
      await chain.send(alice.address, 'cancelTransfer', [id])
      assert.equal((await announced(id)).length, 2, 'withdrawing it then changes nothing')
    })

    it('are announced once, also when the index is built anew', async () => {
      await indexed()
      const before = await database.query('select * from outbox order by seq')
      await rebuild()
      assert.deepEqual(await database.query('select * from outbox order by seq'), before)
      await assertIndexIsChain(chain, database)
      await assertFeedIsIndex(database)
    })

    it('are not announced when they are older than the service', async () => {
      await indexer.close()
      await database.query('delete from outbox')
      await rebuildIndex(database)
      await database.query('update index_cursor set fed_since = null')
      const store = indexStore(database, { now: () => Date.now() + 14_400_000 })
      indexer = indexerOver(chain, database, { store, pruneMs: 50 })
      indexer.start()
      await indexed()
      assert.deepEqual(await database.query('select * from outbox'), [])
      await assertIndexIsChain(chain, database)
    })

    it('give a registration the token of its mint, and take it back with the mint', async () => {
      const metadata = canonicalMetadata({ name: 'Bag <b>', brand: 'Mar\u200Bk\u0007' })
      assert.ok(metadata.ok)
      await metadataStore(database).put(metadata)
      await chain.automine(false)
      const data = chain.encode('mint', [alice.address, metadata.hash])
      const call = { from: operator.address, to: chain.contract, data, gas: '0x100000' }
      const sent = (await chain.rpc('eth_sendTransaction', [call])) as Hex
      await database.query(`insert into registration (idempotency_key, request_hash, tag_id, serial, gtin, metadata_hash)
        values ('k', decode('${'00'.repeat(32)}', 'hex'), 'Bag 1', 'S1', '09506000134352', decode('${metadata.hash.slice(2)}', 'hex'))`)
      const signer = `decode('${operator.address.slice(2)}', 'hex')`
      await database.query(`insert into signer (address) values (${signer})`)
      // The transaction was replaced, and the first one is mined all the same.
      await database.query(`insert into operation (idempotency_key, request_hash, kind, signer, nonce, tx_hash, raw)
        values ('register:k', decode('${'00'.repeat(32)}', 'hex'), 'mint', ${signer}, 1, decode('${'01'.repeat(32)}', 'hex'), '')`)
      await database.query(
        `insert into replaced_transaction select decode('${sent.slice(2)}', 'hex'), pk from operation`,
      )
      await chain.mine(1)
      await chain.automine(true)
      await indexed()

      const [row] = await database.query<{ token_id: string }>(
        `select token_id from registration where idempotency_key = 'k'`,
      )
      const id = BigInt(row?.token_id ?? 0)
      assert.ok(id > 0n)
      const expected = {
        tag_id: 'Bag 1',
        name: 'Bag <b>',
        brand: 'Mark',
        serial: 'S1',
        gtin: '09506000134352',
        tapped: false,
        verified: false,
        state: 1,
      }
      assert.deepEqual(await product(id), expected)
      assert.deepEqual(await database.query('select token_id::text, gtin, serial from item'), [
        { token_id: String(id), gtin: '09506000134352', serial: 'S1' },
      ])

      // Another mint may get the id of the counter on another branch.
      await indexer.close()
      await rebuildIndex(database)
      assert.equal(await itemStore(database).itemOfToken(id), null)
      await rebuild()
      assert.deepEqual(await product(id), expected)

      await chain.reorg(1)
      await indexed()
      assert.equal(await product(id), undefined)
      assert.deepEqual(await database.query('select token_id from registration'), [{ token_id: null }])
      assert.deepEqual(await database.query('select 1 from item'), [])
      await assertIndexIsChain(chain, database)
    })

    it('leave a registration its token while the index is rebuilt, unless the chain has no such mint any more', async () => {
      const [id, key, item] = [10n ** 14n + 7n, 'own id', { gtin: '09506000134352', serial: 'S7' }]
      assert.ok(await chain.send(operator.address, 'mintWithId', [alice.address, id, hash(0)]))
      await indexed()
      const [mint] = (await historyStore(database).of(id))?.rows ?? []
      const registration = { key, requestHash: hash(1), tagId: 'Bag 7', ...item, metadataHash: hash(0) }
      await registrationStore(database).add(registration)
      await operationStore(database).append(
        { key: `register:${key}`, requestHash: hash(1), kind: 'mintWithId', signer: operator.address, fromNonce: 7n },
        () => Promise.resolve({ txHash: mint?.transactionHash ?? hash(0), raw: '0x' }),
      )
      const items = itemStore(database)
      const assertRegistered = async () => {
        assert.deepEqual(await items.itemOfToken(id), item)
        assert.equal(await items.tokenOfItem(item), id)
      }
      await rebuild()
      await assertRegistered()
      await indexer.close()
      await rebuildIndex(database)
      await assertRegistered()
      await rebuild()
      await assertRegistered()
      const { serial, tag_id } = (await product(id)) ?? {}
      assert.deepEqual([serial, tag_id], [item.serial, 'Bag 7'])

      await indexer.close()
      await chain.reorg(1)
      await rebuild()
      await until(async () => (await items.itemOfToken(id)) === null)
      assert.equal(await items.tokenOfItem(item), null)
      assert.deepEqual(await database.query('select 1 from registration where token_id is not null'), [])
    })

    it('show what is registered later, and the tag commitment until then', async () => {
      const metadata = canonicalMetadata({ name: 'Later' })
      assert.ok(metadata.ok)
      const id = await mint(metadata.hash)
      await database.query('insert into asset_tap (token_id) values ($1::numeric)', [(id + 1n).toString()])
      await chain.send(operator.address, 'bindTag', [id, hash(77)])
      await indexed()
      const bare = {
        tag_id: hash(77),
        name: null,
        brand: null,
        serial: null,
        gtin: null,
        tapped: false,
        verified: false,
        state: 2,
      }
      assert.deepEqual(await product(id), bare)
      await metadataStore(database).put(metadata)
      await refreshAssetText(database, metadata.hash)
      await database.query(`insert into item (token_id, gtin, serial) values ($1::numeric, '09506000134352', 'S2')`, [
        id.toString(),
      ])
      await refreshAssetItem(database, id)
      assert.deepEqual(await product(id), { ...bare, name: 'Later', serial: 'S2', gtin: '09506000134352' })
      const tapped = await mint()
      await chain.send(operator.address, 'bindTag', [tapped, hash(78)])
      await indexed()
      const { tapped: isTapped, verified } = (await product(tapped)) ?? {}
      assert.deepEqual([isTapped, verified], [true, true])
    })

    it('keep a tap with its tag, whatever is bound later', async () => {
      const [id, bind] = [await mint(), (tag: Hex) => chain.send(operator.address, 'bindTag', [id, tag])]
      const state = async () => {
        await indexed()
        const { tapped, verified } = (await product(id)) ?? {}
        return { tapped, verified }
      }
      await bind(hash(81))
      await indexed()
      await tap(id, hash(81))
      assert.deepEqual(await state(), { tapped: true, verified: true })
      await chain.reorg(1)
      assert.equal((await state()).verified, false)
      await bind(hash(81))
      assert.deepEqual(await state(), { tapped: true, verified: true })
      await chain.reorg(1)
      await bind(hash(82))
      assert.deepEqual(await state(), { tapped: false, verified: false })
      await rebuild()
      assert.deepEqual(await state(), { tapped: false, verified: false })
      await tap(id, hash(82), 2)
      await rebuild()
      assert.deepEqual(await state(), { tapped: true, verified: true })
      await assertIndexIsChain(chain, database)
    })

    it('lose a tap where the same token of another contract has another tag', async () => {
      const other = await startIndexChain()
      try {
        const [same, moved, early] = [await mint(), await mint(), (await mint()) + 1n]
        for (const [id, tag] of [
          [same, hash(83)],
          [moved, hash(84)],
        ] as const)
          await chain.send(operator.address, 'bindTag', [id, tag])
        await indexed()
        await tap(same, hash(83))
        await tap(moved, hash(84))
        // A version before did not know the tag of a product that it did not index.
        await database.query('insert into asset_tap (token_id) values ($1)', [early.toString()])
        await indexer.close()
        await rebuildIndex(database)
        // Every test chain has its contract at the same address.
        await database.query('update index_cursor set contract = $1', [new Uint8Array(20)])
        for (let id = 1n; id <= early; id += 1n) await other.send(operator.address, 'mint', [alice.address, hash(0)])
        for (const [id, tag] of [
          [same, hash(83)],
          [moved, hash(85)],
          [early, hash(86)],
        ] as const)
          await other.send(operator.address, 'bindTag', [id, tag])
        indexer = indexerOver(other, database)
        indexer.start()
        await atHead(indexer, other)
        const verified = await Promise.all([same, moved, early].map(async (id) => (await product(id))?.['verified']))
        assert.deepEqual(verified, [true, false, false])
      } finally {
        await rebuild()
        await other.close()
      }
    })

    it('take no altered metadata', async () => {
      const metadata = canonicalMetadata({ name: 'Real' })
      assert.ok(metadata.ok)
      await database.query(`insert into metadata (hash, body) values (decode($1, 'hex'), '{"name":"False"}')`, [
        metadata.hash.slice(2),
      ])
      assert.equal((await product(await mint(metadata.hash)))?.['name'], null)
    })

    it('name the account that minted each token, of those that are asked for', async () => {
      const history = historyStore(database)
      const ids = [await mint(hash(5)), await mint(hash(6))]
      await indexed()
      const head = await chain.head()
      const minter = operator.address.toLowerCase() as Hex
      const other = `0x${'ab'.repeat(20)}` as const
      const of = async (accounts: readonly Hex[], upTo = head) =>
        [...(await history.mintersOf([...ids, 10_000n], accounts, upTo)).entries()].toSorted(([a], [b]) =>
          Number(a - b),
        )
      assert.deepEqual(
        await of([other, minter]),
        ids.map((id) => [id, minter]),
      )
      assert.deepEqual(
        await of([other]),
        ids.map((id) => [id, null]),
      )
      assert.deepEqual(await of([minter], 0n), [])
    })

    it('are read by one statement where the histories of several tokens are asked for at one time', async () => {
      const ids = [await mint(hash(7)), await mint(hash(8)), 10_000n]
      await chain.send(operator.address, 'setMetadataHash', [ids[1], hash(9)])
      await indexed()
      const head = await chain.head()
      let statements = 0
      const counted: typeof database = {
        ...database,
        query: (...given) => {
          statements += 1
          return database.query(...given)
        },
      }
      const history = historyStore(counted)
      const [first, second, none, some] = await Promise.all([
        ...ids.map((id) => history.of(id, 1_000, head)),
        history.of(ids[1] ?? 0n, 2),
      ])
      const kindsOf = (found: typeof first | undefined) =>
        found?.rows.map(({ tokenId, kind }) => [BigInt(tokenId), kind])
      if (database.dialect !== 'citus') assert.equal(statements, 1)
      assert.deepEqual(
        [first, second, none, some].map(kindsOf),
        [[9, 1, 3], [9, 1, 3, 6], [], [9, 1]].map((kinds, index) => kinds.map((kind) => [ids[index] ?? ids[1], kind])),
      )
      const cursor = await history.cursor()
      assert.equal(cursor?.number, head)
      for (const found of [first, second, none, some]) assert.deepEqual(found?.cursor, cursor)
      assert.deepEqual(
        [first, second, none, some].map((found) => found?.hashAt),
        [cursor?.hash, cursor?.hash, cursor?.hash, null],
      )
    })

    it('are a history that names its block', async () => {
      const history = historyStore(database)
      const id = await mint(hash(4))
      const found = await history.of(id)
      assert.deepEqual(
        found?.rows.map(({ kind }) => kind),
        [9, 1, 3],
      )
      const cursor = await history.cursor()
      assert.equal(cursor?.number, await chain.head())
      assert.deepEqual(found?.cursor, cursor)
      assert.deepEqual((await history.of(10_000n))?.rows, [])
      assert.equal((await history.of(id, 2))?.rows.length, 2)
    })
  })
}
