/** The index equals the chain (spec §2.9, §4.9) after random writes and reorganisations of any depth. */
import assert from 'node:assert/strict'
import { after, afterEach, before, describe, it } from 'node:test'
import type { Hex } from '@touchstone/verdict'
import fc from 'fast-check'
import type { Database } from '../../../src/db/database.ts'
import { rebuildIndex } from '../../../src/index/store.ts'
import { testDatabases } from '../../support/database/databases.ts'
import {
  alice,
  assertIndexIsChain,
  atHead,
  bob,
  hash,
  indexerOver,
  operator,
  startIndexChain,
  type IndexChain,
} from '../../support/index/world.ts'

/** A step of the story: a number chooses the token, the other what is done to it. */
type Act = readonly [token: number, choice: number]
const acts = fc.array(fc.tuple(fc.nat(7), fc.nat(10_000)), { minLength: 40, maxLength: 60 })

for (const { name, open, skip } of testDatabases()) {
  describe(`the index in ${name}`, { skip }, () => {
    let chain: IndexChain
    let database: Database
    before(async () => {
      ;[chain, database] = await Promise.all([startIndexChain(), open()])
    })
    afterEach(() => chain.endIndexers())
    after(async () => {
      await Promise.all([chain.close(), database.close()])
    })

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
        }),
        { numRuns: name === 'PGlite' ? 8 : 4, endOnFailure: true },
      )
      assert.equal((await database.query('select distinct kind from history')).length, 9, 'every event occurred')
      await indexer.close()
    })

    for (const depth of [1, 5, 50]) {
      it(`follows a reorganisation ${depth} deep`, async () => {
        const indexer = indexerOver(chain, database)
        indexer.start()
        for (let block = 0; block < depth; block += 1)
          await chain.send(operator.address, 'mint', [block % 2 ? alice.address : bob.address, hash(block)])
        assert.ok(await indexer.until(await chain.head(), 120_000))
        await chain.reorg(depth)
        await atHead(indexer, chain)
        await assertIndexIsChain(chain, database)
        assert.equal((await indexer.status()).rewound?.depth, BigInt(depth))
        await indexer.close()
      })
    }

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
      await indexer.close()
    })

    it('is the same when it is built anew', async () => {
      const before = await database.query(tokens)
      await rebuildIndex(database)
      const indexer = indexerOver(chain, database, { rangeLogs: 40 })
      assert.deepEqual(await indexer.catchUp(), { led: true, indexed: await chain.head() })
      await assertIndexIsChain(chain, database)
      assert.deepEqual(await database.query(tokens), before)
    })
  })
}

/** An offer may run out between two looks, so open ones and those that ran out are the same here. */
const tokens = `select a.token_id, a.owner, a.state, a.flags, a.created_at, a.updated_at, a.updated_block, a.tag_id, t.id,
  case when t.settled_at is null or t.settled_at = t.expires_at then 'PENDING' else t.status end as status,
  t.initiated_at, nullif(t.settled_at, t.expires_at) as settled_at, t.settled_tx, t.expires_at
  from asset a left join transfer t on t.asset_pk = a.pk order by 1, t.initiated_at, t.id`

/** Every kind of event, deeper than the story's reorganisations reach. */
async function wholeLife(chain: IndexChain, tag: Hex): Promise<void> {
  const by = async (account: typeof alice, functionName: string, ...args: readonly unknown[]) =>
    assert.ok(await chain.send(account.address, functionName, args), functionName)
  await by(operator, 'mint', alice.address, hash(1))
  const id = (await chain.events()).at(-1)?.args['tokenId']
  await by(operator, 'setMetadataHash', id, hash(2))
  await by(operator, 'bindTag', id, tag)
  await by(operator, 'activate', id)
  await by(alice, 'initiateTransfer', id, bob.address, 2n ** 40n, hash(3))
  await by(alice, 'cancelTransfer', id)
  assert.ok(await chain.claim(BigInt(id ?? 0), bob), 'claim')
  await by(bob, 'initiateTransfer', id, alice.address, 2n ** 40n, hash(4))
  await by(alice, 'acceptTransfer', id)
  await by(operator, 'flag', id, 1, hash(5))
  await by(operator, 'resolve', id, 1, hash(6))
  await chain.mine(6)
}

