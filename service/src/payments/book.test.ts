/** The sums of what was paid and of its gas, where some transactions settle nothing (spec §4.8). */
import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { toHex } from 'viem'
import { testDatabases } from '../../test/support/database/databases.ts'
import { asset, price } from '../../test/support/payments/buyer.ts'
import { useOpened } from '../../test/support/opened.ts'
import type { Database } from '../db/database.ts'
import { createBook, type BookRow } from './book.ts'

const hour = 3_600_000
/** The last hour of a day. */
const first = Date.UTC(2025, 11, 30, 23)
const [alice, bob] = [toHex(0xa1, { size: 20 }), toHex(0xb0, { size: 20 })]

for (const { name, open, skip } of testDatabases())
  describe(`the book on ${name}`, { skip }, () => {
    const database = useOpened(open)
    const book = createBook(database, { chainId: 84532, asset })
    before(async () => {
      // Transactions 1 to 3 cost 10 wei each, one an hour, and settle payments 1; 2 and 3; 4. Number 4 settles none, and 5 was not mined.
      await database.query(
        `insert into settlement (pk, chain_id, sender, nonce, state, holder, raw, hashes, gas_used, gas_price, block_number, mined_at)
         overriding system value
         select n, 84532, decode(repeat('01', 20), 'hex'), n, case n when 5 then 'lost' else 'mined' end, 0, '', '{}', 10, 1, 1,
           $1::timestamptz + make_interval(hours => n - 1) from generate_series(1, 5) n`,
        [new Date(first).toISOString()],
      )
      await database.query(
        `insert into payment (chain_id, asset, payer, nonce, request_hash, state, kind, payload, valid_before, amount, proof, from_block, token_id,
           tx_hash, answer, settlement, created_at, settled_at, reason, channel)
         select 84532, decode($1, 'hex'), decode(payer, 'hex'), decode(lpad(to_hex(n), 64, '0'), 'hex'), decode(repeat('00', 32), 'hex'), state, kind, '{}', 0,
           $2::numeric, '', 1, case kind when 'deposit' then null else 7 + n % 2 end, decode(lpad(to_hex(settlement), 64, '0'), 'hex'), '', settlement,
           $3::timestamptz + make_interval(hours => n), $3::timestamptz + make_interval(hours => at), reason,
           case when kind <> 'transfer' then decode(repeat('0c', 32), 'hex') end
         from (values (1, $4, 'done', 'transfer', 1, 0, null), (2, $5, 'dead', 'transfer', 2, 1, 'payment_rejected'),
           (3, $4, 'done', 'deposit', 2, 1, null), (4, $5, 'done', 'transfer', 3, 2, 'removed'), (5, $4, 'done', 'voucher', null, 2, null),
           (6, $4, 'settling', 'transfer', null, null, null), (7, $5, 'settling', 'transfer', 5, null, null))
           p(n, payer, state, kind, settlement, at, reason)`,
        [asset.slice(2), price.toString(), new Date(first).toISOString(), alice.slice(2), bob.slice(2)],
      )
    })

    const numbers = (rows: readonly BookRow[]) => rows.map(({ nonce }) => Number(nonce))

    it('lists pending payments, then the newest of those that ended', async () => {
      assert.deepEqual(numbers(await book.list({}, 9)), [7, 6, 5, 4, 3, 2, 1])
      assert.deepEqual(numbers(await book.list({}, 3)), [7, 6, 5])
      assert.deepEqual(numbers(await book.list({}, 2)), [7, 6])
      for (const [outcome, expected] of [
        ['pending', [7, 6]],
        ['settled', [5, 3, 1]],
        ['rejected', [2]],
        ['removed', [4]],
      ] as const) {
        const rows = await book.list({ outcome }, 9)
        assert.deepEqual(numbers(rows), expected)
        assert.deepEqual(new Set(rows.map((row) => row.outcome)), new Set([outcome]))
      }
      assert.deepEqual(numbers(await book.list({ payer: bob, until: first + 7 * hour }, 9)), [4, 2])
      assert.deepEqual(numbers(await book.list({ since: first + hour, until: first + 2 * hour }, 9)), [3, 2])
    })

    it('shows a payment with its part of the gas, and those of a transaction', async () => {
      const nonce = toHex(2, { size: 32 })
      const rejected = await book.find(bob, nonce)
      assert.deepEqual(rejected, {
        pk: rejected?.pk,
        time: '2025-12-31T00:00:00.000000Z',
        outcome: 'rejected',
        payer: bob,
        nonce,
        assetId: '7',
        units: String(price),
        transaction: nonce,
        block: null,
        reason: 'payment_rejected',
        gas: '5',
        kind: 'transfer',
        channel: null,
      })
      assert.equal(await book.find(alice, nonce), undefined)
      const both = await book.findByTransaction(nonce)
      assert.deepEqual(
        [numbers(both), both.map(({ units }) => units)],
        [
          [2, 3],
          [String(price), '0'],
        ],
      )
      assert.deepEqual(numbers(await book.findByTransaction(toHex(5, { size: 32 }))), [7])
      assert.deepEqual((await book.find(bob, toHex(7, { size: 32 })))?.gas, null)
    })

    it('exports payments that ended, oldest first', async () => {
      const exported = async (filter: Parameters<typeof book.pages>[0]) => {
        const rows = []
        for await (const page of book.pages(filter)) rows.push(...page)
        return numbers(rows)
      }
      assert.deepEqual(await exported({}), [1, 2, 3, 4, 5])
      assert.deepEqual(await exported({ since: first }), [1, 2, 3, 4, 5])
      assert.deepEqual(await exported({ outcome: 'removed' }), [4])
      assert.deepEqual(await exported({ payer: bob }), [2, 4])
      assert.deepEqual(await exported({ since: first + hour, until: first + 2 * hour }), [2, 3])
      assert.deepEqual(await exported({ since: first + 9 * hour }), [])
    })

    it('exports page by page', async () => {
      await database.query(
        `insert into payment (chain_id, asset, payer, nonce, request_hash, state, payload, valid_before, settled_at)
         select 84532, decode($1, 'hex'), decode(repeat('cc', 20), 'hex'), decode(lpad(to_hex(n), 64, '0'), 'hex'), decode(repeat('00', 32), 'hex'), 'dead', '{}', 0,
           timestamptz '2024-01-01Z' + make_interval(secs => n / 3) from generate_series(1, 1001) n`,
        [asset.slice(2)],
      )
      const sizes = []
      const seen = new Set<bigint>()
      for await (const page of book.pages({ until: Date.UTC(2025) })) {
        sizes.push(page.length)
        for (const { pk } of page) seen.add(pk)
      }
      assert.deepEqual([sizes, seen.size], [[1_000, 1], 1_001])
      await database.query(`delete from payment where settled_at < timestamptz '2025-01-01Z'`)
    })

    it('sums payments and gas beside that of a transaction without a payment', async () => {
      const sums = async (...given: Parameters<typeof book.report>) =>
        (await book.report(...given))?.map(({ key, payments, units, gas }) => [
          ...key,
          payments,
          Number(units),
          Number(gas),
        ])
      const paid = Number(price)
      const groups = (found: unknown[][] = []) => found.toSorted((a, b) => (String(a) < String(b) ? -1 : 1))
      assert.deepEqual(groups(await sums({}, ['outcome'])), [
        ['rejected', 1, 0, 5],
        ['removed', 1, 0, 10],
        ['settled', 2, 2 * paid, 15],
        ['–', 0, 0, 10],
      ])
      assert.deepEqual(groups(await sums({}, ['kind'])), [
        ['deposit', 0, 0, 5],
        ['transfer', 3, paid, 25],
        ['voucher', 1, paid, 0],
        ['–', 0, 0, 10],
      ])
      assert.deepEqual(groups(await sums({}, ['asset'])), [
        ['', 0, 0, 5],
        ['7', 2, 0, 15],
        ['8', 2, 2 * paid, 10],
        ['–', 0, 0, 10],
      ])
      assert.deepEqual(groups(await sums({}, ['payer'])), [
        [alice, 2, 2 * paid, 15],
        [bob, 2, 0, 15],
        ['–', 0, 0, 10],
      ])
      const byDay = [
        ['2025-12-30', 1, paid, 10],
        ['2025-12-31', 3, paid, 30],
      ]
      assert.deepEqual(await sums({}, ['day']), byDay)
      assert.deepEqual(await sums({ since: first + hour, until: first + 2 * hour }, ['day']), [
        ['2025-12-31', 1, 0, 10],
      ])
      assert.deepEqual(await sums({ until: first }, ['day']), [])
    })

    it('reads days with many rows hour by hour, and gets the same sums', async () => {
      const spans: string[] = []
      const observed: Pick<Database, 'query'> = {
        query: (text, values = []) => {
          if (text.includes('ended as materialized')) spans.push(values.slice(2).join())
          return database.query(text, values)
        },
      }
      // The second day has four payments and three transactions.
      for (const [mostRowsOfDay, expected] of [
        [7, 2],
        [6, 4],
      ] as const) {
        const hourly = createBook(observed, { chainId: 84532, asset, mostRowsOfDay })
        assert.deepEqual(await hourly.report({}, ['day']), await book.report({}, ['day']))
        assert.equal(spans.splice(0).length, expected, String(mostRowsOfDay))
      }
    })
  })
