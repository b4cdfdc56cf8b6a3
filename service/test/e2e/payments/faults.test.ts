/**
 * The buyer is charged exactly when a proof is deliverable, whatever fails: facilitator, asset reads, signer, ledger or clock. No 402 where the
 * buyer can mend nothing; after recovery the same header returns the proof for one charge (spec §4.8, §7). Also the gateway's own health checks.
 */
import assert from 'node:assert/strict'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, afterEach, before, describe, it } from 'node:test'
import { parseAbiItem, toFunctionSelector, toHex, type Hex } from 'viem'
import type { GatewayOptions } from '../../../src/hosts/gateway/gateway.ts'
import { openAttestationKeys } from '../../../src/payments/attestation/keys.ts'
import type { PaymentLedger } from '../../../src/payments/ledger/ledger.ts'
import { testFolder } from '../../support/folder.ts'
import { openSale } from '../../support/payments/gateway.ts'
import { buy, buySettled, codesOf, healthOf, post, price, sign } from '../../support/payments/buyer.ts'
import { startFacilitator, type FacilitatorFault } from '../../support/payments/facilitator.ts'
import { until } from '../../support/wait.ts'
import type { Fault } from '../../support/fault-rpc.ts'

const { world, token, payer, charged } = await openSale()
/** For steps that have to fail: nothing comes after a wait. */
const impatient = { settleMs: 2_000 }

const facilitator = await startFacilitator(world)
const remote = await world.open({ facilitator: { url: facilitator.url } })
/** Waits less for a settlement that is not answered. */
const hasty = await world.open({ facilitator: { url: facilitator.url }, deadlines: impatient })
afterEach(() => world.heal())

const hasRole = parseAbiItem('function hasRole(bytes32, address) view returns (bool)')

const longLived = (seconds = 120n) => sign(payer, { validBefore: BigInt(Math.floor(Date.now() / 1000)) + seconds })

const unavailable = [[503, 'payment_unavailable']] as const
const pendingOrSold = [
  [503, 'settlement_pending'],
  [200, undefined],
] as const

describe('the provider of payments fails before anything is stored', () => {
  for (const [what, fault] of [
    ['every call breaks', 'die'],
    ['every call gets status 500', 'status500'],
    ['every call gets garbage', 'garbage'],
    ['every call gets an error', 'rpc-error'],
    ['no call is answered', 'hang'],
    ['the head is null', { name: 'null-result', methods: ['eth_getBlockByNumber'] }],
    ['code reads fail', { name: 'rpc-error', methods: ['eth_getCode'] }],
    ['calls fail', { name: 'rpc-error', methods: ['eth_call'] }],
    ['calls are rate limited', { name: 'rate-limit', methods: ['eth_call'] }],
    ['calls hang', { name: 'hang', methods: ['eth_call'] }],
    ['one code read breaks', { name: 'die', methods: ['eth_getCode'], times: 1 }],
    ['one call gets status 500', { name: 'status500', methods: ['eth_call'], times: 1 }],
  ] satisfies [string, Fault['name'] | Fault][]) {
    it(`${what}: 503, never 402`, () =>
      survives({ options: { deadlines: { verifyMs: 1_000 } }, breaks: () => world.payFaults.set(fault) }, [
        ...unavailable,
        [200, undefined],
      ]))
  }
})

