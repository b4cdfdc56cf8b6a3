/** Purchases through payment channels (spec §4.8): one deposit, then a voucher for each proof, and what is refused. */
import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, it } from 'node:test'
import { verifyAttestation, type Hex } from '@touchstone/verdict'
import { encodeAbiParameters, encodeFunctionResult, parseAbiParameters, type PrivateKeyAccount } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { statusDomain, statusTypes } from '../../../src/hosts/gateway/status.ts'
import { channelAbi, channelContract, depositNonce, voucherDigest } from '../../../src/payments/channels/channel.ts'
import { publishedAddresses } from '../../../src/domain/published-accounts.ts'
import { createRateLimiter } from '../../../src/http/rate-limit/limiter.ts'
import { testDatabases } from '../../support/database/databases.ts'
import { codesOf, post, price } from '../../support/payments/buyer.ts'
import {
  buyThrough,
  channelOf,
  deposit,
  depositPayload,
  openChannel,
  startChannelWorld,
  stockBuyer,
  voucherPayload,
} from '../../support/payments/channels.ts'
import { attestationKey } from '../../support/payments/components.ts'
import type { GatewayWorld, Opened } from '../../support/payments/gateway.ts'

const authorizer = attestationKey()

for (const { name, open, skip } of testDatabases())
  describe(`payment channels on ${name}`, { skip }, () => {
    let world: GatewayWorld
    let gateway: Opened
    let token: bigint
    let another: bigint

    before(async () => {
      world = await startChannelWorld(open)
      token = await world.mint()
      another = await world.mint()
      gateway = await world.open(world.through(authorizer))
    })
    after(() => world?.end())
    beforeEach(() => world.heal())

    const sold = async () =>
      (await world.database.query(`select from payment where kind = 'voucher' and state = 'done'`)).length
    const channel = (payer: PrivateKeyAccount, changed = {}) => channelOf(payer.address, authorizer.address, changed)

    /** A buyer by hand whose channel has a deposit and one purchase of `token`. */
    const newChannel = () => openChannel(world, { url: gateway.url, token, authorizer })

    for (const [what, off] of [
      ['lies before its block, where the clock is late', -300_000],
      ['is still to come, where the clock is ahead', 300_000],
    ] as const)
      it(`sells no proof with a time that ${what}`, async () => {
        const { own, voucher } = await newChannel()
        await world.mine()
        let clock = 0
        const wrong = await world.open({ ...world.through(authorizer), now: () => Date.now() + clock })
        clock = off
        assert.deepEqual(codesOf(await buyThrough(wrong.url, token, await voucher(2n * price))), [503, 'not_ready'])
        assert.equal((await world.channels.find(own.id))?.charged, price)
        await wrong.close()
        assert.equal((await buyThrough(gateway.url, token, await voucher(2n * price))).status, 200)
      })

    it('offers them beside exact payments, which come first', async () => {
      const offer = await post(gateway.url, {})
      const header = offer.headers.get('PAYMENT-REQUIRED') ?? ''
      const { accepts } = JSON.parse(Buffer.from(header, 'base64').toString()) as { accepts: Record<string, unknown>[] }
      assert.deepEqual(
        accepts.map(({ scheme }) => scheme),
        ['exact', 'batch-settlement'],
      )
      assert.deepEqual(accepts[1]?.['extra'], {
        name: 'USDC',
        version: '2',
        receiverAuthorizer: authorizer.address,
        withdrawDelay: 86_400,
        minDeposit: String(deposit),
        assetTransferMethod: 'eip3009',
      })
      await using plain = await world.open()
      const without = await post(plain.url, {})
      assert.doesNotMatch(Buffer.from(without.headers.get('PAYMENT-REQUIRED') ?? '', 'base64').toString(), /batch/)
      const payer = await world.payer(0n)
      const refused = await buyThrough(plain.url, token, await voucherPayload(payer, channel(payer), price))
      assert.deepEqual(codesOf(refused), [402, 'unsupported_scheme'])
    })

    it('are not counted as unpaid requests, but as refused payments when they are refused', async () => {
      const { voucher, payer, own } = await newChannel()
      const [limiter, refusals] = [createRateLimiter({ limit: 0 }), createRateLimiter({ limit: 1 })]
      await using limited = await world.open({ limiter, refusals, ...world.through(authorizer) })
      assert.equal((await post(limited.url, {})).status, 429)
      assert.equal((await buyThrough(limited.url, token, await voucher(2n * price))).status, 200)
      const forged = await voucherPayload(await world.payer(0n), own, 3n * price)
      assert.equal((await buyThrough(limited.url, token, forged)).body.error, 'invalid_signature')
      const next = await buyThrough(limited.url, token, await voucherPayload(payer, own, 3n * price))
      assert.deepEqual(codesOf(next), [429, 'rate_limited'])
    })

    it('a stock client deposits once and buys with no further transaction', async () => {
      const payer = await world.payer(deposit)
      const buyer = stockBuyer(payer, world.chainUrl)
      const before = await world.transactions()
      for (let n = 1; n <= 12; n += 1) {
        const { status, body, receipt } = await buyer.buy(gateway.url, token)
        assert.equal(status, 200, JSON.stringify(body))
        const { signer, contract } = { signer: world.signer.address, contract: world.contract }
        assert.ok(verifyAttestation(body, { signer, contract, tokenId: token }).ok)
        assert.equal(receipt.transaction !== '', n === 1)
        const { chargedCumulativeAmount } = receipt.extra['channelState'] as Record<string, unknown>
        assert.equal(chargedCumulativeAmount, String(BigInt(n) * price))
      }
      assert.equal((await world.transactions()) - before, 1)
      assert.equal(buyer.sent.length, 12)
      assert.equal(await world.balance(payer.address), 0n)
    })

    it('a stock client without records finds its channel on the chain and learns the sum', async () => {
      const payer = await world.payer(deposit)
      await stockBuyer(payer, world.chainUrl).buy(gateway.url, token)
      const [before, count] = [await world.transactions(), await sold()]
      const { status } = await stockBuyer(payer, world.chainUrl).buy(gateway.url, another)
      assert.equal(status, 200)
      assert.deepEqual([await world.transactions(), await sold()], [before, count + 1])
    })

    it('a lost answer is not paid for again, and not even a lost deposit', async () => {
      const payer = await world.payer(2n * deposit)
      const buyer = stockBuyer(payer, world.chainUrl)
      const count = await sold()
      for (const wanted of [1, 2]) {
        buyer.lose()
        await assert.rejects(buyer.buy(gateway.url, token), /the connection broke/)
        assert.equal((await buyer.buy(gateway.url, token)).status, 200)
        assert.equal(await sold(), count + wanted)
      }
      assert.equal(await world.balance(payer.address), deposit)
    })

    it('the same voucher gets the stored proof, and 402 for another request', async () => {
      const { first, bought, voucher } = await newChannel()
      const [before, count] = [await world.transactions(), await sold()]
      for (const payload of [first, await voucher(price)]) {
        const again = await buyThrough(gateway.url, token, payload)
        assert.deepEqual([again.status, again.text], [200, bought.text])
        assert.deepEqual(codesOf(await buyThrough(gateway.url, another, payload)), [402, 'payment_already_used'])
      }
      assert.deepEqual([await world.transactions(), await sold()], [before, count])
    })

    it('the payer reads what became of a voucher, which has no transaction, and of a deposit, which has no proof', async () => {
      const { payer, own, first, bought, voucher } = await newChannel()
      const second = await buyThrough(gateway.url, token, await voucher(2n * price))
      const status = async (nonce: Hex) => {
        const issuedAt = BigInt(Math.floor(Date.now() / 1000))
        const message = { resource: `${gateway.url}/verify`, payer: payer.address, nonce, issuedAt }
        const typed = { domain: statusDomain, types: statusTypes, primaryType: 'PaymentStatus', message } as const
        const Authorization = `EIP712 ${issuedAt}.${await payer.signTypedData(typed)}`
        const answer = await fetch(`${gateway.url}/payments/${payer.address}/${nonce}`, { headers: { Authorization } })
        return (await answer.json()) as unknown
      }
      assert.deepEqual(await status(voucherDigest(own.id, 2n * price)), {
        status: 'done',
        transaction: null,
        proof: second.body,
      })
      const { transaction } = bought.body.payment ?? {}
      const { salt } = first.deposit.authorization.erc3009Authorization
      assert.deepEqual(await status(depositNonce(own.id, salt)), { status: 'done', transaction })
    })

    it('a voucher of an hour ago gets no proof of then: a client without records buys a new one', async () => {
      const payer = await world.payer(deposit)
      const old = await stockBuyer(payer, world.chainUrl).buy(gateway.url, token)
      await world.database.query(
        `update payment set settled_at = settled_at - interval '61 minutes' where kind = 'voucher'`,
      )
      const count = await sold()
      const bought = await stockBuyer(payer, world.chainUrl).buy(gateway.url, token)
      assert.equal(bought.status, 200)
      assert.notDeepEqual(bought.body, old.body) // the sum of the channel is in both
      assert.equal(await sold(), count + 1)
    })

    it('twenty times the same voucher at once is one purchase', async () => {
      const { voucher } = await newChannel()
      const count = await sold()
      const payload = await voucher(2n * price)
      const answers = await Promise.all(
        Array.from({ length: 20 }, (_, n) => buyThrough(gateway.url, n % 2 ? token : another, payload)),
      )
      assert.deepEqual(
        answers.map(({ status }) => status).toSorted((a, b) => a - b),
        [...Array(10).fill(200), ...Array(10).fill(402)],
      )
      assert.equal(new Set(answers.filter(({ status }) => status === 200).map(({ text }) => text)).size, 1)
      assert.equal(await sold(), count + 1)
    })

    it('a voucher over any other sum is refused, with the sum that is right', async () => {
      const { own, voucher } = await newChannel()
      const count = await sold()
      for (const sum of [0n, price - 1n, price + 1n, 2n * price - 1n, 2n * price + 1n, 3n * price, deposit]) {
        const refused = await buyThrough(gateway.url, token, await voucher(sum))
        assert.deepEqual(codesOf(refused), [402, 'voucher_amount_mismatch'])
        const header = refused.headers.get('PAYMENT-REQUIRED') ?? ''
        const corrective = JSON.parse(Buffer.from(header, 'base64').toString()) as {
          error: string
          accepts: { extra: { channelState: object; voucherState: object } }[]
        }
        assert.equal(corrective.error, 'invalid_batch_settlement_evm_cumulative_amount_mismatch')
        const extra = corrective.accepts[0]?.extra
        assert.deepEqual(extra?.channelState, {
          channelId: own.id,
          balance: String(deposit),
          totalClaimed: '0',
          chargedCumulativeAmount: String(price),
        })
      }
      assert.equal(await sold(), count)
    })

    it('a forged voucher and one of another channel are refused', async () => {
      const { own, payer, voucher } = await newChannel()
      const [count, stranger] = [await sold(), privateKeyToAccount(generatePrivateKey())]
      const other = channel(payer, { salt: generatePrivateKey() })
      const signed = await voucher(2n * price)
      const { signature } = signed.voucher
      const highS = `0x${signature.slice(2, 66)}${(0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n - BigInt(`0x${signature.slice(66, 130)}`)).toString(16).padStart(64, '0')}${signature.endsWith('1b') ? '1c' : '1b'}`
      const cases: readonly (readonly [string, object])[] = [
        ['invalid_signature', await voucherPayload(stranger, own, 2n * price)],
        ['invalid_signature', await voucher(2n * price, { maxClaimableAmount: String(3n * price) })],
        ['invalid_signature', await voucher(2n * price, { signature: highS })],
        ['invalid_payload', await voucher(2n * price, { channelId: other.id })],
        ['invalid_payload', { ...signed, channelConfig: { ...signed.channelConfig, salt: other.salt } }],
        ['invalid_payload', { ...signed, type: 'refund' }],
        ['invalid_payload', { ...signed, type: 'deposit' }],
        ['invalid_payload', await voucher(2n * price, { signature: '0x' })],
        ['invalid_payload', await voucher(2n * price, { maxClaimableAmount: String(2n ** 128n) })],
        ['voucher_amount_mismatch', await voucherPayload(payer, other, 2n * price)],
        ['channel_underfunded', await voucherPayload(payer, other, price)],
      ]
      for (const [error, payload] of cases) {
        assert.deepEqual(codesOf(await buyThrough(gateway.url, token, payload)), [402, error])
      }
      assert.equal(await sold(), count)
    })

    it('a channel that the gateway could not claim is refused', async () => {
      const payer = await world.payer(deposit)
      const [stranger, zero] = [publishedAddresses[3]?.toLowerCase() as Hex, `0x${'0'.repeat(40)}` as Hex]
      const cases = [
        ['recipient_mismatch', { receiver: stranger }],
        ['invalid_payment_requirements', { receiverAuthorizer: stranger }],
        ['invalid_payment_requirements', { token: stranger }],
        ['invalid_payment_requirements', { withdrawDelay: 900 }],
        ['invalid_payload', { payerAuthorizer: zero }],
      ] as const
      const before = await world.transactions()
      for (const [error, changed] of cases) {
        const own = channel(payer, changed)
        assert.deepEqual(codesOf(await buyThrough(gateway.url, token, await depositPayload(payer, own))), [402, error])
      }
      assert.equal(await world.transactions(), before)
    })

    it('a deposit that is too small, forged or not covered is refused, and costs nothing', async () => {
      const payer = await world.payer(deposit)
      const own = channel(payer)
      const before = await world.transactions()
      const small = await depositPayload(payer, own, { amount: deposit - 1n, sum: price })
      const large = await depositPayload(payer, own, { amount: deposit + 1n, sum: price })
      const forged = await depositPayload(privateKeyToAccount(generatePrivateKey()), own, {
        amount: deposit,
        sum: price,
      })
      const honest = await voucherPayload(payer, own, price)
      for (const [error, payload] of [
        ['deposit_too_small', small],
        ['insufficient_funds', large],
        ['invalid_signature', { ...forged, voucher: honest.voucher }],
      ] as const) {
        assert.deepEqual(codesOf(await buyThrough(gateway.url, token, payload)), [402, error])
      }
      const good = await depositPayload(payer, own)
      assert.equal((await buyThrough(gateway.url, 2n ** 200n, good)).status, 404)
      assert.equal(await world.transactions(), before)
      assert.equal((await buyThrough(gateway.url, token, good)).status, 200)
    })

    it('a spent deposit buys no more until another is made', async () => {
      const payer = await world.payer(2n * deposit)
      const own = channel(payer)
      const first = await depositPayload(payer, own)
      assert.equal((await buyThrough(gateway.url, token, first)).status, 200)
      await world.database.query(`update channel set charged = 1000000 where id = $1`, [
        Buffer.from(own.id.slice(2), 'hex'),
      ])
      const next = await voucherPayload(payer, own, deposit + price)
      assert.deepEqual(codesOf(await buyThrough(gateway.url, token, next)), [402, 'channel_underfunded'])
      const more = await depositPayload(payer, own, { sum: deposit + price })
      assert.equal((await buyThrough(gateway.url, token, more)).status, 200)
    })

    it('a deposit that was made before covers nothing more, and is not waited for', async () => {
      const { own, first, voucher } = await newChannel()
      await world.database.query(`update channel set charged = balance where id = decode($1, 'hex')`, [own.id.slice(2)])
      const again = { ...(await voucher(deposit + price)), type: 'deposit', deposit: first.deposit }
      const [before, count] = [await world.transactions(), await sold()]
      assert.deepEqual(codesOf(await buyThrough(gateway.url, token, again)), [402, 'channel_underfunded'])
      assert.deepEqual([await world.transactions(), await sold()], [before, count])
    })

    it('a new deposit is made although the answer to the one before was lost', async () => {
      const payer = await world.payer(2n * deposit)
      const own = channel(payer)
      const lost = await depositPayload(payer, own)
      assert.equal((await buyThrough(gateway.url, token, lost)).status, 200)
      const nonce = depositNonce(own.id, lost.deposit.authorization.erc3009Authorization.salt)
      await world.store.setUndelivered({ payer: own.payer, nonce }, true)
      await world.database.query(`update channel set charged = balance where id = decode($1, 'hex')`, [own.id.slice(2)])
      const more = await depositPayload(payer, own, { sum: deposit + price })
      assert.equal((await buyThrough(gateway.url, token, more)).status, 200)
    })

    it('a purchase by name is made once, whatever voucher comes with it', async () => {
      const { voucher } = await newChannel()
      const count = await sold()
      const extensions = {
        'payment-identifier': { info: { required: false, id: `channel-${generatePrivateKey()}`.slice(0, 60) } },
      }
      const bought = await buyThrough(gateway.url, another, await voucher(2n * price), { extensions })
      const again = await buyThrough(gateway.url, another, await voucher(3n * price), { extensions })
      assert.deepEqual([bought.status, again.status, again.text], [200, 200, bought.text])
      const other = await buyThrough(gateway.url, token, await voucher(3n * price), { extensions })
      assert.deepEqual(codesOf(other), [409, 'payment_identifier_used'])
      assert.equal(await sold(), count + 1)
    })

    it('a lost record is rebuilt from the chain, never from what the buyer says', async () => {
      const { own, voucher } = await newChannel()
      await buyThrough(gateway.url, token, await voucher(2n * price))
      const id = Buffer.from(own.id.slice(2), 'hex')
      await world.database.query(`delete from payment where channel = $1`, [id])
      await world.database.query(`delete from channel where id = $1`, [id])
      // The chain knows of no claim: the next voucher is refused, and the first sum is right again.
      const refused = await buyThrough(gateway.url, another, await voucher(3n * price))
      assert.deepEqual(codesOf(refused), [402, 'voucher_amount_mismatch'])
      const kept = await world.channels.find(own.id)
      assert.deepEqual([kept?.charged, kept?.balance, kept?.signature], [0n, deposit, null])
      assert.equal((await buyThrough(gateway.url, another, await voucher(price))).status, 200)
    })

    it('a provider that claims too much raises no sum beyond its answer', async () => {
      const { own, voucher } = await newChannel()
      const block = BigInt((await world.rpc('eth_blockNumber')) as string)
      const wrong = { balance: deposit, claimed: 5n * price, withdrawal: 0n, block }
      const [refreshed] = await world.channels.refresh([{ id: own.id, config: own, state: wrong }])
      assert.equal(refreshed?.charged, 5n * price)
      const count = await sold()
      assert.deepEqual(codesOf(await buyThrough(gateway.url, another, await voucher(2n * price))), [200, undefined])
      const { charged, claimed } = (await world.channels.find(own.id)) ?? {}
      assert.deepEqual([charged, claimed, await sold()], [2n * price, 0n, count + 1])
    })

    it('an answer that contradicts the contract is none', async () => {
      const { voucher } = await newChannel()
      const words = parseAbiParameters('uint256, uint256')
      const state = encodeAbiParameters(words, [deposit, deposit + 1n])
      const withdrawal = encodeAbiParameters(words, [0n, 0n])
      const wrong = encodeFunctionResult({ abi: channelAbi, functionName: 'multicall', result: [state, withdrawal] })
      await using misled = await world.open({
        ...world.through(authorizer),
        rpc: async (method, params = []) =>
          method === 'eth_call' && (params[0] as { to?: Hex }).to === channelContract
            ? wrong
            : world.provider(method, params),
      })
      await world.database.query(`update channel set read_at = read_at - interval '11 minutes'`)
      const refused = await buyThrough(misled.url, token, await voucher(2n * price))
      assert.deepEqual(codesOf(refused), [503, 'payment_unavailable'])
      assert.equal((await buyThrough(gateway.url, token, await voucher(2n * price))).status, 200)
    })

    it('a chain that does not answer stops sales, and nothing is charged', async () => {
      const { voucher, own } = await newChannel()
      await world.database.query(`update channel set read_at = read_at - interval '11 minutes' where id = $1`, [
        Buffer.from(own.id.slice(2), 'hex'),
      ])
      const count = await sold()
      world.payFaults.set({ name: 'rpc-error', methods: ['eth_call'] })
      const refused = await buyThrough(gateway.url, token, await voucher(2n * price))
      assert.deepEqual(codesOf(refused), [503, 'payment_unavailable'])
      await world.heal()
      assert.equal((await buyThrough(gateway.url, token, await voucher(2n * price))).status, 200)
      assert.equal(await sold(), count + 1)
    })
  })
