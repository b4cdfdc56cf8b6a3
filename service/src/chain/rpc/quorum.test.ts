import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { headerHash, type RpcHeader } from '@touchstone/verdict'
import { isChainUnavailable } from '../../lib/errors.ts'
import { type Fault, forgedCalls } from '../../../test/support/fault-rpc.ts'
import { useProviders } from '../../../test/support/providers.ts'
import { cell, reverting, wordOf } from '../../../test/support/rpc-anvil.ts'
import { until } from '../../../test/support/wait.ts'
import { nonCanonical } from './answer.ts'

const { anvil, first, second, third, urls, sourceOver } = useProviders(3, [5])

/** A head that hashes to its hash and is not the chain's. */
const forgedHead: Fault['rewrite'] = (method, _params, result) => {
  if (method !== 'eth_getBlockByNumber') return result
  const header = { ...(result as RpcHeader), stateRoot: wordOf(666) }
  return { ...header, hash: headerHash(header) }
}

/** A head that is so far above the chain's, of a state that is not the chain's. */
const aheadBy =
  (blocks: bigint): NonNullable<Fault['rewrite']> =>
  (method, params, result) => {
    if (method !== 'eth_getBlockByNumber' || params[0] !== 'latest') return result
    const real = result as RpcHeader & { number: string }
    const header = { ...real, number: `0x${(BigInt(real.number) + blocks).toString(16)}`, stateRoot: wordOf(666) }
    return { ...header, hash: headerHash(header as RpcHeader) }
  }

describe('trust in a quorum', () => {
  it('answers what two providers agree on', async () => {
    const { source } = sourceOver(urls().slice(0, 2), { trust: 'quorum' })
    const head = await source.head()
    assert.equal(await source.call(cell, '0x', head), wordOf(5))
    assert.equal((await source.logs(head)) === nonCanonical, false)
    assert.equal((await source.proof([wordOf(0)], head)) === nonCanonical, false)
    assert.deepEqual(await source.block(head.hash), head)
    assert.deepEqual(source.stats().disagreements, 0)
  })

  it('takes the lowest of their heads', async () => {
    const low = await anvil.rpc('eth_getBlockByNumber', ['latest', false])
    await anvil.store(5)
    second.set({ rewrite: (_method, params, result) => (params[0] === 'latest' ? low : result) })
    const { source } = sourceOver(urls().slice(0, 2), { trust: 'quorum' }) // no third one when one is slow
    assert.equal((await source.head()).hash, (low as { hash: string }).hash)
  })

  it('leaves out one that is far behind', async () => {
    const stuck = await anvil.rpc('eth_getBlockByNumber', ['latest', false])
    await anvil.rpc('anvil_mine', ['0x19'])
    second.set({ rewrite: (_method, params, result) => (params[0] === 'latest' ? stuck : result) })
    third.set({ methods: ['eth_getBlockByNumber'], delayMs: 300 }) // the stuck one makes no quorum with the first meanwhile
    const patient = { attemptTimeoutMs: 600_000, readTimeoutMs: 600_000 }
    const { source } = sourceOver(urls(), { trust: 'quorum', ticks: () => 0, ...patient })
    assert.equal((await source.head()).number, BigInt((stuck as { number: string }).number) + 25n)
    third.set('die')
    await assert.rejects(source.head(), isChainUnavailable)
  })

  it('does not need a third one that is down or hangs', { timeout: 240_000 }, async () => {
    for (const fault of ['die', 'hang', 'status500'] as const) {
      first.set(fault)
      const { source } = sourceOver(urls(), { trust: 'quorum', attemptTimeoutMs: 600_000, readTimeoutMs: 600_000 })
      assert.equal(await source.call(cell, '0x', await source.head()), wordOf(5))
    }
  })

  it('is unavailable when one is left', async () => {
    for (const fault of ['die', 'hang', 'not-canonical'] as const) {
      second.set(fault)
      const { source } = sourceOver(urls().slice(0, 2), { trust: 'quorum', readTimeoutMs: 1_000 })
      await assert.rejects(source.head(), isChainUnavailable)
    }
  })

  const forgeries: Record<string, Fault> = {
    'another state': forgedCalls(() => wordOf(1)),
    'one bit more': forgedCalls(() => wordOf(5).replace(/5$/, '7')),
    'a longer result': forgedCalls((result) => `${String(result)}${'00'.repeat(32)}`),
    'no code': { name: 'empty-result' },
  }
  for (const [what, fault] of Object.entries(forgeries)) {
    it(`rejects a forged answer (${what}) without a majority vote`, async () => {
      const { source, lines } = sourceOver(urls(), { trust: 'quorum' })
      const head = await source.head()
      assert.equal(await source.call(cell, '0x', head), wordOf(5))
      second.set(fault)
      await assert.rejects(source.call(cell, '0x', head), isChainUnavailable)
      assert.equal(source.stats().disagreements, 1)
      assert.match(lines.join(), /providers disagree/)
    })
  }

  it('rejects a hidden or changed log, another proven word or code, and a head of another branch', async () => {
    const { source } = sourceOver(urls().slice(0, 2), { trust: 'quorum' })
    await anvil.store(5)
    const head = await source.head()
    await Promise.all([source.logs(head), source.proof([wordOf(0)], head)])
    // The header of the block contradicts it, so that it is no second opinion.
    first.set('hide-logs')
    await assert.rejects(source.logs(head), isChainUnavailable)
    assert.equal(source.stats().disagreements, 0)
    const changes = [{ topics: [wordOf(7)] }, { data: wordOf(7) }, { transactionHash: wordOf(7) }]
    for (const change of changes) {
      const changeLogs = (logs: unknown) => (logs as object[]).map((log) => ({ ...log, ...change }))
      first.set({ methods: ['eth_getLogs'], rewrite: (_method, _params, logs) => changeLogs(logs) })
      await assert.rejects(source.logs(head), isChainUnavailable)
    }
    const changeWord = (proof: unknown) => JSON.parse(JSON.stringify(proof).replace('"value":"0x5"', '"value":"0x7"'))
    const changeCode = (proof: unknown) => ({ ...(proof as object), codeHash: wordOf(7) })
    for (const change of [changeWord, changeCode]) {
      first.set({ methods: ['eth_getProof'], rewrite: (_method, _params, proof) => change(proof) })
      await assert.rejects(source.proof([wordOf(0)], head), isChainUnavailable)
    }
    first.set({ rewrite: forgedHead })
    await assert.rejects(source.head(), isChainUnavailable)
    assert.equal(source.stats().disagreements, 6)
  })

  it('is unavailable for a call that reverts at both, without any disagreement', async () => {
    const { source } = sourceOver(urls(), { trust: 'quorum' })
    const head = await source.head()
    await assert.rejects(source.call(reverting, '0x', head), isChainUnavailable)
    assert.deepEqual([source.stats().disagreements, source.stats().faults], [0, 0])
  })

  it('reports a non-canonical block after a reorg', async () => {
    const { source } = sourceOver(urls(), { trust: 'quorum' })
    await anvil.store(8)
    const head = await source.head()
    await anvil.rpc('anvil_reorg', [1, []])
    assert.equal(await source.call(cell, '0x', head), nonCanonical)
  })

  it('needs as many providers as must agree, and different ones', () => {
    const [one = ''] = urls()
    assert.throws(() => sourceOver([one], { trust: 'quorum' }), /1 RPC URLs make none/)
    assert.throws(() => sourceOver(urls(), { trust: 'quorum', quorum: 1 }), /make none/)
    for (const spelling of [`${one}/`, `${one}/another-key`, one.replace('127.0.0.1', 'localhost')])
      assert.throws(() => sourceOver([one, spelling], { trust: 'quorum' }), /name the same provider/)
    assert.throws(() => sourceOver([], {}), /No RPC URL/)
  })
})