describe('the provider of payments fails while it settles', () => {
  for (const [what, fault] of [
    ['the broadcast breaks before it is sent', { name: 'die', methods: ['eth_sendRawTransaction'] }],
    ['the answer of the broadcast is garbage', { name: 'garbage', methods: ['eth_sendRawTransaction'] }],
    ['the broadcast is refused', { name: 'rpc-error', methods: ['eth_sendRawTransaction'] }],
    ['the tip is unknown', { name: 'rpc-error', methods: ['eth_maxPriorityFeePerGas'] }],
    ['the pending count is missing', { name: 'null-result', methods: ['eth_getTransactionCount'] }],
    ['logs are hidden', { name: 'hide-logs', methods: ['eth_getLogs'] }],
    ['receipts are missing', { name: 'null-result', methods: ['eth_getTransactionReceipt'] }],
    ['receipts hang', { name: 'hang', methods: ['eth_getTransactionReceipt'] }],
  ] satisfies [string, Fault][]) {
    it(`${what}: the proof or 503 settlement_pending`, () =>
      survives({ options: { deadlines: impatient }, breaks: () => world.payFaults.set(fault) }, pendingOrSold))
  }

  it('the chain does not mine: 503 settlement_pending', () =>
    survives(
      {
        options: { deadlines: impatient },
        breaks: () => world.automine(false),
        mends: () => world.mine(),
      },
      [[503, 'settlement_pending']],
    ))

  it('the facilitator has no gas: 503 payment_unavailable, nothing charged', async () => {
    const { address } = world.facilitator
    const rich = await world.rpc('eth_getBalance', [address, 'latest'])
    await survives(
      {
        breaks: () => world.rpc('anvil_setBalance', [address, toHex(1n)]),
        mends: () => world.rpc('anvil_setBalance', [address, rich]),
      },
      unavailable,
    )
  })

  for (const [what, gas, status, error] of [
    ['pays for no settlement: an unpaid request gets 503', 50_000n, 503, 'payment_unavailable'],
    ['pays for one: an unpaid request gets 402', 500_000n, 402, 'payment_required'],
  ] as const) {
    it(`the facilitator’s ether ${what} ${error}`, async () => {
      const { address } = world.facilitator
      const rich = await world.rpc('eth_getBalance', [address, 'latest'])
      const gateway = await world.open()
      await world.rpc('anvil_setBalance', [address, toHex(gas * BigInt((await world.rpc('eth_gasPrice')) as Hex))])
      try {
        assert.deepEqual(codesOf(await post(gateway.url, {})), [status, error])
      } finally {
        await world.rpc('anvil_setBalance', [address, rich])
      }
    })
  }
})

describe('the asset cannot be read', () => {
  for (const fault of ['die', 'status500', 'garbage', 'rpc-error', 'null-result', 'empty-result', 'hang'] as const) {
    it(`${fault}: 502 chain_unavailable, nothing charged`, () =>
      survives({ breaks: () => world.readFaults.set(fault) }, [[502, 'chain_unavailable']]))
  }
})

describe('the signer', () => {
  for (const [what, sign] of [
    ['fails', () => Promise.reject(new Error('no session'))],
    ['hangs', () => new Promise<never>(() => {})],
    ['signs something else', () => world.signer.sign(`0x${'11'.repeat(32)}`)],
  ] as const) {
    it(`${what}: 503 signer_unavailable, nothing charged`, () =>
      survives({ options: { keys: { active: () => ({ ...world.signer, sign }), published: () => [] } } }, [
        [503, 'signer_unavailable'],
      ]))
  }
})

describe('the keys', () => {
  it('that are gone from their folder: /health is 200 and says so, a sale is 503 signer_unavailable', async () => {
    const folder = join(testFolder(), 'keys')
    const options = { folder, database: world.database, isPublicKnowledge: () => false }
    const keys = await openAttestationKeys(options)
    await using gateway = await world.open({ keys })
    await rm(folder, { recursive: true })
    await keys.reload() // the watcher of the folder does this
    await gateway.check()
    const { attestation_signer: address, status, checks } = await healthOf(gateway.url)
    assert.deepEqual([address, status, checks['signer']?.ok], [null, 'degraded', false])
    assert.deepEqual(codesOf(await buy(gateway.url, token, await sign(payer))), [503, 'signer_unavailable'])
    assert.equal(await charged(), 0n)
  })

  it('that cannot be listed: 500, and the gateway goes on', async () => {
    const published = () => {
      throw new Error('no list')
    }
    await using gateway = await world.open({ keys: { active: () => world.signer, published } })
    const failed = await fetch(`${gateway.url}/.well-known/attestation.json`)
    assert.deepEqual([failed.status, ((await failed.json()) as { error: string }).error], [500, 'internal_error'])
    await healthOf(gateway.url)
  })
})

