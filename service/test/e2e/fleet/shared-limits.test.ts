/** Limits that processes share, over a table whose clock is turned by hand; the stores themselves are in e2e/service/rate-windows.test.ts. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { createBreaker } from '../../../src/lib/async/circuit-breaker.ts'
import { createLog } from '../../../src/lib/log.ts'
import { createRateLimiter, type Quota } from '../../../src/http/rate-limit/limiter.ts'
import { createSharedLimits, type WindowRequest, type WindowUse } from '../../../src/http/rate-limit/shared-limiter.ts'

/** Several processes over one table, whose clock is turned by hand; `answer` decides when and whether it answers. */
function startTable(clock: { at: number }) {
  const table = new Map<string, { used: number; endsAt: number }>()
  const calls: (readonly WindowRequest[])[] = []
  const state = { answer: (drawn: readonly WindowUse[]): Promise<readonly WindowUse[]> => Promise.resolve(drawn) }
  const lines: string[] = []
  const log = createLog((line) => lines.push((JSON.parse(line) as { event: string }).event))

  function drawOne({ key, limit, windowMs, count }: WindowRequest, size: number): WindowUse {
    let window = table.get(key)
    if (window === undefined || window.endsAt <= clock.at) window = { used: 0, endsAt: clock.at + windowMs }
    table.set(key, window)
    let granted = 0
    while (granted < count && window.used + granted + size <= limit) granted += size
    window.used += granted
    return { used: window.used, granted, remainingMs: window.endsAt - clock.at }
  }
  const store = {
    consume: (draws: readonly WindowRequest[], size: number) => {
      calls.push(draws)
      return state.answer(draws.map((draw) => drawOne(draw, size)))
    },
  }
  const newProcess = (deadlineMs = 10_000) =>
    createSharedLimits({
      store,
      breaker: createBreaker({ faults: 3, openMs: 1_000, now: () => clock.at }),
      keyOf: (scope, client) => `${scope}:${client}`,
      deadlineMs,
      log,
      now: () => clock.at,
    })
  return { table, calls, state, lines, newProcess }
}

/** Some budgets are there at once, others later. */
const allOf = (taken: readonly (Quota | Promise<Quota> | undefined)[]) =>
  Promise.all(taken.map((one) => Promise.resolve(one)))

const options = { scope: 'asset', windowSeconds: 60 }
const fail = () => Promise.reject(new Error('away'))

