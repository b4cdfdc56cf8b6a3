/** Several indexers of one database (spec §4.9): one leads, the others wait, and a late one writes nothing. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { IndexStore } from '../../../src/domain/chain-index.ts'
import { createLog } from '../../../src/lib/log.ts'
import { openDatabase, type Database } from '../../../src/db/database.ts'
import { indexStore, rebuildIndex } from '../../../src/index/store.ts'
import { openOwnDatabase, noPostgres } from '../../support/database/databases.ts'
import {
  alice,
  alone,
  assertIndexIsChain,
  hash,
  indexerOver,
  operator,
  startIndexChain,
} from '../../support/index/world.ts'
import { useOpened } from '../../support/opened.ts'
import { until } from '../../support/wait.ts'

describe('two indexers of one database', { skip: noPostgres }, () => {
  const database = useOpened(() => openOwnDatabase('migrated'))
  const chain = useOpened(startIndexChain)
  const mint = () => chain.send(operator.address, 'mint', [alice.address, hash(1)])

  it('have one leader, and the other one takes over when it goes', async () => {
    const others = await openDatabase({ url: database.url })
    const lockOf = (of: Database) => () => of.hold([84532, 77])
    const first = indexerOver(chain, database, { lock: lockOf(database) })
    const second = indexerOver(chain, others, { lock: lockOf(others) })
    first.start()
    second.start()
    await mint()
    const seen = await Promise.all([first, second].map(async (one) => one.until(await chain.head(), 600_000)))
    assert.deepEqual(seen, [true, true])
    const roles = await Promise.all([first, second].map(async (one) => (await one.status()).role))
    assert.deepEqual(roles.toSorted(), ['follower', 'leader'])
    const [leader, follower] = roles[0] === 'leader' ? [first, second] : [second, first]
    await leader.close()
    await mint()
    assert.ok(await follower.until(await chain.head(), 600_000))
    assert.equal((await follower.status()).role, 'leader')
    await follower.close()
    await assertIndexIsChain(chain, database)
    await others.close()
  })

  it('do not both write: one that was paused cannot, when it wakes', async () => {
    const store = indexStore(database)
    const asleep = Promise.withResolvers<void>()
    const woken = Promise.withResolvers<void>()
    const late: boolean[] = []
    const pausing: IndexStore = {
      ...store,
      async apply(step) {
        asleep.resolve()
        await woken.promise
        const written = await store.apply(step)
        late.push(written)
        return written
      },
    }
    await mint()
    const paused = indexerOver(chain, database, { store: pausing })
    paused.start()
    await asleep.promise
    const other = indexerOver(chain, database, { lock: alone })
    other.start()
    assert.ok(await other.until(await chain.head(), 600_000))
    await chain.reorg(1)
    await mint()
    assert.ok(await other.until(await chain.head(), 600_000))
    await other.close()
    const before = await database.query('select * from history order by 1, 2')
    const closing = paused.close()
    woken.resolve()
    await closing
    assert.deepEqual(late, [false])
    assert.deepEqual(await database.query('select * from history order by 1, 2'), before)
    await assertIndexIsChain(chain, database)
  })

  it('read the cursor again where the database has lost a step: a standby that lagged was promoted', async () => {
    const store = indexStore(database)
    const known = await store.cursor()
    assert.ok(known !== null)
    let isLost = false
    const late: boolean[] = []
    const losing: IndexStore = {
      ...store,
      async apply(step) {
        const before = await store.cursor()
        if (isLost || before === null || before.number <= known.number) return store.apply(step)
        isLost = true
        const taken = {
          epoch: step.epoch,
          from: before,
          rewindTo: known.number,
          events: [],
          blocks: [known],
          to: known,
        }
        assert.ok(await store.apply(taken))
        late.push(await store.apply(step))
        return late[0] ?? false
      },
    }
    const leader = indexerOver(chain, database, { store: losing })
    leader.start()
    for (let block = 0; block < 2; block += 1) {
      await mint()
      assert.ok(await leader.until(await chain.head(), 600_000))
    }
    await leader.close()
    assert.deepEqual(late, [false])
    await assertIndexIsChain(chain, database)
  })

  it('write nothing to an index that has rows above its block: the coordinator of a cluster lost steps', async () => {
    await chain.mine(1)
    const first = indexerOver(chain, database)
    first.start()
    assert.ok(await first.until(await chain.head(), 600_000))
    const known = await indexStore(database).cursor()
    assert.ok(known !== null)
    await mint()
    assert.ok(await first.until(await chain.head(), 600_000))
    await first.close()
    await database.query('update index_cursor set number = $1, hash = decode($2, $3)', [
      known.number,
      known.hash.slice(2),
      'hex',
    ])
    await database.query('delete from index_block where number > $1', [known.number])
    // The branch of the lost step is not canonical any more, so that no event comes to its place.
    await chain.reorg(1)
    await chain.mine(2)
    const before = await database.query('select * from history order by 1, 2')
    const next = indexerOver(chain, database)
    next.start()
    await until(async () => {
      const { fault, indexed } = await next.status()
      assert.equal(indexed?.number, known.number)
      return /rows above its block.*index rebuild/.test(fault ?? '')
    })
    assert.deepEqual(await database.query('select * from history order by 1, 2'), before)
    await rebuildIndex(database)
    assert.ok(await next.until(await chain.head(), 600_000))
    await next.close()
    await assertIndexIsChain(chain, database)
  })

  it('of another contract leave it alone', async () => {
    const lines: string[] = []
    const indexer = indexerOver(chain, database, {
      contract: hash(9).slice(0, 42) as `0x${string}`,
      log: createLog((line) => lines.push(line)),
    })
    indexer.start()
    await until(async () => /another contract.*index rebuild/.test((await indexer.status()).fault ?? ''))
    await indexer.close()
    assert.equal(lines.length, 1)
    await assertIndexIsChain(chain, database)
  })

  it('see a new block as soon as somebody waits for it, not at their next turn', async () => {
    const indexer = indexerOver(chain, database, { pollMs: 3_600_000 })
    indexer.start()
    for (let block = 0; block < 5; block += 1) {
      assert.ok(await indexer.until(await chain.head(), 600_000))
      await mint()
    }
  })
})
