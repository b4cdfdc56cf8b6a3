/** The index equals the chain (spec §2.9, §4.9) after random writes and reorganisations of any depth. */
import assert from 'node:assert/strict'
import { afterEach, describe, it } from 'node:test'
import fc from 'fast-check'
import { eventKinds } from '../../../src/domain/registry-event.ts'
import { quantity } from '../../../src/chain/rpc/answer.ts'
import { rebuildIndex } from '../../../src/index/store.ts'
import { createStory, wholeLife } from '../../support/index/story.ts'
import { startFaultRpc } from '../../support/fault-rpc.ts'
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

const acts = fc.array(fc.tuple(fc.nat(7), fc.nat(10_000)), { minLength: 40, maxLength: 60 })

for (const { name, open, skip } of testDatabases()) {
  const version = name === 'PGlite' ? 1 : 2
  describe(`the index of version ${version} of the contract in ${name}`, { skip }, () => {
    const database = useOpened(open)
    const chain = useOpened(() => startIndexChain({ version }))
    const proxy = useOpened(() => startFaultRpc({ target: chain.url }))
    afterEach(() => chain.endIndexers())

    it('equals the chain after random writes and reorganisations', async () => {
      const indexer = indexerOver(chain, database)
      indexer.start()
      let tags = 0
      const story = createStory(chain, () => hash((tags += 1)))
      await wholeLife(chain, hash(0xffff))
      await fc.assert(
        fc.asyncProperty(acts, async (list) => {
          for (const act of list) await story(act)
          await atHead(indexer, chain)
          await assertIndexIsChain(chain, database)
          await assertFeedIsIndex(database)
        }),
        { numRuns: name === 'PGlite' ? 8 : 4, endOnFailure: true },
      )
      assert.equal((await database.query('select distinct kind from history')).length, 9, 'every event occurred')
    })

    for (const depth of [1, 5, 50]) {
      it(`follows a reorganisation ${depth} deep`, async () => {
        const indexer = indexerOver(chain, database)
        indexer.start()
        for (let block = 0; block < depth; block += 1)
          await chain.send(operator.address, 'mint', [block % 2 ? alice.address : bob.address, hash(block)])
        assert.ok(await indexer.until(await chain.head(), 600_000))
        await chain.reorg(depth)
        await atHead(indexer, chain)
        await assertIndexIsChain(chain, database)
        assert.equal((await indexer.status()).rewound?.depth, BigInt(depth))
      })
    }

    it('takes no block for the one that replaced it, where a server behind the URL still has the old one', async () => {
      const indexer = indexerOver(chain, database, { source: chain.source({}, proxy.url) })
      await chain.send(operator.address, 'mint', [alice.address, hash(1)])
      assert.ok((await indexer.catchUp()).led)
      const at = quantity(await chain.head())
      const old = await chain.rpc('eth_getBlockByNumber', [at, false])
      await chain.reorg(1)
      const isOld = (method: string, [number]: readonly unknown[]) => method === 'eth_getBlockByNumber' && number === at
      proxy.set({
        when: isOld,
        times: 1,
        rewrite: (method, params, result) => (isOld(method, params) ? old : result),
      })
      await indexer.catchUp()
      assert.equal(proxy.struck(), 1)
      await chain.mine(1)
      await indexer.catchUp()
      await assertIndexIsChain(chain, database)
      await assertFeedIsIndex(database)
    })

    it('finds its way back from a reorganisation below every block that it kept', async () => {
      const indexer = indexerOver(chain, database)
      indexer.start()
      await chain.mine(40)
      await atHead(indexer, chain)
      const head = await chain.head()
      await database.query('delete from index_block where number between 5 and $1', [head])
      await chain.reorg(30)
      await atHead(indexer, chain)
      await assertIndexIsChain(chain, database)
      await database.query('delete from index_block')
      await chain.reorg(3)
      await atHead(indexer, chain)
      await assertIndexIsChain(chain, database)
      await assertFeedIsIndex(database)
    })

    it('begins at the block that the settings name, and stays as far behind the head as they say', async () => {
      for (let mint = 0; mint < 5; mint += 1) await chain.send(operator.address, 'mint', [alice.address, hash(1)])
      const [first] = await chain.events()
      const startBlock = BigInt(first?.log.blockNumber ?? 0)
      const behind = { startBlock, confirmations: 3n }
      await rebuildIndex(database)
      const [head, early] = [await chain.head(), indexerOver(chain, database, { ...behind, confirmations: 10_000n })]
      assert.deepEqual(await early.catchUp(), { led: true, indexed: -1n })
      await early.close()
      const indexer = indexerOver(chain, database, behind)
      assert.deepEqual(await indexer.catchUp(), { led: true, indexed: head - 3n })
      await chain.mine(3)
      for (const depth of [0, 2, 5]) {
        if (depth > 0) await chain.reorg(depth)
        assert.deepEqual(await indexer.catchUp(), { led: true, indexed: head })
        const there = await chain.rpc('eth_getBlockByNumber', [quantity(head), false])
        assert.equal((await indexer.status()).indexed?.hash, (there as { hash: string }).hash)
      }
      assert.equal((await indexer.status()).rewound?.depth, 2n)
      await indexer.close()
      await indexerOver(chain, database, { startBlock }).catchUp()
      await assertIndexIsChain(chain, database)
      const kept = await database.query<{ first: bigint }>('select min(number) as first from index_block')
      assert.deepEqual(kept, [{ first: startBlock - 1n }])
    })

    it('announces an offer that expires by the clock of the chain alone', async () => {
      const indexer = indexerOver(chain, database)
      indexer.start()
      await chain.send(operator.address, 'mint', [alice.address, hash(1)])
      const id = (await chain.events()).findLast(({ kind }) => kind === eventKinds.AssetMinted)?.args['tokenId']
      const { timestamp } = (await chain.rpc('eth_getBlockByNumber', ['latest', false])) as { timestamp: string }
      const expiry = BigInt(Math.max(Number(timestamp), Math.ceil(Date.now() / 1_000))) + 10_000n
      assert.ok(await chain.send(alice.address, 'initiateTransfer', [id, bob.address, expiry, hash(0)]))
      await atHead(indexer, chain)
      await indexer.close()
      await chain.rpc('evm_increaseTime', [100_000])
      await chain.mine(1)
      await rebuildIndex(database)
      await indexerOver(chain, database).catchUp()
      await assertFeedIsIndex(database)
    })

    it('is the same when it is built anew', async () => {
      const before = await database.query(tokens)
      await rebuildIndex(database)
      const indexer = indexerOver(chain, database, { rangeLogs: 40 })
      assert.deepEqual(await indexer.catchUp(), { led: true, indexed: await chain.head() })
      await assertIndexIsChain(chain, database)
      assert.deepEqual(await database.query(tokens), before)
      await assertFeedIsIndex(database)
    })
  })
}

/** An offer may run out between two looks, so open ones and those that ran out are the same here. */
const tokens = `select a.token_id, a.owner, a.state, a.flags, a.created_at, a.updated_at, a.updated_block, a.tag_id, t.id,
  case when t.settled_at is null or t.settled_at = t.expires_at then 'PENDING' else t.status end as status,
  t.initiated_at, nullif(t.settled_at, t.expires_at) as settled_at, t.settled_tx, t.expires_at
  from asset a left join transfer t on t.token_id = a.token_id order by 1, t.initiated_at, t.id`
