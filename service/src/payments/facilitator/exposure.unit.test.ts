import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Payment } from '../x402/payment.ts'
import { createExposure, type Exposed } from './exposure.ts'

const payer = `0x${'1'.repeat(40)}` as const
const payment = { from: payer, value: 10n } as Payment

describe('the exposure to one payer', () => {
  it('costs one read of its balance for each payment in flight, whatever number waits', async () => {
    let reads = 0
    const exposure = createExposure({
      balance: async () => {
        reads += 1
        return 10n
      },
    })
    const count = 40
    const settled = Array.from({ length: count }, async () => {
      const leave = await exposure.enter({ payment, codeHash: undefined })
      assert.ok(typeof leave === 'function')
      await new Promise(setImmediate)
      leave('other')
    })
    await Promise.all(settled)
    assert.ok(reads < count, `${reads} reads for ${count} payments`)
  })

  it('reads the balance again after a read that failed', async () => {
    let reads = 0
    const exposure = createExposure({
      balance: async () => {
        if ((reads += 1) === 1) throw new Error('no answer')
        return 20n
      },
    })
    const first = await exposure.enter({ payment, codeHash: undefined })
    await assert.rejects(exposure.enter({ payment, codeHash: undefined }), /no answer/)
    assert.equal(typeof (await exposure.enter({ payment, codeHash: undefined })), 'function')
    assert.equal(typeof first, 'function')
  })

  /** Enters payments of an account that holds `held`, of 10 units each. `reads` are those of the balance. */
  function accountOf(held: bigint) {
    const reads: PromiseWithResolvers<bigint>[] = []
    const state = { held, isHeld: false, reads }
    const balance = async () => {
      const read = Promise.withResolvers<bigint>()
      reads.push(read)
      if (!state.isHeld) read.resolve(state.held)
      return read.promise
    }
    const exposure = createExposure({ balance })
    const enter = (more: Partial<Payment> = {}, codeHash?: Exposed['codeHash']) => {
      const entered = exposure.enter({ payment: { ...payment, ...more }, codeHash })
      const one = { entered, isIn: false }
      void entered.then(() => (one.isIn = true))
      return one
    }
    return { state, enter }
  }
  const settled = () => new Promise(setImmediate)
  type Leave = Exclude<Awaited<ReturnType<ReturnType<typeof createExposure>['enter']>>, number>
  const leaveOf = async ({ entered }: { readonly entered: Promise<Leave | number> }): Promise<Leave> => {
    const leave = await entered
    return typeof leave === 'function' ? leave : assert.fail(`blocked for ${leave} ms`)
  }

  it('is what its balance covers, less all that is in flight; the others wait for an end', async () => {
    const { state, enter } = accountOf(30n)
    const [first, , third, fourth, fifth] = [enter(), enter(), enter(), enter(), enter()] as const
    await settled()
    assert.deepEqual([third.isIn, fourth.isIn, state.reads.length], [true, false, 1])
    ;(await leaveOf(first))('paid')
    await settled()
    assert.deepEqual([fourth.isIn, fifth.isIn], [false, false])
    for (const one of [third, enter({ value: 0n })]) (await leaveOf(one))('other')
    await settled()
    assert.deepEqual([fourth.isIn, fifth.isIn], [false, false])
  })

  it('is read anew for the next payment where all in flight have ended', async () => {
    const { state, enter } = accountOf(10n)
    const [first, second] = [enter(), enter()]
    await settled()
    assert.deepEqual([second.isIn, state.reads.length], [false, 1])
    ;(await leaveOf(first))('paid')
    await leaveOf(second)
    state.held = 20n
    await leaveOf(enter())
    assert.equal(state.reads.length, 2)
  })

  it('is no balance that was read before another payment of it ended', async () => {
    const { state, enter } = accountOf(0n)
    state.isHeld = true
    const [first, second, waiting] = [enter(), enter({ value: 0n }), enter()]
    await settled()
    assert.deepEqual([second.isIn, waiting.isIn, state.reads.length], [false, false, 1])
    ;(await leaveOf(first))('paid')
    state.reads[0]?.resolve(1_000n)
    await settled()
    const others = [enter(), enter()]
    await settled()
    assert.deepEqual([others.some(({ isIn }) => isIn), state.reads.length], [false, 2])
  })

  for (const [what, codeHash, minutes] of [
    ['an account for ten minutes', undefined, 10],
    ['a wallet for a day', `0x${'c'.repeat(64)}`, 24 * 60],
  ] as const)
    it(`ends with a transfer that moves nothing, which blocks ${what}, and with no other end`, async () => {
      const { enter } = accountOf(100n)
      for (const ended of ['other', 'paid', 'failed'] as const) (await leaveOf(enter({}, codeHash)))(ended)
      const blocked = await enter({}, codeHash).entered
      assert.ok(typeof blocked === 'number' && Math.abs(blocked / 60_000 - minutes) < 1, `${String(blocked)} ms`)
      await leaveOf(enter({ from: `0x${'2'.repeat(40)}` }, codeHash))
    })

  it('is one transfer at a time for a wallet, whose balance is not read', async () => {
    const { state, enter } = accountOf(1_000n)
    const codeHash = `0x${'c'.repeat(64)}` as const
    const [first, second] = [enter({}, codeHash), enter({}, codeHash)]
    await settled()
    assert.deepEqual([second.isIn, state.reads.length], [false, 0])
    ;(await leaveOf(first))('paid')
    await leaveOf(second)
  })
})

