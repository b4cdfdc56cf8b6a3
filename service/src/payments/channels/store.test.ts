/** The ledger of payment channels: what the chain holds for many of them, in few statements. */
import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, it } from 'node:test'
import type { Hex } from '@touchstone/verdict'
import { testDatabases } from '../../../test/support/database/databases.ts'
import { attestationKey } from '../../../test/support/payments/components.ts'
import { silentLog } from '../../../test/support/reader/anvil.ts'
import type { Database } from '../../db/database.ts'
import { openHolder, type PaymentHolder } from '../holder.ts'
import { createChannelClaims } from './claims.ts'
import { createChannelStore } from './store.ts'

const asset: Hex = `0x${'aa'.repeat(20)}`

for (const { name, open, skip } of testDatabases())
  describe(`the ledger of payment channels on ${name}`, { skip }, () => {
    let database: Database
    let holder: PaymentHolder
    const statements = { sent: 0, open: 0, most: 0 }
    const query: Database['query'] = async (text, values) => {
      statements.sent += 1
      statements.most = Math.max(statements.most, (statements.open += 1))
      return database.query<never>(text, values).finally(() => (statements.open -= 1))
    }
    before(async () => {
      database = await open()
      holder = await openHolder(database)
    })
    after(async () => {
      await holder?.[Symbol.asyncDispose]()
      await database?.close()
    })
    beforeEach(() => database.query(`delete from channel`))

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
      const store = createChannelStore(database, { chainId: 84532, asset, holder })
      const id: Hex = `0x${'01'.repeat(32)}`
      const [account, salt] = [`0x${'02'.repeat(20)}`, `0x${'03'.repeat(32)}`] as const
      const config = { payer: account, payerAuthorizer: account, receiver: account, receiverAuthorizer: account }
      const state = { balance: 100n, claimed: 0n, withdrawal: 0n, block: 1n }
      const read = { id, config: { ...config, token: asset, withdrawDelay: 86_400, salt }, state }
      await store.refresh([read])
      assert.equal((await store.find(id))?.isFresh, true)
      await database.query(`update channel set read_at = read_at + interval '10 years'`)
      assert.equal((await store.find(id))?.isFresh, false)
      assert.equal((await store.refresh([read]))[0]?.isFresh, true)
    })
  })
