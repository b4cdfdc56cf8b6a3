/**
 * Payments are looked at each second, and channels each minute. These are the plans of PostgreSQL over 50,000 sales, 20,000 payments that are
 * not finished, and 20,000 channels.
 */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { Hex } from '@touchstone/verdict'
import { hexToBytes } from '../../src/db/columns.ts'
import type { Database } from '../../src/db/database.ts'
import { createChannelStore } from '../../src/payments/channels/store.ts'
import { openHolder, type PaymentHolder } from '../../src/payments/holder.ts'
import { createPaymentLedger } from '../../src/payments/ledger/ledger.ts'
import { testDatabases } from '../support/database/databases.ts'

const [, postgres] = testDatabases()
const asset: Hex = `0x${'aa'.repeat(20)}`
/** The cost from which PostgreSQL compiles a statement before it runs it (`jit_above_cost`), which takes it a second or more. */
const compiledCost = 100_000

describe('plans of payments', { skip: postgres?.skip ?? true }, () => {
  let database: Database
  let holder: PaymentHolder
  const plans: string[] = []
  const query: Database['query'] = async (text, values) => {
    const rows = await database.query<{ 'QUERY PLAN': string }>(`explain ${text}`, values)
    plans.push(rows.map((row) => row['QUERY PLAN']).join('\n'))
    return database.query(text, values)
  }
  before(async () => {
    database = (await postgres?.open()) as Database
    holder = await openHolder(database)
    for (const statement of fill) await database.query(statement, [hexToBytes(asset)])
    await database.exec('analyze')
  })
  after(async () => {
    await holder?.[Symbol.asyncDispose]()
    await database?.close()
  })

  it('find the blocks of two minutes, and the payments of one, without reading the sales that have no block', async () => {
    const ledger = createPaymentLedger({ query }, { chainId: 84532, asset, holder })
    const blocks = await ledger.recentBlocks(120)
    for (const block of blocks.slice(0, 1)) assert.equal((await ledger.settledIn(block)).length, 4)
    const [ofBlocks, ofPayments] = plans.splice(0)
    assert.match(ofBlocks ?? '', /payment_in_block/)
    assert.match(ofPayments ?? '', /payment_of_block/)
  })

  it('find the payment that another one is bound to, and an unfinished one, by their keys, of a payer with many', async () => {
    const ledger = createPaymentLedger({ query }, { chainId: 84532, asset, holder })
    const unknown: Hex = `0x${'1'.repeat(64)}`
    await Promise.all(
      Array.from({ length: 50 }, () => ledger.find({ payer: asset, nonce: unknown, requestHash: '11' })),
    )
    const plan = plans.splice(0).join()
    assert.match(plan, /Index Cond: .*payer = \S+payer\) AND \(id = /)
    assert.match(plan, /payment_unfinished.*\n +Index Cond: .*payer = \S+payer\) AND \(request_hash = /)
  })

  it('look for the channels of dead processes without compiling the statement', async () => {
    await createChannelStore({ query }, { chainId: 84532, asset, holder }).adopt(1_000)
    const cost = Number(/\.\.(?<cost>[\d.]+) rows/.exec(plans.splice(0).join())?.groups?.['cost'])
    assert.ok(cost < compiledCost, String(cost))
  })
})

/** One sale in 50 is a transfer, four in a block. The others go through channels. */
const fill = [
  `insert into payment (chain_id, asset, payer, nonce, channel, kind, state, payload, request_hash, answer, proof, from_block, valid_before,
     settled_at, tx_hash, block_number, block_hash)
   select 84532, $1, $1, sha256(n::text::bytea), case when hash is null then sha256('') end, case when hash is null then 'voucher' else 'transfer' end,
     'done', '', sha256(''), '', '', 1, 0, now() - n * interval '1 ms', hash, n / 200, hash
   from generate_series(0, 49999) n cross join lateral (select case when n % 50 = 0 then sha256((n / 200)::text::bytea) end as hash) h`,
  `insert into payment (chain_id, asset, payer, nonce, state, payload, request_hash, proof, from_block, valid_before)
   select 84532, $1, substr(sha256(n::text::bytea), 1, 20), sha256(''), 'settling', '', sha256(''), '', 1, 0 from generate_series(1, 20000) n`,
  `insert into payment_identifier (chain_id, asset, payer, id, nonce) select chain_id, asset, payer, 'order_0123456789' || pk, nonce from payment
   where asset = $1 and payer = $1`,
  `insert into channel (chain_id, asset, id, payer, payer_authorizer, receiver, receiver_authorizer, withdraw_delay, salt, balance, claimed,
     withdrawal, read_block, charged, unclaimed_since, holder)
   select 84532, $1, sha256(n::text::bytea), $1, $1, $1, $1, 86400, sha256(''), 100, 0, 0, 1, 7, now(), n % 3 from generate_series(1, 20000) n`,
]