type Deed = (id: bigint, n: number) => Promise<unknown>

/** Does what the state of a token allows, or something to the chain; reads nothing from the index. */
function createStory(chain: IndexChain, nextHash: () => Hex) {
  let count = 0
  const people = [operator, alice, bob]
  const personAt = (address: unknown) => people.find((one) => one.address === address) ?? operator

  const asOwner = async (id: bigint, functionName: string, args: readonly unknown[] = []) => {
    const [owner] = await chain.read('getAsset', id)
    return chain.send(personAt(owner).address, functionName, [id, ...args])
  }
  const mint: Deed = async (_id, n) => {
    const hashes = Array.from({ length: (n % 3) + 1 }, () => (n % 5 === 0 ? hash(0) : nextHash()))
    if (await chain.send(operator.address, 'mintBatch', [people[n % 3]?.address, hashes])) count += hashes.length
  }
  const offer: Deed = async (id, n) => {
    const { timestamp } = (await chain.rpc('eth_getBlockByNumber', 'latest', false)) as { timestamp: Hex }
    const expiry = [BigInt(timestamp) + 3n, 2n ** 64n - 1n, BigInt(timestamp) + 100_000n][n % 3]
    await asOwner(id, 'initiateTransfer', [people[n % 2]?.address, expiry, n % 2 ? hash(n) : hash(0)])
  }
  const accept: Deed = async (id) => {
    const [to] = await chain.read('pendingTransfer', id)
    await chain.send(personAt(to).address, 'acceptTransfer', [id])
  }
  const flag: Deed = (id, n) => chain.send(operator.address, 'flag', [id, 1 << (n % 5), hash(n)])
  const recycle: Deed = (id) => chain.send(operator.address, 'recycle', [id])
  const transfers: readonly Deed[] = [offer, accept, accept, (id) => asOwner(id, 'cancelTransfer')]

  const deedsOf: Readonly<Record<number, readonly Deed[]>> = {
    1: [
      ...transfers,
      ...Array<Deed>(3).fill((id) => chain.send(operator.address, 'bindTag', [id, nextHash()])),
      (id, n) => chain.send(operator.address, 'setMetadataHash', [id, n % 3 ? nextHash() : hash(0)]),
    ],
    2: [...transfers, flag, ...Array<Deed>(3).fill((id) => chain.send(operator.address, 'activate', [id]))],
    3: [...transfers, flag, ...Array<Deed>(3).fill((id, n) => chain.claim(id, people[n % 3] ?? alice))],
    4: [...transfers, flag, (id) => asOwner(id, 'restock'), (id) => asOwner(id, 'recycle')],
    5: [recycle, ...Array<Deed>(3).fill((id) => resolveAll(id))],
  }
  const resolveAll = async (id: bigint) => {
    const [, , , flags] = await chain.read('getAsset', id)
    await chain.send(operator.address, 'resolve', [id, flags, hash(9)])
  }
  const worldly: readonly Deed[] = [
    mint,
    (_id, n) => chain.mine((n % 4) + 1),
    async (_id, n) => {
      await chain.rpc('evm_increaseTime', n % 10)
      await chain.mine(1)
    },
    (_id, n) => chain.reorg((n % 6) + 1),
  ]

  return async ([token, choice]: Act): Promise<void> => {
    const id = BigInt((token % Math.max(1, count)) + 1)
    const [, , state] = await chain.read('getAsset', id)
    if (state === 0) count = Math.min(count, Number(id) - 1) // a reorganisation took it away
    const deeds = count < 6 ? [mint] : choice % 6 === 0 ? worldly : (deedsOf[Number(state)] ?? worldly)
    const n = Math.floor(choice / 6)
    await deeds[n % deeds.length]?.(id, Math.floor(n / deeds.length))
  }
}
