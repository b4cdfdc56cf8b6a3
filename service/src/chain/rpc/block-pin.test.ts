import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ServiceError } from '../../lib/errors.ts'
import { type FaultName, hiddenLogs, withoutFilter } from '../../../test/support/fault-rpc.ts'
import { useProviders } from '../../../test/support/providers.ts'
import { cell, wordOf } from '../../../test/support/rpc-anvil.ts'
import { nonCanonical } from './answer.ts'

/** A pinned read must mean the same, however a provider treats block hash objects. */
const forms: readonly FaultName[] = ['none', 'no-hash-objects', 'ignores-hash-objects']

describe('a pinned read', () => {
  const { anvil, first: proxy, urls, sourceOver } = useProviders(1)

  for (const form of forms) {
    describe(`from a provider with ${form}`, () => {
      it('answers from its block although the chain went on', async () => {
        const { source } = sourceOver(urls())
        proxy.set(form)
        await anvil.store(1)
        const then = await source.head()
        await anvil.store(2)
        const now = await source.head()
        assert.equal(await source.call(cell, '0x', then), wordOf(1))
        assert.equal(await source.call(cell, '0x', now), wordOf(2))
        const proof = await source.proof([wordOf(0)], then)
        assert.ok(proof !== nonCanonical && BigInt(proof.storageProof[0]?.value ?? 0) === 1n)
        const logs = await source.logs(then)
        assert.ok(logs !== nonCanonical && logs[0]?.topics[0] === wordOf(1))
      })

      it('reports a non-canonical block after a reorg', async () => {
        const { source } = sourceOver(urls())
        proxy.set(form)
        await anvil.store(3)
        const reorged = await source.head()
        assert.equal(await source.call(cell, '0x', reorged), wordOf(3))
        await anvil.rpc('anvil_reorg', [1, []])
        assert.equal(await source.call(cell, '0x', reorged), nonCanonical)
        assert.equal(await source.calls(cell, ['0x', '0x'], reorged), nonCanonical)
        assert.equal(await source.proof([], reorged), nonCanonical)
        assert.equal(await source.logs(reorged), nonCanonical)
        assert.equal(await source.block(reorged.hash), nonCanonical)
        assert.notEqual(await source.call(cell, '0x', await source.head()), wordOf(3))
        assert.equal(source.stats().faults, 0)
      })
    })
  }

  it('by number is non-canonical if the number gets another block while it is read', async () => {
    const { source } = sourceOver(urls())
    proxy.set('no-hash-objects')
    await anvil.store(4)
    const head = await source.head()
    assert.equal(await source.call(cell, '0x', head), wordOf(4))
    let looks = 0
    proxy.set({
      rewrite: (method, _params, result) =>
        method === 'eth_getBlockByNumber' && looks++ > 0 ? { ...(result as object), hash: wordOf(9) } : result,
    })
    assert.equal(await source.call(cell, '0x', head), nonCanonical)
    assert.equal(looks, 2)
  })

  it('finds out once per provider how to pin', async () => {
    const { source } = sourceOver(urls())
    const head = await source.head()
    const before = proxy.count('eth_call')
    await Promise.all(Array.from({ length: 5 }, () => source.call(cell, '0x', head)))
    await source.call(cell, '0x', head)
    assert.equal(proxy.count('eth_call') - before, 2 + 2 * 6)
  })

  it('is non-canonical once another server ignores its block, and is by number from then on', async () => {
    const { source, lines } = sourceOver(urls())
    await anvil.store(10)
    const then = await source.head()
    assert.equal(await source.call(cell, '0x', then), wordOf(10))
    await anvil.store(11)
    proxy.set('ignores-hash-objects')
    assert.equal(await source.call(cell, '0x', then), nonCanonical)
    assert.equal(await source.call(cell, '0x', then), wordOf(10))
    assert.deepEqual(await source.calls(cell, ['0x', '0x'], then), [wordOf(10), wordOf(10)])
    assert.equal(source.lostPins(), 1)
    assert.ok(lines.some((line) => line.includes('ignores block hashes')))
    proxy.set('none')
    assert.deepEqual([await source.call(cell, '0x', then), source.lostPins()], [wordOf(10), 1])
  })

  it('is answered by another provider where the first one ignores its block', async () => {
    const { source } = sourceOver([...urls(), anvil.url])
    await anvil.store(12)
    const then = await source.head()
    assert.equal(await source.call(cell, '0x', then), wordOf(12))
    await anvil.store(13)
    proxy.set('ignores-hash-objects')
    assert.equal(await source.call(cell, '0x', then), wordOf(12))
  })

  it('is probed again beside the chain id, without a round trip more', async () => {
    const clock = { ms: 0 }
    const { source } = sourceOver(urls(), { ticks: () => clock.ms })
    await anvil.store(14)
    const then = await source.head()
    const proveSlot = async () => {
      const proof = await source.proof([wordOf(0)], then)
      return proof === nonCanonical ? proof : BigInt(proof.storageProof[0]?.value ?? 0)
    }
    assert.equal(await proveSlot(), 14n)
    await anvil.store(15)
    proxy.set({ name: 'ignores-hash-objects', methods: ['eth_getProof'] })
    clock.ms += 9_999
    assert.deepEqual([await proveSlot(), source.lostPins()], [15n, 0])
    clock.ms += 1
    await source.finalized()
    assert.equal(source.lostPins(), 1)
    assert.equal(await proveSlot(), 14n)
  })

  it('is probed again once a provider rejects the hashes that it took', async () => {
    const { source } = sourceOver(urls())
    await anvil.store(18)
    const then = await source.head()
    assert.equal(await source.call(cell, '0x', then), wordOf(18))
    proxy.set('no-hash-objects')
    await assert.rejects(source.call(cell, '0x', then), ServiceError)
    assert.deepEqual([await source.call(cell, '0x', then), source.lostPins()], [wordOf(18), 1])
  })

  it('is probed again when the chain is doubted, before anything else is asked', async () => {
    const { source } = sourceOver(urls())
    await anvil.store(16)
    const then = await source.head()
    assert.equal(await source.call(cell, '0x', then), wordOf(16))
    await anvil.store(17)
    proxy.set('ignores-hash-objects')
    source.doubtChain()
    assert.deepEqual([await source.call(cell, '0x', then), source.lostPins()], [wordOf(16), 1])
  })

  it('keeps its form where the probe is not answered', async () => {
    const { source } = sourceOver(urls())
    const head = await source.head()
    const word = await source.call(cell, '0x', head)
    const isProbe = (_method: string, params: readonly unknown[]) =>
      /blockHash/.test(JSON.stringify(params)) && !JSON.stringify(params).includes(head.hash)
    proxy.set({ name: 'rate-limit', methods: ['eth_call'], when: isProbe })
    source.doubtChain()
    assert.deepEqual([await source.call(cell, '0x', head), source.lostPins(), proxy.struck() > 0], [word, 0, true])
  })

  it('does not take silence for an answer about hash objects', async () => {
    const { source } = sourceOver(urls())
    const head = await source.head()
    const isUnknownBlock = (_method: string, params: readonly unknown[]) => !JSON.stringify(params).includes(head.hash)
    for (const when of [() => true, isUnknownBlock]) {
      proxy.set({ name: 'rate-limit', methods: ['eth_call'], when })
      await assert.rejects(source.call(cell, '0x', head), ServiceError)
    }
    proxy.set('ignores-hash-objects')
    await anvil.store(6)
    assert.notEqual(await source.call(cell, '0x', head), wordOf(6))
  })

  it('does not take an error of another kind for the rejection of an unknown block', async () => {
    const { source } = sourceOver(urls())
    await anvil.store(8)
    const head = await source.head()
    const isUnknownBlock = (_method: string, params: readonly unknown[]) =>
      /blockHash/.test(JSON.stringify(params)) && !JSON.stringify(params).includes(head.hash)
    proxy.set({ name: 'rpc-error', methods: ['eth_call'], when: isUnknownBlock })
    assert.equal(await source.call(cell, '0x', head), wordOf(8))
    proxy.set('ignores-hash-objects')
    await anvil.store(9)
    assert.equal(await source.call(cell, '0x', head), wordOf(8))
  })

  it('of logs is non-canonical at a provider that returns no logs for unknown blocks', async () => {
    const { source } = sourceOver(urls())
    await anvil.store(7)
    proxy.set(hiddenLogs)
    const head = await source.head()
    assert.deepEqual(await source.logs(head), [])
    await anvil.rpc('anvil_reorg', [1, []])
    assert.equal(await source.logs(head), nonCanonical)
  })

  it('of logs is non-canonical at a server that came later and returns no logs for unknown blocks', async () => {
    const { source } = sourceOver(urls())
    await anvil.store(18)
    await anvil.mine()
    proxy.set({ rewrite: (method, _params, result) => withoutFilter(method, result) })
    const head = await source.head()
    assert.deepEqual(await source.logs(head), [])
    proxy.set(hiddenLogs)
    await anvil.rpc('anvil_reorg', [1, []])
    source.doubtChain()
    assert.deepEqual([await source.logs(head), source.lostPins()], [nonCanonical, 1])
  })
})
