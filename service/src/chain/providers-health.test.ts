import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { startFaultRpc } from '../../test/_fault-rpc.ts'
import type { FaultRpc } from '../../test/_fault-rpc.ts'
import { cell, sourceOver, startTestAnvil, wordOf } from './_rpc-anvil.ts'
import type { TestAnvil } from './_rpc-anvil.ts'

describe('of two providers', () => {
  let anvil: TestAnvil
  let first: FaultRpc
  let second: FaultRpc
  const urls = () => [first.url, second.url]
  before(async () => {
    anvil = await startTestAnvil()
    await anvil.store(5)
    ;[first, second] = await Promise.all([startFaultRpc({ target: anvil.url }), startFaultRpc({ target: anvil.url })])
  })
  after(async () => {
    await Promise.all([first.close(), second.close()])
    await anvil.close()
  })
  beforeEach(() => {
    first.set('none')
    second.set('none')
  })

  it('the second answers long before a stalled first one would', async () => {
    const { source } = sourceOver(urls(), { attemptTimeoutMs: 1500, readTimeoutMs: 3000 })
    const head = await source.head()
    for (let read = 0; read < 10; read++) await source.call(cell, '0x', head)
    first.set({ delayMs: 1_200 })
    const { hedges } = source.stats()
    const begun = performance.now()
    assert.equal(await source.call(cell, '0x', head), wordOf(5))
    assert.ok(performance.now() - begun < 1_000)
    assert.equal(source.stats().hedges, hedges + 1)
    await source.close()
  })

  it('one that hangs again and again is left alone, and asked again when it is back', async () => {
    const clock = { ms: 0 }
    const { source } = sourceOver(urls(), { attemptTimeoutMs: 100, ticks: () => clock.ms })
    const head = await source.head()
    await source.call(cell, '0x', head)
    first.set('hang')
    await Promise.all(Array.from({ length: 5 }, () => source.call(cell, '0x', head)))
    await delay(100) // the five attempts at the first one end by their own deadline
    assert.equal(source.stats().providers[0]?.breaker, 'open')
    const asked = first.count('eth_call')
    assert.equal(await source.call(cell, '0x', head), wordOf(5))
    assert.equal(first.count('eth_call'), asked)

    first.set('none')
    clock.ms = 5000
    await source.call(cell, '0x', head)
    assert.equal(first.count('eth_call'), asked)
    await source.head()
    await eventually(() => source.stats().providers[0]?.breaker === 'closed')
    await source.call(cell, '0x', head)
    assert.equal(first.count('eth_call'), asked + 1)
    await source.close()
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
    await source.close()
  })

  it('a slow first one is given the time it takes, but a head that is behind by then is not taken', async () => {
    const clock = { ms: 0 }
    const { source } = sourceOver(urls(), { attemptTimeoutMs: 1000, readTimeoutMs: 2000, ticks: () => clock.ms })
    const head = await source.head()
    await source.call(cell, '0x', head)
    first.set({ delayMs: 250 })
    for (let read = 0; read < 2; read++) await source.call(cell, '0x', head)
    await delay(300) // the attempts that were hedged end in their own time
    const { hedges } = source.stats()
    first.set({ delayMs: 120 })
    await source.call(cell, '0x', head)
    assert.equal(source.stats().hedges, hedges)

    const stuck = await anvil.rpc('eth_getBlockByNumber', 'latest', false)
    await anvil.rpc('anvil_mine', '0x19')
    first.set({
      delayMs: 120,
      rewrite: (method, _params, result) => (method === 'eth_getBlockByNumber' ? stuck : result),
    })
    clock.ms = 5000
    assert.equal((await source.head()).number, head.number + 25n)
    assert.equal(source.stats().hedges, hedges)
    await source.close()
  })

  it('one that is behind is dropped until it has caught up', async () => {
    const clock = { ms: 0 }
    const { source } = sourceOver(urls(), { ticks: () => clock.ms })
    const stuck = await anvil.rpc('eth_getBlockByNumber', 'latest', false)
    await anvil.rpc('anvil_mine', '0x19')
    first.set({ rewrite: (method, _params, result) => (method === 'eth_getBlockByNumber' ? stuck : result) })
    await source.head()
    await eventually(() => source.stats().providers[0]?.behind === true)
    const head = await source.head()
    assert.equal(head.number, BigInt((stuck as { number: string }).number) + 25n)
    const asked = first.count('eth_call')
    await source.call(cell, '0x', head)
    assert.equal(first.count('eth_call'), asked)

    first.set('none')
    clock.ms = 5000
    await source.head()
    await eventually(() => source.stats().providers[0]?.behind === false)
    await source.call(cell, '0x', head)
    assert.ok(first.count('eth_call') > asked)
    await source.close()
  })
})

/** Waits for what happens beside the read that was awaited. */
async function eventually(holds: () => boolean): Promise<void> {
  for (let turn = 0; !holds(); turn++) {
    assert.ok(turn < 200, 'it did not happen within a second')
    await delay(5)
  }
}