describe('the exposure to one kind of wallet', () => {
  const kind = `0x${'c'.repeat(64)}` as const
  const other = `0x${'d'.repeat(64)}` as const
  const minutes = 60_000
  const opened = () => {
    const exposure = createExposure({ balance: async () => 10n })
    let wallets = 0
    const enter = (codeHash: Exposed['codeHash'], wallet = (wallets += 1), more: Partial<Payment> = {}) => {
      const from = `0x${String(wallet).padStart(40, '0')}` as const
      return exposure.enter({ payment: { ...payment, ...more, from }, codeHash })
    }
    const entered = async (...which: Parameters<typeof enter>) => {
      const leave = await enter(...which)
      return typeof leave === 'function' ? leave : assert.fail(`blocked for ${leave} ms`)
    }
    const fail = async () => (await entered(kind))('failed')
    return { enter, entered, fail }
  }

  it('is two transfers at the same time: a third one waits for the end of another', async () => {
    const { enter, entered } = opened()
    const [first] = await Promise.all([entered(kind), entered(kind)])
    let isWaiting = true
    const third = enter(kind).finally(() => (isWaiting = false))
    await Promise.all([entered(other), entered(undefined)])
    assert.ok(isWaiting)
    first('other')
    assert.equal(typeof (await third), 'function')
  })

  it('is two transfers that move nothing: its other wallets are blocked for ten minutes, and no others', async () => {
    const { enter, entered } = opened()
    for (const blocked of [false, false, true]) {
      const answer = await enter(kind)
      if (typeof answer === 'function') answer('failed')
      else assert.ok(Math.abs(answer - 10 * minutes) < minutes, `${answer} ms`)
      assert.equal(typeof answer === 'number', blocked)
    }
    await Promise.all([entered(other), entered(undefined)])
  })

  it('is one transfer more for each sale to the kind, and no block at all for a wallet that has bought', async () => {
    const { enter, entered, fail } = opened()
    const customer = 1_000
    ;(await entered(kind, customer))('paid')
    for (let failure = 0; failure < 3; failure += 1) await fail()
    assert.equal(typeof (await enter(kind)), 'number')
    ;(await entered(kind, customer))('paid')
    await entered(kind)
  })

  it('is twenty transfers more at most, however many sales there were', async () => {
    const { enter, entered, fail } = opened()
    for (let sale = 0; sale < 25; sale += 1) (await entered(kind))('paid')
    for (let failure = 0; failure < 22; failure += 1) await fail()
    assert.equal(typeof (await enter(kind)), 'number')
  })

  it('is not widened by a deposit, which its payer can have back', async () => {
    const { enter, entered, fail } = opened()
    ;(await entered(kind, 1_000, { deposit: {} as Payment['deposit'] }))('paid')
    for (let failure = 0; failure < 2; failure += 1) await fail()
    for (const wallet of [1_000, 1_001]) assert.equal(typeof (await enter(kind, wallet)), 'number')
  })
})