describe('one provider is enough', () => {
  it('to deceive trust in any provider', async () => {
    const { source } = sourceOver(urls())
    const head = await source.head()
    first.set(forgedCalls(() => wordOf(1)))
    assert.equal(await source.call(cell, '0x', head), wordOf(1))
  })

  it('to answer when the caller rejects the other answers', async () => {
    const { source } = sourceOver(urls().slice(0, 2), { trust: 'proof' })
    const head = await source.head()
    // The second one is asked, too, when the first is slow, and must not be faster than its wrong answer.
    second.set({ methods: ['eth_getProof'], held: until(() => source.stats().faults === 1) })
    first.set({
      methods: ['eth_getProof'],
      rewrite: (_method, _params, proof) => ({ ...(proof as object), codeHash: wordOf(1) }),
    })
    const check = (proof: { codeHash?: string }) => (proof.codeHash === wordOf(1) ? 'other code hash' : null)
    const proof = await source.proof([wordOf(0)], head, { check })
    assert.ok(proof !== nonCanonical && proof.codeHash !== wordOf(1))
    assert.equal(source.stats().faults, 1)
    await assert.rejects(source.call(cell, '0x', head, { check: () => 'never right' }), isChainUnavailable)
    assert.equal(source.stats().faults, 1)
  })
})

describe('trust in proofs', () => {
  const two = (options = {}) => sourceOver(urls().slice(0, 2), { trust: 'proof', readTimeoutMs: 5_000, ...options })

  it('takes no block from one provider alone, which could prove any state under it', async () => {
    const { source } = two()
    first.set({ rewrite: forgedHead })
    await assert.rejects(source.head(), isChainUnavailable)
    assert.equal(source.stats().disagreements, 1)
    first.set({ rewrite: aheadBy(1_000n) })
    await assert.rejects(source.head(), isChainUnavailable)
    first.set('none')
    const head = await source.head()
    first.set({ rewrite: forgedHead })
    await assert.rejects(source.blocksAt([head.number]), isChainUnavailable)
  })

  it('takes neither calls nor logs from one provider alone', async () => {
    const { source } = two()
    const head = await source.head()
    first.set(forgedCalls(() => wordOf(1)))
    await assert.rejects(source.call(cell, '0x', head), isChainUnavailable)
    await anvil.store(5)
    const changed = await source.head()
    first.set('hide-logs')
    await assert.rejects(source.logs(changed), isChainUnavailable)
    await assert.rejects(source.logsBetween(changed.number, changed.number), isChainUnavailable)
  })

  it('takes a proof that the caller has checked from one', async () => {
    const { source } = two()
    const head = await source.head()
    second.set('die')
    assert.notEqual(await source.proof([wordOf(0)], head, { check: () => null }), nonCanonical)
    await assert.rejects(source.proof([wordOf(0)], head), isChainUnavailable)
    await assert.rejects(source.head(), isChainUnavailable)
  })

  it('takes everything else from the only provider that there is', async () => {
    const { source } = sourceOver(urls().slice(0, 1), { trust: 'proof' })
    assert.equal(await source.call(cell, '0x', await source.head()), wordOf(5))
  })

  it('does not count one provider twice', () => {
    const [one = '', other = ''] = urls()
    assert.throws(() => sourceOver([one, `${one}/another-key`, other], { trust: 'proof' }), /name the same provider/)
  })
})