describe('a limit that processes share', () => {
  it('answers like the limit of one process, whichever process is asked, for any order of requests', async () => {
    const steps = fc.array(
      fc.record({
        gap: fc.nat(20_000),
        process: fc.nat(2),
        client: fc.constantFrom('a', 'b'),
        count: fc.integer({ min: 1, max: 4 }),
        size: fc.integer({ min: 1, max: 3 }),
      }),
      { maxLength: 60 },
    )
    await fc.assert(
      fc.asyncProperty(steps, fc.integer({ min: 1, max: 6 }), async (script, limit) => {
        const clock = { at: 1_000_000 }
        const world = startTable(clock)
        const limiters = [0, 1, 2].map(() => world.newProcess().limiter({ ...options, limit }))
        const alone = createRateLimiter({ limit, now: () => clock.at })
        for (const { gap, process, client, count, size } of script) {
          clock.at += gap
          const taken = Array.from({ length: count }, () => limiters[process]?.take(client, size))
          const wanted = Array.from({ length: count }, () => alone.take(client, size))
          // A process rejects a list by what it knows itself. It may show too much as left.
          const shown = (quota: Quota | undefined) => (quota?.allowed || size === 1 ? quota : quota?.allowed)
          assert.deepEqual((await allOf(taken)).map(shown), wanted.map(shown))
        }
      }),
      { numRuns: 100 },
    )
  })

  it('sends what is taken in one turn, and what comes while a call is under way, as one call each', async () => {
    const world = startTable({ at: 0 })
    const held = Promise.withResolvers<void>()
    world.state.answer = async (drawn) => {
      await held.promise
      return drawn
    }
    const limits = world.newProcess()
    const [one, other] = [
      limits.limiter({ ...options, limit: 9 }),
      limits.limiter({ ...options, scope: 'tap', limit: 9 }),
    ]
    const first = [one.take('a'), one.take('a'), one.take('b'), other.take('a')]
    await new Promise((resolve) => setImmediate(resolve))
    const second = [one.take('a'), one.take('c')]
    await new Promise((resolve) => setImmediate(resolve))
    held.resolve()
    const budgets = await Promise.all([...first, ...second])
    assert.deepEqual(
      world.calls.map((draws) => draws.map(({ key, count }) => [key, count])),
      [
        [
          ['asset:a', 2],
          ['asset:b', 1],
          ['tap:a', 1],
        ],
        [
          ['asset:a', 1],
          ['asset:c', 1],
        ],
      ],
    )
    assert.deepEqual(
      budgets.map(({ remaining }) => remaining),
      [8, 7, 8, 8, 6, 8],
    )
  })

  it('does not ask the store about a client whose window is used up', async () => {
    const clock = { at: 0 }
    const world = startTable(clock)
    const limiter = world.newProcess().limiter({ ...options, limit: 1 })
    await limiter.take('a')
    clock.at += 30_000
    const refused = limiter.take('a') as Quota
    assert.deepEqual([refused.allowed, refused.remaining, refused.resetSeconds], [false, 0, 30])
    assert.equal(world.calls.length, 1)
  })

  it('goes on from what it knew when the store is away, and does not give that out again when it is back', async () => {
    const clock = { at: 0 }
    const world = startTable(clock)
    const [one, other] = [world.newProcess(), world.newProcess()]
    const [here, there] = [one.limiter({ ...options, limit: 10 }), other.limiter({ ...options, limit: 10 })]
    for (let n = 0; n < 4; n += 1) await there.take('a')
    assert.equal((await here.take('a')).remaining, 5)
    const { answer } = world.state
    world.state.answer = fail
    clock.at += 10_000
    const budgets: Quota[] = []
    for (let n = 0; n < 4; n += 1) budgets.push(await here.take('a'))
    assert.deepEqual(
      budgets.map(({ remaining, resetSeconds }) => [remaining, resetSeconds]),
      [
        [4, 50],
        [3, 50],
        [2, 50],
        [1, 50],
      ],
    )
    world.table.clear() // as after a restart
    world.state.answer = answer
    clock.at += 10_000
    assert.equal((await here.take('a')).remaining, 0)
    assert.equal((await here.take('a')).allowed, false)
    clock.at += 40_000
    assert.equal((await here.take('a')).allowed, true)
    assert.deepEqual(world.lines, ['limits are counted by this process alone', 'limits are shared again'])
  })

  it('asks a store that fails again and again only once a second, and answers at once between', async () => {
    const clock = { at: 0 }
    const world = startTable(clock)
    world.state.answer = fail
    const limits = world.newProcess()
    const limiter = limits.limiter({ ...options, limit: 1_000 })
    for (let n = 0; n < 50; n += 1) await limiter.take('a')
    assert.equal(world.calls.length, 3)
    assert.ok(!(limiter.take('a') instanceof Promise))
    clock.at += 1_000
    const probe = limiter.take('a')
    assert.ok(probe instanceof Promise)
    await probe
    assert.equal(world.calls.length, 4)
    assert.deepEqual(limits.stats(), { calls: 4, failures: 4, local: 52, up: false })
    assert.equal(world.lines.length, 1)
  })

  it('takes an answer about another number of windows for a failure', async () => {
    const world = startTable({ at: 0 })
    const limits = world.newProcess()
    const limiter = limits.limiter({ ...options, limit: 2 })
    world.state.answer = async (drawn) => [...drawn, ...drawn]
    const [first, second] = await allOf([limiter.take('a'), limiter.take('b')])
    assert.deepEqual([first?.remaining, second?.remaining], [1, 1])
    const { failures, local, up } = limits.stats()
    assert.deepEqual({ failures, local, up }, { failures: 1, local: 2, up: false })
  })

  it('asks for 500 windows in a call, and counts alone beyond 10,000 that wait', async () => {
    const world = startTable({ at: 0 })
    const limits = world.newProcess()
    const limiter = limits.limiter({ ...options, limit: 2 })
    const taken = Array.from({ length: 10_001 }, (_none, client) => limiter.take(String(client)))
    assert.equal(limits.stats().local, 1)
    assert.ok((await allOf(taken)).every((quota) => quota?.allowed === true))
    assert.equal(world.calls.length, 20)
    assert.ok(world.calls.every(({ length }) => length === 500))
  })

  it('does not wait for a store that never answers', async () => {
    const world = startTable({ at: 0 })
    world.state.answer = () => new Promise(() => {})
    const limits = world.newProcess(20)
    const limiter = limits.limiter({ ...options, limit: 2 })
    const budgets = await Promise.all([limiter.take('a'), limiter.take('a'), limiter.take('a')])
    assert.deepEqual(
      budgets.map(({ allowed }) => allowed),
      [true, true, false],
    )
    assert.equal(limits.stats().up, false)
  })

  it('never shows less than nothing where processes have other limits', async () => {
    const world = startTable({ at: 0 })
    const [large, small] = [100, 3].map((limit) => world.newProcess().limiter({ ...options, limit }))
    for (let n = 0; n < 10; n += 1) await large?.take('a')
    const budget = await small?.take('a')
    assert.deepEqual([budget?.allowed, budget?.remaining], [false, 0])
  })
})

describe('a list of requests that takes a shared limit', () => {
  it('is allowed whole or not at all, beside other lists and single requests of the client at once', async () => {
    const world = startTable({ at: 0 })
    const [here, there] = [1, 2].map(() => world.newProcess().limiter({ ...options, limit: 10 }))
    const sizes = [6, 6, 1, 3, 5]
    const taken = sizes.map((size, index) => (index % 2 === 0 ? here : there)?.take('a', size))
    const allowed = (await allOf(taken)).map((quota) => quota?.allowed)
    const used = sizes.reduce((sum, size, index) => sum + (allowed[index] ? size : 0), 0)
    assert.deepEqual([allowed, used, world.table.get('asset:a')?.used], [[true, false, true, true, false], 10, 10])
  })

  it('is answered by the process itself where it cannot fit', async () => {
    const world = startTable({ at: 0 })
    const limiter = world.newProcess().limiter({ ...options, limit: 5 })
    await limiter.take('a', 3)
    const { allowed, remaining } = limiter.take('a', 3) as Quota
    assert.deepEqual([allowed, remaining, world.calls.length], [false, 2, 1])
    assert.equal((await limiter.take('a', 2)).remaining, 0)
  })

  it('is allowed whole or not at all while the store is away', async () => {
    const world = startTable({ at: 0 })
    world.state.answer = fail
    const limits = world.newProcess()
    const limiter = limits.limiter({ ...options, limit: 5 })
    const quotas = await allOf([3, 3, 2].map((size) => limiter.take('a', size)))
    assert.deepEqual(
      quotas.map((quota) => quota?.allowed),
      [true, false, true],
    )
    assert.equal(limits.stats().local, 8)
  })
})
