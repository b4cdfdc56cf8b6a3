/** The ledger of payment channels: what the chain holds for many of them, in few statements. */
import assert from 'node:assert/strict'
import { before, beforeEach, describe, it } from 'node:test'
import type { Hex } from '@touchstone/verdict'
import { toHex } from 'viem/utils'
import { testDatabases } from '../../../test/support/database/databases.ts'
import { attestationKey } from '../../../test/support/payments/components.ts'
import { randomHex } from '../../../test/support/payments/ledger.ts'
import { silentLog } from '../../../test/support/reader/anvil.ts'
import { useOpened } from '../../../test/support/opened.ts'
import type { Database } from '../../db/database.ts'
import { hexToBytes } from '../../db/columns.ts'
import { openHolder, type PaymentScope } from '../holder.ts'
import { createChannelClaims } from './claims.ts'
import type { ChannelState } from './state.ts'
import { createChannelStore, toClaim, type Channel, type ChannelStore, type Sale } from './store.ts'

type SaleChanges = { readonly price?: bigint; readonly signature?: Hex; readonly identifier?: string }
const asset: Hex = `0x${'aa'.repeat(20)}`
const signed: Hex = `0x${'05'.repeat(65)}`

for (const { name, open, skip } of testDatabases())
  describe(`the ledger of payment channels on ${name}`, { skip }, () => {
    let store: ChannelStore
    const statements = { sent: 0, open: 0, most: 0 }
    const query: Database['query'] = async (text, values) => {
      statements.sent += 1
      statements.most = Math.max(statements.most, (statements.open += 1))
      return database.query<never>(text, values).finally(() => (statements.open -= 1))
    }
    const database = useOpened(open)
    const holder = useOpened(() => openHolder(database))
    before(() => {
      store = storeOf(asset)
    })
    beforeEach(() => database.query(`delete from channel`))

    const storeOf = (token: Hex, changed: Partial<PaymentScope> = {}) =>
      createChannelStore(database, { chainId: 84532, asset: token, holder, ...changed })

    /** A channel that the ledger does not have yet. Amounts that are left out are 0, and the price is 10. */
    function channel() {
      const [account, id] = [randomHex(20), randomHex(32)]
      const config = { payer: account, payerAuthorizer: account, receiver: account, receiverAuthorizer: account }
      const read = { id, config: { ...config, token: asset, withdrawDelay: 86_400, salt: id } }
      const saleOf = (cumulative: bigint, { price = 10n, signature = signed, identifier }: SaleChanges = {}): Sale => {
        const key = { payer: account, nonce: toHex(cumulative, { size: 32 }) }
        const voucher = { config: read.config, channelId: id, cumulative, signature, key, accepted: {}, identifier }
        return { voucher, price, requestHash: '06'.repeat(32), tokenId: 7n, answer: '{}', fromBlock: 7n }
      }
      return {
        id,
        saleOf,
        sell: (cumulative: bigint, changes?: SaleChanges) => store.sell(saleOf(cumulative, changes)),
        find: () => store.find(id),
        note: async (state: Partial<ChannelState>) =>
          (
            await store.refresh([{ ...read, state: { balance: 0n, claimed: 0n, withdrawal: 0n, block: 1n, ...state } }])
          )[0],
        age: (column: 'read_at' | 'unclaimed_since', span: string) =>
          database.query(`update channel set ${column} = ${column} - $2::interval where id = $1`, [
            hexToBytes(id),
            span,
          ]),
      }
    }

    it('notes the states of a thousand channels without taking the connections of other work', async () => {
      await database.query(
        `insert into channel (chain_id, asset, id, payer, payer_authorizer, receiver, receiver_authorizer, withdraw_delay, salt,
           balance, claimed, withdrawal, read_block, charged, unclaimed_since)
         select 84532, $1, sha256(n::text::bytea), $1, $1, $1, $1, 86400, sha256('salt'), 100, 0, 0, 1, 7, now() from generate_series(1, 1000) n`,
        [Buffer.from(asset.slice(2), 'hex')],
      )
      await using claims = createChannelClaims({
        store: createChannelStore({ query }, { chainId: 84532, asset, holder }),
        readChannels: async (ids) => ids.map(() => ({ balance: 300n, claimed: 5n, withdrawal: 0n, block: 9n })),
        facilitator: {},
        accounts: [attestationKey()],
        log: silentLog,
      })
      await claims.pass()
      assert.deepEqual([statements.most, statements.sent], [1, 4])
      const [noted] = await database.query(
        `select count(*)::int as n from channel where balance = 300 and claimed = 5 and read_block = 9 and charged = 7 and holder = 0`,
      )
      assert.deepEqual(noted, { n: 1_000 })
    })

    it('reads a state anew that was noted before the clock of the database was set back', async () => {
      const { note, find } = channel()
      await note({ balance: 100n })
      assert.equal((await find())?.isFresh, true)
      await database.query(`update channel set read_at = read_at + interval '10 years'`)
      assert.equal((await find())?.isFresh, false)
      assert.equal((await note({ balance: 100n }))?.isFresh, true)
    })

    it('sells from exactly the sum of all sales, and only what deposit and withdrawal leave', async () => {
      const { id, saleOf, note, sell, find } = channel()
      await note({ balance: 45n, withdrawal: 10n })
      const twice = await Promise.all([sell(10n), sell(10n)])
      assert.equal(twice.filter(Boolean).length, 1)
      for (const sum of [10n, 15n, 19n, 21n, 25n, 30n]) assert.equal(await sell(sum), false, String(sum))
      assert.equal(await sell(20n), true)
      const signature = randomHex(65)
      assert.equal(await sell(30n, { signature }), true)
      assert.equal(await sell(40n), false)
      assert.equal(await sell(35n, { price: 5n }), true)
      await note({ balance: 45n, withdrawal: 0n, block: 2n })
      assert.equal(await storeOf(randomHex(20)).sell(saleOf(45n)), false)
      assert.equal(await sell(45n, { signature }), true)
      const { charged, signature: newest } = (await find()) ?? {}
      assert.deepEqual([charged, newest], [45n, signature])
      const sold = await database.query(
        `select amount::text, answer, from_block, undelivered, holder from payment where kind = 'voucher' and channel = $1 order by pk`,
        [hexToBytes(id)],
      )
      assert.deepEqual(
        sold,
        ['10', '10', '10', '5', '10'].map((amount) => ({
          amount,
          answer: '{}',
          from_block: 7n,
          undelivered: true,
          holder: holder.number,
        })),
      )
    })

    it('sells from what the chain has claimed where that is more, and from no state of ten minutes ago', async () => {
      const { note, sell, find, age } = channel()
      await note({ balance: 100n })
      assert.equal(await sell(10n), true)
      assert.equal((await note({ balance: 100n, claimed: 10n }))?.signature, signed)
      await note({ balance: 100n, claimed: 40n })
      const { charged, signature } = (await find()) ?? {}
      assert.deepEqual([charged, signature], [40n, null])
      assert.deepEqual([await sell(20n), await sell(50n)], [false, true])
      assert.equal((await find())?.signature, signed)
      await age('read_at', '8 minutes')
      assert.equal(await sell(60n), true)
      await age('read_at', '2 minutes')
      assert.equal(await sell(70n), false)
      await note({ balance: 100n, claimed: 40n })
      assert.equal(await sell(70n), true)
    })

    it('sells once for an identifier', async () => {
      const { note, sell, find } = channel()
      await note({ balance: 100n })
      const identifier = 'order_0123456789'
      assert.equal(await sell(10n, { identifier }), true)
      assert.equal(await sell(20n, { identifier }), false)
      assert.equal((await find())?.charged, 10n)
      assert.equal(await sell(20n), true)
    })

    it('notes no answer that is older than the one before, unless that was a minute ago', async () => {
      const { id, note, age } = channel()
      await note({ balance: 100n, block: 9n })
      const answer = async (block: bigint, balance: bigint) => (await note({ balance, block }))?.balance
      assert.deepEqual([await answer(8n, 70n), await answer(9n, 80n), await answer(8n, 70n)], [100n, 80n, 80n])
      await age('read_at', '30 seconds')
      assert.equal(await answer(8n, 70n), 80n)
      await age('read_at', '30 seconds')
      assert.equal(await answer(8n, 70n), 70n)
      assert.equal(await storeOf(randomHex(20)).find(id), undefined)
    })

    it('raises no sum for good by an answer that claims too much', async () => {
      const { note, sell } = channel()
      assert.equal((await note({ balance: 100n, claimed: 50n }))?.charged, 50n)
      assert.equal((await note({ balance: 100n }))?.charged, 0n)
      assert.equal(await sell(10n), true)
    })

    it('sums what the deposits cover, and counts from the oldest purchase that is not claimed', async () => {
      const [open, drained, claimed] = [channel(), channel(), channel()]
      for (const { note, sell } of [open, drained, claimed]) {
        await note({ balance: 100n })
        for (const sum of [10n, 20n, 30n]) assert.ok(await sell(sum))
      }
      await open.age('unclaimed_since', '2 hours')
      await drained.age('unclaimed_since', '3 hours')
      await open.sell(40n)
      await claimed.note({ balance: 100n, claimed: 35n }) // the chain has more than the ledger
      await claimed.age('unclaimed_since', '4 hours')
      const sums = async () => {
        const { units, seconds, channels } = await store.unclaimed()
        const { unclaimed, uncovered, balance, oldestSeconds } = await store.figures()
        assert.ok(Math.abs(seconds - oldestSeconds) < 60)
        return [units, BigInt(unclaimed), channels, balance, uncovered, Math.floor(seconds / 3_600)]
      }
      assert.deepEqual(await sums(), [70n, 70n, 3, 265, 0, 3])
      await drained.note({ balance: 15n, claimed: 5n, block: 2n })
      assert.deepEqual(await sums(), [50n, 50n, 3, 175, 15, 2])
      const totalOf = async ({ find }: typeof open) => toClaim((await find()) as Channel)?.total
      assert.deepEqual([await totalOf(open), await totalOf(drained), await totalOf(claimed)], [40n, 15n, undefined])
      await drained.note({ balance: 5n, claimed: 5n, block: 3n })
      assert.deepEqual(await sums(), [40n, 40n, 3, 165, 25, 2])
      assert.equal(await totalOf(drained), undefined)
      // A claim of a part begins a new hour for the rest.
      await open.note({ balance: 100n, claimed: 10n, block: 2n })
      assert.deepEqual(await sums(), [30n, 30n, 3, 155, 25, 0])
      await drained.age('unclaimed_since', '48 hours')
      assert.equal((await store.unclaimed()).channels, 2)
      for (const other of [storeOf(randomHex(20)), storeOf(asset, { chainId: 8453 })]) {
        assert.deepEqual(await other.unclaimed(), { units: 0n, seconds: 0, channels: 0 })
        assert.equal((await other.figures()).channels, 0)
        assert.deepEqual(await other.adopt(9), [])
      }
    })

    it('gives a channel to one process at a time, and first what can be claimed, of that the oldest', async () => {
      const [first, second, third, idle] = [channel(), channel(), channel(), channel()]
      for (const one of [first, second, third, idle]) {
        await one.note({ balance: 100n })
        if (one !== idle) assert.ok(await one.sell(10n))
      }
      await third.note({ balance: 100n, claimed: 10n }) // one answer says that all is claimed
      for (const [hours, one] of [first, second, third].entries())
        await one.age('unclaimed_since', `${hours + 1} hours`)
      await first.age('unclaimed_since', '90 minutes')
      const processOf = (number: number) =>
        storeOf(asset, { holder: { ...holder, number, isAlive: 'holder in (1, 2)' } })
      const [one, two, three] = [processOf(1), processOf(2), processOf(3)]
      const adopted = async (by: typeof store, limit = 9) => (await by.adopt(limit)).map(({ id }) => id).toSorted()
      assert.deepEqual([await adopted(one, 1), await adopted(two, 1)], [[first.id], [second.id]])
      assert.deepEqual(await adopted(two), [second.id, third.id].toSorted())
      await two.release([first.id, second.id])
      assert.deepEqual(await adopted(three), [second.id])
      assert.deepEqual(await adopted(store), [first.id, second.id, third.id].toSorted())
    })
  })
