import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { FaultRpc } from '../../../test/support/fault-rpc.ts'
import { useProviders } from '../../../test/support/providers.ts'
import { cell, wordOf } from '../../../test/support/rpc-anvil.ts'
import { until } from '../../../test/support/wait.ts'
import { isBusy } from './failover.ts'

describe('of two providers', () => {
  const { anvil, first, second, urls, sourceOver } = useProviders(2, [5])

  /** A read for which a provider takes ten minutes of the clock: from then on none is asked beside it. */
  async function slowly(provider: FaultRpc, clock: { ms: number }, read: () => Promise<unknown>): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    provider.set({ held: promise })
    const reading = read()
    clock.ms += 600_000
    resolve()
    assert.equal(await reading, wordOf(5))
    provider.set('none')
  }

  it('the second answers while a stalled first one does not', { timeout: 240_000 }, async () => {
    const { source } = sourceOver(urls(), { attemptTimeoutMs: 600_000, readTimeoutMs: 600_000 })
    const head = await source.head()
    for (let read = 0; read < 10; read++) await source.call(cell, '0x', head)
    first.set('hang')
    const { hedges } = source.stats()
    assert.equal(await source.call(cell, '0x', head), wordOf(5))
    assert.equal(source.stats().hedges, hedges + 1)
  })

  it('one that hangs again and again is left alone, and asked again when it is back', async () => {
    const clock = { ms: 0 }
    const { source } = sourceOver(urls(), {
      attemptTimeoutMs: 1_000,
      readTimeoutMs: 60_000,
      ticks: () => clock.ms,
    })
    const head = await source.head()
    await source.call(cell, '0x', head)
    first.set('hang')
    await Promise.all(Array.from({ length: 5 }, () => source.call(cell, '0x', head)))
    await until(() => source.stats().providers[0]?.breaker === 'open') // the five attempts at it end by their own deadline
    const asked = first.count('eth_call')
    await slowly(second, clock, () => source.call(cell, '0x', head))
    assert.equal(first.count('eth_call'), asked)

    first.set('none')
    await source.call(cell, '0x', head)
    assert.equal(first.count('eth_call'), asked)
    await source.head()
    await until(() => source.stats().providers[0]?.breaker === 'closed')
    await source.call(cell, '0x', head)
    assert.equal(first.count('eth_call'), asked + 3) // the probe, and the read with the number of its block
  })

  it('asks again after five seconds also when the clock was set back ten minutes', async () => {
    const clock = { ms: 1_000_000, ticks: 0 }
    const { source } = sourceOver(urls().slice(0, 1), { now: () => clock.ms, ticks: () => clock.ticks })
    const head = await source.head()
    first.set('status500')
    for (let fault = 0; fault < 5; fault++) await assert.rejects(source.call(cell, '0x', head), /could not be read/)
    first.set('none')
    clock.ms -= 600_000
    clock.ticks += 5_000
    assert.equal(await source.call(cell, '0x', head), wordOf(5))
  })

  it('a slow first one is given the time it takes, but a head that is behind by then is not taken', async () => {
    const clock = { ms: 0 }
    const { source } = sourceOver(urls(), { ticks: () => clock.ms })
    const head = await source.head()
    second.set('hang')
    await slowly(first, clock, () => source.call(cell, '0x', head))
    second.set('none')
    const { hedges } = source.stats()
    first.set({ delayMs: 120 })
    await source.call(cell, '0x', head)
    await source.head()
    assert.equal(source.stats().hedges, hedges)

    const stuck = await anvil.rpc('eth_getBlockByNumber', ['latest', false])
    await anvil.rpc('anvil_mine', ['0x32'])
    const slowHead = Promise.withResolvers<void>()
    first.set({
      held: slowHead.promise,
      rewrite: (method, _params, result) => (method === 'eth_getBlockByNumber' ? stuck : result),
    })
    clock.ms += 5000
    const resolving = source.head()
    await until(() => source.stats().providers[0]?.behind === true) // the second was asked beside it
    slowHead.resolve()
    assert.equal((await resolving).number, head.number + 50n)
    assert.equal(source.stats().hedges, hedges)
  })

  it('one that limits its rate is left alone for as long as it asks, which is no fault', async () => {
    const { source } = sourceOver(urls(), { attemptTimeoutMs: 20_000, readTimeoutMs: 60_000 })
    const head = await source.head()
    await source.call(cell, '0x', head)
    first.set({ name: 'status429', retryAfter: '30' })
    assert.equal(await source.call(cell, '0x', head), wordOf(5))
    assert.equal(first.struck(), 1)
    assert.equal(await source.call(cell, '0x', head), wordOf(5))
    assert.equal((await source.head()).hash, head.hash)
    assert.equal(first.struck(), 1)
    const { faults, limits, providers } = source.stats()
    assert.deepEqual([faults, limits, providers[0]?.breaker], [0, 1, 'closed'])
  })

  it('one that answers with nothing but limits shows as open', async () => {
    const { source } = sourceOver(urls().slice(0, 1), { attemptTimeoutMs: 20_000, readTimeoutMs: 60_000 })
    const head = await source.head()
    first.set({ name: 'status429' })
    await assert.rejects(source.call(cell, '0x', head), isBusy)
    await assert.rejects(source.call(cell, '0x', head), isBusy)
    assert.notEqual(source.stats().providers[0]?.breaker, 'closed')
    first.set('none')
    assert.equal(await source.call(cell, '0x', head), wordOf(5))
    assert.equal(source.stats().providers[0]?.breaker, 'closed')
  })

  it('one that is behind is dropped until it has caught up', async () => {
    const clock = { ms: 0 }
    const { source } = sourceOver(urls(), { ticks: () => clock.ms })
    const stuck = await anvil.rpc('eth_getBlockByNumber', ['latest', false])
    await anvil.rpc('anvil_mine', ['0x19'])
    first.set({ rewrite: (method, _params, result) => (method === 'eth_getBlockByNumber' ? stuck : result) })
    await source.head()
    await until(() => source.stats().providers[0]?.behind === true)
    const head = await source.head()
    assert.equal(head.number, BigInt((stuck as { number: string }).number) + 25n)
    const asked = first.count('eth_call')
    await source.call(cell, '0x', head)
    assert.equal(first.count('eth_call'), asked)

    first.set('none')
    clock.ms = 5000
    await source.head()
    await until(() => source.stats().providers[0]?.behind === false)
    await source.call(cell, '0x', head)
    assert.ok(first.count('eth_call') > asked)
  })
})
