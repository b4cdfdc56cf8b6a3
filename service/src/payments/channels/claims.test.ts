/** Which channels a claim takes, and how many go in one transaction. */
import assert from 'node:assert/strict'
import { beforeEach, describe, it } from 'node:test'
import type { Hex } from '@touchstone/verdict'
import { decodeFunctionData } from 'viem'
import { testDatabases } from '../../../test/support/database/databases.ts'
import { attestationKey } from '../../../test/support/payments/components.ts'
import { randomHex } from '../../../test/support/payments/ledger.ts'
import { useOpened } from '../../../test/support/opened.ts'
import { hexToBytes } from '../../db/columns.ts'
import { createLog } from '../../lib/log.ts'
import { openHolder } from '../holder.ts'
import { channelAbi, channelIdOf, type ChannelConfig } from './channel.ts'
import { createChannelClaims, type ClaimOptions } from './claims.ts'
import type { ChannelState } from './state.ts'
import { createChannelStore } from './store.ts'

const asset: Hex = `0x${'aa'.repeat(20)}`
const [one, two] = [attestationKey(), attestationKey()]

for (const { name, open, skip } of testDatabases())
  describe(`claims of channels on ${name}`, { skip }, () => {
    const database = useOpened(open)
    const holder = useOpened(() => openHolder(database))
    beforeEach(() => database.query('delete from channel'))

    /** The receiver is the seller of these tests, unless another one is given. */
    const seller = randomHex(20)
    const states = new Map<Hex, ChannelState>()

    /** Stores a channel with purchases over 10 units. The chain has a balance of 100 units, unless another state is given. */
    async function channel(
      changed: Partial<ChannelConfig> = {},
      state: Partial<ChannelState> = {},
      { charged = 10, ago = '1 minute' } = {},
    ): Promise<Hex> {
      const payer = randomHex(20)
      const authorizer = one.address.toLowerCase() as Hex
      const accounts = { payer, payerAuthorizer: payer, receiver: seller, receiverAuthorizer: authorizer }
      const config = { ...accounts, token: asset, withdrawDelay: 86_400, salt: randomHex(32), ...changed }
      const id = channelIdOf(config)
      states.set(id, { balance: 100n, claimed: 0n, withdrawal: 0n, block: 9n, ...state })
      await database.query(
        `insert into channel (chain_id, asset, id, payer, payer_authorizer, receiver, receiver_authorizer, withdraw_delay, salt,
           balance, claimed, withdrawal, read_block, charged, signature, unclaimed_since)
         values (84532, $1, $2, $3, $3, $4, $5, 86400, $6, 100, 0, 0, 1, $7, $8, clock_timestamp() - $9::interval)`,
        [
          hexToBytes(asset),
          hexToBytes(id),
          hexToBytes(payer),
          hexToBytes(config.receiver),
          hexToBytes(config.receiverAuthorizer),
          hexToBytes(config.salt),
          charged,
          hexToBytes(randomHex(65)),
          ago,
        ],
      )
      return id
    }

    /** Runs one pass. Returns the channels of each transaction, the receivers that these pay, and the errors of the log. */
    async function pass(more: Partial<ClaimOptions> = {}) {
      const claimed: Hex[][] = []
      const paid: Hex[] = []
      const errors: string[] = []
      await using claims = createChannelClaims({
        store: createChannelStore(database, { chainId: 84532, asset, holder }),
        readChannels: async (ids) => ids.map((id) => states.get(id) ?? assert.fail('an unknown channel')),
        facilitator: {
          execute: async ({ data }) => {
            const calls = decodeFunctionData({ abi: channelAbi, data }).args?.[0] as Hex[]
            const [claim, settle] = calls.map((call) => decodeFunctionData({ abi: channelAbi, data: call }))
            const rows = (claim?.args?.[0] ?? []) as unknown as { voucher: { channel: ChannelConfig } }[]
            claimed.push(rows.map(({ voucher }) => channelIdOf({ ...voucher.channel })))
            const [receiver] = (settle?.args ?? []) as unknown as [Hex]
            paid.push(receiver.toLowerCase() as Hex)
            return 'sent'
          },
        },
        accounts: [one, two],
        log: createLog((line) => line.includes('"level":"error"') && errors.push(line)),
        claimUnits: 1n,
        intervalMs: 3_600_000,
        ...more,
      })
      await claims.pass()
      return { claimed, paid, errors }
    }

    it('go fifty in a transaction, each channel once', async () => {
      const ids: Hex[] = []
      for (let n = 0; n < 120; n += 1) ids.push(await channel())
      const { claimed } = await pass()
      assert.deepEqual(
        claimed.map(({ length }) => length).toSorted((a, b) => b - a),
        [50, 50, 20],
      )
      assert.deepEqual(claimed.flat().toSorted(), ids.toSorted())
    })

    it('go in one transaction for each receiver and each account that authorizes them', async () => {
      const [other, authorizer] = [randomHex(20), two.address.toLowerCase() as Hex]
      const own = [await channel(), await channel()]
      const ofOther = await channel({ receiver: other })
      const ofTwo = await channel({ receiverAuthorizer: authorizer })
      const { claimed, paid, errors } = await pass()
      const found = claimed.map((ids, index) => [paid[index], ids.toSorted()].flat().join())
      assert.deepEqual(
        new Set(found),
        new Set(
          [
            [seller, ...own.toSorted()],
            [other, ofOther],
            [seller, ofTwo],
          ].map((ids) => ids.join()),
        ),
      )
      assert.deepEqual(errors, [])
    })

    it('leave out a channel of which all is claimed, and take those behind it', async () => {
      for (let n = 0; n < 3; n += 1) {
        await channel({}, { claimed: 10n }, { ago: '3 hours' })
        const open = await channel()
        assert.deepEqual((await pass()).claimed, [[open]])
        await database.query('delete from channel')
      }
    })

    it('wait until the sum is large enough, or the oldest purchase is an hour old', async () => {
      const [late, early] = [await channel({}, {}, { ago: '58 minutes' }), await channel()]
      assert.deepEqual((await pass({ claimUnits: 21n })).claimed, [])
      assert.equal((await pass({ claimUnits: 20n })).claimed.flat().length, 2)
      await database.query(
        `update channel set unclaimed_since = unclaimed_since - interval '3 minutes' where id = $1`,
        [hexToBytes(late)],
      )
      const { claimed } = await pass({ claimUnits: 21n })
      assert.deepEqual(claimed.flat().toSorted(), [late, early].toSorted())
    })

    it('take a channel at once, and alone, whose payer asks anything back', async () => {
      const [leaving, other] = [await channel({}, { withdrawal: 1n }), await channel()]
      assert.deepEqual((await pass({ claimUnits: 21n })).claimed, [[leaving]])
      assert.deepEqual(new Set((await pass()).claimed.map(String)), new Set([leaving, other]))
    })

    it('name a channel once that its deposit no longer covers', async () => {
      const [covered, short] = [await channel({}, { balance: 10n }), await channel({}, { balance: 7n })]
      const { errors, claimed } = await pass()
      assert.equal(errors.length, 1)
      assert.match(errors[0] ?? '', /does not cover its vouchers.*"units":"?3\b/)
      assert.deepEqual(claimed.flat().toSorted(), [covered, short].toSorted())
      assert.deepEqual((await pass()).errors, [])
    })

    it('keep their channels from other processes until all have ended, also where one fails', async () => {
      const [failing, slow] = [await channel({ receiver: randomHex(20) }), await channel()]
      const held = Promise.withResolvers<void>()
      const isSent = Promise.withResolvers<void>()
      let sent = 0
      const execute = async () => {
        if ((sent += 1) === 1) throw new Error('the provider does not answer')
        isSent.resolve()
        await held.promise
        return 'sent' as const
      }
      const claiming = pass({ facilitator: { execute } })
      let isOver = false
      claiming.catch(() => {}).finally(() => (isOver = true))
      await isSent.promise
      const other = { ...holder, number: 7, isAlive: 'holder <> 0' }
      const adopted = () => createChannelStore(database, { chainId: 84532, asset, holder: other }).adopt(9)
      for (let look = 0; look < 20; look += 1) assert.deepEqual([await adopted(), isOver], [[], false])
      held.resolve()
      await assert.rejects(claiming, /does not answer/)
      assert.deepEqual(new Set((await adopted()).map(({ id }) => id)), new Set([failing, slow]))
    })
  })
