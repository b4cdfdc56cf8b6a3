import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { createBreaker } from '../../lib/async/circuit-breaker.ts'
import { agreement, type AgreementOptions, ReadFailure } from './failover.ts'
import { createLatency, type Provider } from './provider.ts'
import { type RpcErrorKind, RpcError } from './answer.ts'

/** `hangs`: there is no answer at all. */
type Script = Readonly<{ says?: string; fails?: RpcErrorKind; afterMs?: number; hangs?: boolean }>

/** Asks providers that each follow a script. */
function asks(scripts: readonly Script[], options: Partial<AgreementOptions<string>> = {}) {
  const asked: number[] = []
  const counts = { hedges: 0, failovers: 0, disagreements: 0 }
  const providers = scripts.map((_, index) => providerNamed(index))
  const answer = agreement({
    providers,
    needed: 1,
    consensusKey: String,
    deadline: performance.now() + 600_000,
    counts,
    async attempt({ index }) {
      asked.push(index)
      const { says, fails = 'fault', afterMs = 0, hangs = false } = scripts[index] ?? {}
      await new Promise((resolve) => hangs || setTimeout(resolve, afterMs))
      if (says === undefined) throw new RpcError(fails, `scripted ${fails}`)
      return says
    },
    ...options,
  })
  return { answer, asked, counts, providers }
}

function providerNamed(index: number): Provider {
  const breaker = createBreaker({ faults: 5, openMs: 5000, now: () => 0 })
  const unused = () => assert.fail('not used here')
  return {
    index,
    label: `${index}:host`,
    breaker,
    state: breaker.state,
    isPaused: () => false,
    latency: createLatency(),
    pin: { ask: unused, askLogs: unused, renew: unused },
    attempt: unused,
    doubtChain: unused,
    close: unused,
  }
}

describe('a read of one provider', () => {
  it('asks no second one when the first answers', async () => {
    const { answer, asked } = asks([{ says: 'a' }, { says: 'b' }])
    assert.equal(await answer, 'a')
    assert.deepEqual(asked, [0])
  })

  it('asks the next one at once when one fails', async () => {
    const { answer, asked, counts } = asks([{}, { fails: 'non-canonical' }, { says: 'c' }])
    assert.equal(await answer, 'c')
    assert.deepEqual([asked, counts.failovers], [[0, 1, 2], 2])
  })

  it('asks another one beside a slow one, and takes the first answer', { timeout: 240_000 }, async () => {
    const { answer, counts } = asks([{ hangs: true }, { says: 'quick' }])
    assert.equal(await answer, 'quick')
    assert.equal(counts.hedges, 1)
  })

  it('gives a provider the time it usually takes before it asks another', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const provider = providerNamed(0)
    provider.latency.add(200)
    const { answer, asked } = asks([{ says: 'usual', afterMs: 120 }, { says: 'b' }], {
      providers: [provider, providerNamed(1)],
    })
    t.mock.timers.tick(120)
    assert.equal(await answer, 'usual')
    assert.deepEqual(asked, [0])
  })

  it('gives the one that replaces another its own time', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const providers = [0, 1, 2].map(providerNamed)
    for (const provider of providers) provider.latency.add(200)
    const scripts = [{ afterMs: 100 }, { says: 'b', afterMs: 150 }, { says: 'c' }]
    const { answer, asked } = asks(scripts, { providers })
    t.mock.timers.tick(100)
    await turn()
    t.mock.timers.tick(150)
    assert.equal(await answer, 'b')
    assert.deepEqual(asked, [0, 1])
  })

  it('reports the failure of each when all fail', async () => {
    const { answer } = asks([{}, { fails: 'non-canonical' }])
    await assert.rejects(answer, (error) => {
      assert.ok(error instanceof ReadFailure)
      assert.deepEqual([...error.kinds], ['fault', 'non-canonical'])
      assert.match(error.message, /0:host scripted fault; 1:host scripted non-canonical/)
      return true
    })
  })

  it('ends at the deadline, and asks no provider when it has passed', async () => {
    await assert.rejects(asks([{ hangs: true }], { deadline: performance.now() + 30 }).answer, /deadline/)
    const { answer, asked } = asks([{ says: 'a' }], { deadline: performance.now() - 1 })
    await assert.rejects(answer, /deadline/)
    assert.deepEqual(asked, [])
  })

  it('asks a single provider a second time after a broken socket only', async () => {
    const { answer, asked } = asks([{ fails: 'reset' }])
    await assert.rejects(answer)
    assert.deepEqual(asked, [0, 0])
    const other = asks([{ fails: 'fault' }])
    await assert.rejects(other.answer)
    assert.deepEqual(other.asked, [0])
  })

  it('passes by a provider whose breaker is open', async () => {
    const broken = providerNamed(0)
    for (let fault = 0; fault < 5; fault++) broken.breaker.fault()
    const { answer, asked } = asks([{ says: 'a' }, { says: 'b' }], { providers: [broken, providerNamed(1)] })
    assert.equal(await answer, 'b')
    assert.deepEqual(asked, [1])
    await assert.rejects(asks([{ says: 'a' }], { providers: [broken] }).answer, ReadFailure)
    await assert.rejects(asks([], { providers: [] }).answer, /behind or its breaker open/)
  })
})

describe('a read that two must agree on', () => {
  const two = { needed: 2 }

  it('asks two at once and returns the answer of both', async () => {
    const { answer, asked } = asks([{ says: 'a', afterMs: 20 }, { says: 'a', afterMs: 20 }, { says: 'b' }], two)
    assert.equal(await answer, 'a')
    assert.deepEqual(asked, [0, 1])
  })

  it('asks as many as are needed at once', async () => {
    const { answer, asked } = asks([{ says: 'a', afterMs: 20 }, { says: 'a' }, { says: 'a' }], { needed: 3 })
    assert.deepEqual(asked, [0, 1, 2])
    assert.equal(await answer, 'a')
  })

  it('replaces one that fails, is slow, or does not have the block', { timeout: 240_000 }, async () => {
    for (const first of [{}, { fails: 'non-canonical' as const }, { hangs: true }]) {
      assert.equal(await asks([first, { says: 'a' }, { says: 'a' }], two).answer, 'a')
    }
  })

  it('fails when they contradict each other, however many agree', async () => {
    const { answer, counts } = asks([{ says: 'a', afterMs: 20 }, { says: 'lie' }, { says: 'a' }, { says: 'a' }], two)
    await assert.rejects(answer, /disagree/)
    assert.equal(counts.disagreements, 1)
  })

  it('takes a revert for an answer that an other answer contradicts', async () => {
    const { answer, counts } = asks([{ fails: 'reverted' }, { says: 'a' }, { says: 'a' }], two)
    await assert.rejects(answer, /disagree/)
    assert.equal(counts.disagreements, 1)
    await assert.rejects(asks([{ fails: 'reverted' }, { fails: 'reverted' }], two).answer, (error) => {
      assert.ok(error instanceof ReadFailure)
      assert.match(error.message, /scripted reverted/)
      assert.ok(error.kinds.has('reverted'))
      return true
    })
  })

  it('does not hide a contradiction behind a non-canonical block', async () => {
    const { answer } = asks([{ fails: 'non-canonical' }, { says: 'a' }, { says: 'lie', afterMs: 20 }], two)
    await assert.rejects(answer, (error) => error instanceof ReadFailure && error.kinds.size === 0)
  })

  it('fails when only one is left', async () => {
    await assert.rejects(asks([{ says: 'a' }, {}], two).answer, /not enough providers/)
    await assert.rejects(asks([{ says: 'a' }], two).answer, /not enough providers/)
  })
})