describe('the ledger', () => {
  const failing = (name: keyof PaymentLedger, done = false): Partial<PaymentLedger> => {
    const real = world.store[name] as (...args: unknown[]) => Promise<unknown>
    const fails = async (...args: unknown[]) => {
      if (done) await real(...args)
      throw new Error('connection terminated')
    }
    return { [name]: fails }
  }

  for (const [what, name, done, expected] of [
    ['is down', 'find', false, [[503, 'ledger_unavailable']]],
    ['does not store the proof', 'insert', false, [[503, 'settlement_pending']]],
    ['stores the proof without saying so', 'insert', true, [[503, 'settlement_pending']]],
    ['does not store the answer', 'done', false, [[200, undefined]]],
    ['stores the answer without saying so', 'done', true, [[200, undefined]]],
  ] as const) {
    it(what, async () => {
      await survives({ options: { ledger: { ...world.store, ...failing(name, done) } } }, expected)
    })
  }
})

describe('a sale that fails', () => {
  it('stands in the log under the X-Request-Id of its answer', async () => {
    await using gateway = await world.open({
      ledger: { ...world.store, find: () => Promise.reject(new Error('gone')) },
    })
    const { status, headers } = await buy(gateway.url, token, await sign(payer))
    assert.equal(status, 503)
    const id = headers.get('x-request-id')
    assert.ok(world.lines.some((line) => line.includes('sale failed') && line.includes(`"requestId":"${id}"`)))
  })
})

describe('the clock', () => {
  const minutes = 60_000
  for (const [what, off, valid] of [
    ['5 minutes ahead', 5 * minutes, 120n],
    ['5 minutes ahead, the payment is valid for an hour', 5 * minutes, 3_600n],
    ['half an hour ahead, the payment is valid for an hour', 30 * minutes, 3_600n],
    ['5 minutes behind', -5 * minutes, 120n],
  ] as const) {
    it(`${what}: 503 not_ready, nothing charged`, async () => {
      await world.mine()
      let clock = 0
      const options = { now: () => Date.now() + clock }
      await survives({ options, breaks: () => (clock = off), valid }, [[503, 'not_ready']])
    })
  }

  it('is shown by /health, which stops the sale until it is right again', async () => {
    let clock = 10 * minutes
    await using gateway = await world.open({ now: () => Date.now() + clock })
    const read = async () => {
      const { status, checks } = await healthOf(gateway.url)
      return [status === 'not_ready', checks['clock']?.ok, checks['clock']?.message.replace(/\d+/, 'N')]
    }
    assert.deepEqual(await read(), [true, false, 'This clock is N s ahead of the chain.'])
    clock = 0
    await gateway.check()
    assert.deepEqual(await read(), [false, true, 'This clock agrees with the chain.'])
    assert.equal((await buy(gateway.url, token, await sign(payer))).status, 200)
  })

  it('sells on a chain whose newest block is old', async () => {
    await using gateway = await world.open()
    world.payFaults.set({
      rewrite: (method, [tag], result) => {
        const block = result as { timestamp: Hex }
        const isOld = method === 'eth_getBlockByNumber' && tag === 'latest'
        return isOld ? { ...block, timestamp: toHex(BigInt(block.timestamp) - 7_200n) } : result
      },
    })
    assert.equal((await buy(gateway.url, token, await longLived())).status, 200)
  })
})

