/** The sums of what was paid and of its gas, where some transactions settle nothing (spec §4.8). */
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { testDatabases } from '../../test/support/database/databases.ts'
import { asset, price } from '../../test/support/payments/buyer.ts'
import { createBook } from './book.ts'

for (const { name, open, skip } of testDatabases()) {
  it(
    `the book on ${name} sums the gas of a few payments beside that of a transaction without one`,
    { skip },
    async (t) => {
      const database = await open()
      t.after(() => database.close())
      await database.query(
        `insert into settlement (pk, chain_id, sender, nonce, state, holder, raw, hashes, gas_used, gas_price, block_number, mined_at)
       overriding system value
       select n, 84532, decode(repeat('01', 20), 'hex'), n, 'mined', 0, '', '{}', 10, 1, 1, clock_timestamp() from generate_series(1, 3) n`,
      )
      await database.query(
        `insert into payment (chain_id, asset, payer, nonce, request_hash, state, payload, valid_before, amount, proof, from_block, token_id,
         tx_hash, answer, settlement, settled_at)
       select 84532, decode($1, 'hex'), decode(repeat('02', 20), 'hex'), decode(lpad(to_hex(n), 64, '0'), 'hex'), decode(repeat('00', 32), 'hex'), 'done', '{}', 0,
         $2::numeric, '', 1, 7, decode(repeat('00', 32), 'hex'), '', 1 + n / 2, clock_timestamp() from generate_series(1, 3) n`,
        [asset.slice(2), price.toString()],
      )
      const groups = await createBook(database, { chainId: 84532, asset }).report({}, ['outcome'])
      assert.deepEqual(groups, [
        { key: ['settled'], payments: 3, units: 3n * price, gas: 20n },
        { key: ['–'], payments: 0, units: 0n, gas: 10n },
      ])
    },
  )
}
