/** Products at an earlier block (spec §2.9), in steps of the index that no test of a chain makes. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { before, describe, it } from 'node:test'
import { type Hex, metadataHashOf } from '@touchstone/verdict'
import { testDatabases } from '../../../test/support/database/databases.ts'
import { alice, hashOf } from '../../../test/support/index/rows.ts'
import { bound, indexSteps, minted } from '../../../test/support/index/steps.ts'
import { useOpened } from '../../../test/support/opened.ts'
import { hexToBytes } from '../../db/columns.ts'
import { eventKinds } from '../../domain/registry-event.ts'
import type { ProductCondition } from './condition.ts'
import { pastStore } from './past.ts'
import type { PastBlock } from './products.ts'

const [a, b] = [0xaa, 0xbb].map(hashOf) as [Hex, Hex]

for (const { name, open, skip } of testDatabases())
  describe(`products at an earlier block on ${name}`, { skip }, () => {
    const database = useOpened(open)
    let step: Awaited<ReturnType<typeof indexSteps>>
    let past: ReturnType<typeof pastStore>
    before(async () => {
      step = await indexSteps(database)
      past = pastStore(database)
    })

    async function blockAt(number: number): Promise<PastBlock> {
      const { block } = await past.find(BigInt(number))
      assert.ok(block)
      return block
    }
    async function tap(tokenId: bigint, tag: Hex): Promise<void> {
      const uid = randomBytes(7)
      await database.query('insert into tap (uid, epoch, counter, picc) values ($1, 0, 1, $2)', [uid, Buffer.alloc(16)])
      await database.query('select announce_tap($1, 0, 1, $2::numeric, $3)', [uid, String(tokenId), hexToBytes(tag)])
    }
    async function isVerifiedAt(number: number, tokenId: bigint): Promise<boolean | undefined> {
      return (await past.products([{ tokenId, at: await blockAt(number) }]))?.[0]?.verified
    }

    it('are verified by a tap of the tag that they had there, not of a later one', async () => {
      const [later, earlier] = [1n, 2n]
      await step(
        10,
        [later, earlier].flatMap((tokenId) => [...minted(tokenId), ...bound(tokenId, a)]),
      )
      await tap(earlier, a)
      await step(
        20,
        [later, earlier].flatMap((tokenId) => bound(tokenId, b).slice(0, 1)),
      )
      await tap(later, b)
      const verified = async (number: number) =>
        Promise.all([later, earlier].map((tokenId) => isVerifiedAt(number, tokenId)))
      assert.deepEqual(await verified(10), [false, true])
      assert.deepEqual(await verified(20), [true, false])
    })

    it('are not read at a block that another one has replaced, nor where too much has changed since', async () => {
      const block = await blockAt(10)
      const replaced = { ...block, hash: b }
      const list = { by: 'created', descending: true, after: null, limit: 10 } as const
      const page = { condition: { kind: 'and', of: [] }, ...list } as const
      const asked = [{ tokenId: 1n, at: replaced }]
      await assert.rejects(past.products(asked), { code: 'CHAIN_UNAVAILABLE' })
      await assert.rejects(past.transfers(asked), { code: 'CHAIN_UNAVAILABLE' })
      await assert.rejects(past.page(replaced, page), { code: 'CHAIN_UNAVAILABLE' })
      await assert.rejects(past.count(replaced, page.condition), { code: 'CHAIN_UNAVAILABLE' })
      const [small, enough] = [1, 20_000].map((mostOfTokens) => pastStore(database, { mostOfTokens }))
      assert.deepEqual([await small?.page(block, page), await small?.count(block, page.condition)], [null, null])
      assert.equal(await enough?.count(block, page.condition), 2)
      assert.equal(await enough?.count(block, { kind: 'or', of: [] }), 0)
    })

    it('have the offers expired that had run out by then, also where no product has had an event since', async () => {
      const parties = { from: alice, to: alice, nonce: 1, expiry: 1_800_000_028n } as const
      await step(25, [...minted(5n), { kind: eventKinds.TransferInitiated, tokenId: '5', ...parties }])
      for (const number of [28, 29, 30]) await step(number, [])
      const statusAt = async (number: number) =>
        (await past.transfers([{ tokenId: 5n, at: await blockAt(number) }]))?.map(({ status }) => status)
      const statuses = async () => [await statusAt(25), await statusAt(28), await statusAt(29)]
      assert.deepEqual(await statuses(), [['PENDING'], ['PENDING'], ['FAILED']])
      await database.query('update index_block set time = null')
      assert.equal((await blockAt(29)).time, 1_800_000_025n, 'the last event where an older version wrote the row')
    })

    it('are found by part of a name that no step of the index ended with', async () => {
      const named = async (text: string) => {
        const hash = metadataHashOf(text)
        await database.query('insert into metadata (hash, body) values ($1, $2)', [hexToBytes(hash), text])
        return hash
      }
      const [one, two] = [await named('{"name":"Lantern One"}'), await named('{"name":"Lantern Two"}')]
      await step(35, minted(3n, two))
      const renamed = { kind: eventKinds.MetadataHashSet, tokenId: '4', data: two, block: 42 }
      await step(42, [...minted(4n, one).map((event) => ({ ...event, block: 40 })), renamed])
      const block = await blockAt(40)
      const list = { by: 'created', descending: true, after: null, limit: 10 } as const
      const found = async (condition: ProductCondition) => {
        const page = await past.page(block, { condition, ...list })
        return [page?.map((row) => row.name), await past.count(block, condition)]
      }
      const contains = (value: string): ProductCondition => ({ kind: 'nameContains', value })
      assert.deepEqual(await found(contains('One')), [['Lantern One'], 1])
      assert.deepEqual(await found(contains('Two')), [['Lantern Two'], 1])
      assert.deepEqual(await found(contains('Lantern')), [['Lantern One', 'Lantern Two'], 2])
      const minting: ProductCondition = { kind: 'state', value: 1 }
      assert.deepEqual(await found({ kind: 'and', of: [contains('One'), minting] }), [['Lantern One'], 1])
    })
  })
