/** A true verdict of long ago says nothing about now: it is undecided until the caller allows its age. */
import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { prove, recheck, recheckProofBundle, type RpcHeader } from '../src/index.ts'
import { claimed, startChain } from './_chain.ts'
import { changedResult } from './_liar.ts'
import { failed, found } from './_report.ts'

const chain = await startChain()
after(() => chain[Symbol.asyncDispose]())

const { rpcUrl, contract, rpc } = chain
await chain.store(7n, claimed)
const bundle = await chain.bundle(7n)
const { verdict } = bundle
// The item is reported stolen, and two hours pass.
await chain.store(7n, { ...claimed, flags: 2 })
await rpc('evm_increaseTime', [7200])
await rpc('anvil_mine', ['0x1'])

describe('a verdict of a block two hours before the latest one', () => {
  for (const [name, check] of Object.entries({ recheck, prove })) {
    it(`is undecided for ${name}, which agrees where the caller allows the age`, async () => {
      const report = await check(verdict, { rpcUrl, contract })
      assert.deepEqual([report.ok, report.outcome, failed(report)], [false, 'undecided', ['block.age']])
      assert.match(found(report, 'block.age') ?? '', /^2 h before the latest block: the token may have changed since/)
      for (const maxAgeSeconds of [0, 3600, -1, Number.NaN])
        assert.equal((await check(verdict, { rpcUrl, contract, maxAgeSeconds })).outcome, 'undecided')
      for (const maxAgeSeconds of [7300, Infinity])
        assert.deepEqual(failed(await check(verdict, { rpcUrl, contract, maxAgeSeconds })), [])
      const wrong = await check({ ...verdict, flagged: true }, { rpcUrl, contract })
      assert.equal(wrong.outcome, 'differs')
    })
  }

  it('agrees in a bundle, which is kept, and shows its time; a limit holds there too', async () => {
    const report = await recheckProofBundle(bundle, { rpcUrl, contract })
    assert.deepEqual(failed(report), [])
    const time = new Date(Number(bundle.proof.header['timestamp']) * 1000).toISOString().replace('.000Z', 'Z')
    const row = report.checks.find(({ field }) => field === 'block.age')
    assert.deepEqual([row?.claimed, row?.found], [time, '2 h before the latest block'])
    const limited = await recheckProofBundle(bundle, { rpcUrl, contract, maxAgeSeconds: 3600 })
    assert.deepEqual(failed(limited), ['block.age'])
  })

  it('cannot be dated by an endpoint whose times are none', async () => {
    for (const timestamp of [undefined, 1, '0x', `0x${'f'.repeat(13)}`]) {
      const fetch = changedResult('eth_getBlockByNumber', (block) => ({ ...(block as RpcHeader), timestamp }))
      await assert.rejects(recheck(verdict, { rpcUrl, contract, fetch }), { code: 'RPC_UNAVAILABLE' })
    }
    const fetch = changedResult('eth_getBlockByNumber', (block) =>
      (block as RpcHeader)['hash'] === verdict.chainRef.block_hash ? block : null,
    )
    await assert.rejects(recheck(verdict, { rpcUrl, contract, fetch }), { code: 'RPC_UNAVAILABLE' })
  })
})