describe('the self-check', () => {
  it('does not say that nothing was charged, because the payment may have been sent before', async () => {
    await using gateway = await world.open({ deadlines: { settleMs: 500 } })
    const payment = await sign(payer)
    await world.automine(false)
    assert.equal((await buy(gateway.url, token, payment)).body.error, 'settlement_pending')
    await world.heal()
    await world.mine()
    await until(async () => (await charged()) === price)
    world.payFaults.set('other-chain')
    await gateway.check()
    const refused = await buy(gateway.url, token, payment)
    assert.deepEqual(codesOf(refused), [503, 'not_ready'])
    assert.doesNotMatch(String(refused.body['message']), /nothing was charged/i)
    await world.heal()
    await gateway.check()
    assert.equal((await buySettled(gateway.url, token, payment)).status, 200)
    assert.equal(await charged(), price)
  })

  it('a provider of another chain stops the sale until it is right again', async () => {
    world.payFaults.set('other-chain')
    await using gateway = await world.open()
    const payment = await sign(payer)
    assert.deepEqual(codesOf(await buy(gateway.url, token, payment)), [503, 'not_ready'])
    const { status, checks } = await healthOf(gateway.url)
    assert.deepEqual([status, checks['chain']?.ok], ['not_ready', false])
    await world.heal()
    await gateway.check()
    assert.equal((await buy(gateway.url, token, payment)).status, 200)
  })

  it('wrong terms, and a signer that does other things, stop the sale; money on it does not', async () => {
    const used = { ...world.signer, address: world.facilitator.address }
    for (const options of [
      { terms: { ...world.terms, tokenVersion: '1' } },
      { terms: { ...world.terms, asset: `0x${'12'.repeat(20)}` } },
      { terms: { ...world.terms, asset: '0xcA11bde05977b3631167028862bE2a173976CA11' } },
      { terms: { ...world.terms, price: 100_001n } },
      { terms: { ...world.terms, price: 0n } },
      { terms: { ...world.terms, payTo: world.signer.address } },
      { contract: `0x${'12'.repeat(20)}` },
      { keys: { active: () => used, published: () => [] } },
    ] satisfies Partial<GatewayOptions>[]) {
      await using gateway = await world.open(options)
      // A busy machine may leave a check without its answer.
      await until(async () => {
        await gateway.check()
        return (await healthOf(gateway.url)).status === 'not_ready'
      })
      assert.equal((await buy(gateway.url, token, await sign(payer))).body.error, 'not_ready', Object.keys(options)[0])
    }
    await world.rpc('anvil_setBalance', [world.signer.address, '0x1'])
    await using gateway = await world.open()
    assert.equal((await buy(gateway.url, token, await sign(payer))).status, 200)
    assert.equal((await healthOf(gateway.url)).status, 'degraded')
  })
})

describe('a check whose question the provider refuses, or answers with nothing', () => {
  const isRoleRead = (method: string, params: readonly unknown[]) =>
    method === 'eth_call' && (params[0] as { data?: string }).data?.startsWith(toFunctionSelector(hasRole)) === true
  for (const [check, fault] of [
    ['signer', { name: 'rate-limit', when: isRoleRead }],
    ['signer', { name: 'null-result', methods: ['eth_getCode'] }],
    ['contract', { name: 'null-result', methods: ['eth_getCode'] }],
    ['token', { name: 'null-result', methods: ['eth_getCode'] }],
  ] satisfies [string, Fault][])
    it(`has no answer: ${check}, ${fault.name}`, async () => {
      await world.rpc('anvil_setBalance', [world.signer.address, '0x0'])
      world.payFaults.set(fault)
      await using gateway = await world.open()
      const { status, checks } = await healthOf(gateway.url)
      assert.deepEqual([status, checks[check]?.message], ['degraded', 'No answer.'])
    })
})

