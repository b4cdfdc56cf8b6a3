/** Expiries of offers in the feed of events (spec §5, §6), on a real chain. A block may show that a clock ended an offer too early. */
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'
import type { Hex } from '@touchstone/verdict'
import type { Indexer } from '../../../src/chain/indexer/indexer.ts'
import { rebuildIndex } from '../../../src/index/store.ts'
import { testDatabases } from '../../support/database/databases.ts'
import {
  alice,
  assertFeedIsIndex,
  atHead,
  bob,
  hash,
  indexerOver,
  operator,
  startIndexChain,
} from '../../support/index/world.ts'
import { useOpened } from '../../support/opened.ts'
import { until } from '../../support/wait.ts'

for (const { name, open, skip } of testDatabases())
  describe(`the expiry of an offer in ${name}`, { skip }, () => {
    const database = useOpened(open)
    const chain = useOpened(startIndexChain)
    let indexer: Indexer
    let id: string
    beforeEach(async () => {
      await lead()
      assert.ok(await chain.send(operator.address, 'mint', [alice.address, hash(0)]))
      id = String((await chain.events()).at(-1)?.args['tokenId'])
      await atHead(indexer, chain)
    })
    afterEach(() => indexer.close())

    /** Starts an indexer, and waits until it has announced everything. */
    async function lead(): Promise<void> {
      indexer = indexerOver(chain, database, { pruneMs: 50 })
      indexer.start()
      const isFed = 'select 1 from index_cursor where fed_epoch = epoch'
      await until(async () => (await database.query(isFed)).length === 1)
      await atHead(indexer, chain)
    }
    const timeOfHead = async () => {
      const { timestamp } = (await chain.rpc('eth_getBlockByNumber', ['latest', false])) as { timestamp: Hex }
      return BigInt(timestamp)
    }
    const setNextTime = (time: bigint) => chain.rpc('evm_setNextBlockTimestamp', [Number(time)])
    const offer = (to: Hex, expiry: bigint) =>
      chain.send(alice.address, 'initiateTransfer', [id, to, expiry, hash(0)]).then(assert.ok)
    /** Returns a line for each event of the offers of the product. */
    async function announced(): Promise<string[]> {
      await atHead(indexer, chain)
      const rows = await database.query<
        Record<'status' | 'to' | 'topic', string> & Record<'retracts' | 'retracted' | 'isExpiry', boolean>
      >(
        `select payload->>'status' as status, payload->>'to' as to, topic, retracts is not null as retracts, retracted,
           payload->'cause' is null as "isExpiry" from outbox where kind = 'TRANSFER' and token_id = $1 order by seq`,
        [id],
      )
      return rows.map(({ status, to, topic, retracts, retracted, isExpiry }) =>
        [
          `${retracts ? 'not ' : ''}${status} to ${to === bob.address.toLowerCase() ? 'bob' : 'operator'}`,
          topic,
          ...(isExpiry ? ['expiry'] : []),
          ...(retracted ? ['taken back'] : []),
        ].join(', '),
      )
    }

    for (const [end, by, status] of [
      ['cancelTransfer', alice, 'FAILED'],
      ['acceptTransfer', bob, 'CONFIRMED'],
    ] as const)
      it(`is taken back where ${end} ended the offer in time`, async () => {
        const time = await timeOfHead()
        await setNextTime(time + 1n)
        await offer(bob.address, time + 2n)
        await until(async () => (await announced()).length === 2)
        await setNextTime(time + 2n)
        assert.ok(await chain.send(by.address, end, [id]))
        const expected = [
          'PENDING to bob, transfer',
          'FAILED to bob, transfer, expiry, taken back',
          'not PENDING to bob, chain, expiry',
          `${status} to bob, ${status === 'FAILED' ? 'chain' : 'transfer'}`,
        ]
        assert.deepEqual(await announced(), expected)
        await indexer.close()
        await rebuildIndex(database)
        await lead()
        assert.deepEqual(await announced(), expected, 'a comparison finds nothing to add')
      })

    it('comes again after its offer, where a new index finds an offer of the same id on another branch', async () => {
      async function offerThatExpires(to: Hex): Promise<void> {
        const expiry = (await timeOfHead()) + 10n
        await offer(to, expiry)
        await setNextTime(expiry + 1n)
        await chain.mine(1)
      }
      await offerThatExpires(bob.address)
      await until(async () => (await announced()).length === 2)
      await indexer.close()
      await rebuildIndex(database)
      await chain.reorg(2)
      await offerThatExpires(operator.address)
      await lead()
      assert.deepEqual(
        (await announced()).map((line) => line.replace(/, (?:transfer|chain)/, '')),
        [
          'PENDING to bob, taken back',
          'FAILED to bob, expiry, taken back',
          'not FAILED to bob, expiry',
          'not FAILED to bob',
          'PENDING to operator',
          'FAILED to operator, expiry',
        ],
      )
      await assertFeedIsIndex(database)
    })
  })