describe('a remote facilitator', () => {
  const noAnswers = ['status500', 'garbage', 'hang', 'gone'] as const
  // Their checks of every minute may have met the faults of earlier tests.
  before(() => Promise.all([remote.check(), hasty.check()]))
  after(() => facilitator.close())
  afterEach(() => facilitator.set('none'))

  it('sells, refuses a payer without money, and is asked for what it supports', async () => {
    assert.equal((await buy(remote.url, token, await sign(payer))).status, 200)
    assert.equal(await charged(), price)
    const poor = await buy(remote.url, token, await sign(await world.payer(0n)))
    assert.deepEqual(codesOf(poor), [402, 'insufficient_funds'])
    facilitator.set('status500', 'supported')
    await using degraded = await world.open({ facilitator: { url: facilitator.url } })
    assert.equal((await healthOf(degraded.url)).status, 'degraded')
  })

  for (const name of [...noAnswers, 'flood', 'blames', 'redirect'] satisfies FacilitatorFault[])
    it(`${name} on verify: 503 payment_unavailable, and the same header pays later`, async () => {
      const payment = await longLived()
      facilitator.set(name, 'verify')
      assert.deepEqual(codesOf(await buy(remote.url, token, payment)), [503, 'payment_unavailable'])
      assert.equal(await charged(), 0n)
      facilitator.set('none')
      assert.equal((await buy(remote.url, token, payment)).status, 200)
      assert.equal(await charged(), price)
    })

  for (const name of [...noAnswers, 'lost', 'lie', 'blames'] satisfies FacilitatorFault[]) {
    it(`${name} on settle: the proof or 503, one charge, and the same header gets the proof`, async () => {
      const payment = await longLived()
      const seller = name === 'hang' ? hasty : remote
      facilitator.set(name, 'settle')
      const answer = await buy(seller.url, token, payment)
      if (name === 'lost') assert.equal(answer.status, 200)
      else assert.deepEqual(codesOf(answer), [503, 'settlement_pending'])
      facilitator.set('none')
      assert.equal((await buy(remote.url, token, payment)).status, 200)
      assert.equal(await charged(), price)
    })
  }

  it('that demands a header gets it from a file, which may change; without it: 503 payment_unavailable', async () => {
    const folder = testFolder()
    const headersFile = join(folder, 'headers.json')
    let demanded = 'Bearer first-secret'
    const write = (value: string) => writeFile(headersFile, JSON.stringify({ Authorization: value }), { mode: 0o600 })
    await using demanding = await startFacilitator(world, () => demanded)
    await using seller = await world.open({ facilitator: { url: demanding.url, headersFile } })
    const payment = await longLived()
    assert.deepEqual(codesOf(await buy(seller.url, token, payment)), [503, 'payment_unavailable'])
    await write('Bearer other-secret')
    assert.equal((await buy(seller.url, token, payment)).body.error, 'payment_unavailable')
    await write(demanded)
    assert.equal((await buy(seller.url, token, payment)).status, 200)
    await write((demanded = 'Bearer second-secret'))
    assert.equal((await buy(seller.url, token, await longLived())).status, 200)
    assert.equal(await charged(), 2n * price)
    assert.ok(!world.lines.some((line) => line.includes('-secret')))
  })

  it('that blames the buyer while the provider serves another chain: 503', async () => {
    const payment = await sign(await world.payer(0n))
    world.payFaults.set('other-chain')
    assert.deepEqual(codesOf(await buy(remote.url, token, payment)), [503, 'payment_unavailable'])
  })
})

/** A fault: options of the gateway, or an action before the sale that is undone after it. */
type Broken = {
  readonly options?: Partial<GatewayOptions>
  readonly breaks?: () => unknown
  readonly mends?: () => unknown
  /** Seconds for which the payment is valid. */
  readonly valid?: bigint
}
type Expected = readonly (readonly [status: number, error: string | undefined])[]

/**
 * Buys while something is broken. Once that is repaired, retries the same header until it has an end. The first answer is one of
 * `expected`, the last one is the proof, and there is one charge.
 */
async function survives({ options = {}, breaks, mends, valid }: Broken, expected: Expected): Promise<void> {
  const payment = await longLived(valid)
  const gateway = await world.open(options)
  await breaks?.()
  const first = await buy(gateway.url, token, payment)
  const isExpected = expected.some(([status, error]) => status === first.status && error === first.body.error)
  assert.ok(isExpected, `${first.status} ${first.body.error}`)
  if (first.status !== 200) assert.ok((await charged()) <= price)
  await world.heal()
  await mends?.()
  await gateway.close()
  await using healthy = await world.open()
  const last = await buySettled(healthy.url, token, payment)
  assert.equal(last.status, 200, `${last.status} ${last.body.error}`)
  if (first.status === 200) assert.equal(last.text, first.text)
  assert.equal(await charged(), price)
}
