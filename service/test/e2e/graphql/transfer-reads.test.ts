/** The reads that transfers are checked by (spec §3, §4.9), through a provider that misbehaves. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { Hex } from '@touchstone/verdict'
import { createTransferReads } from '../../../src/chain/transactions/transfer-reads.ts'
import { digestOf } from '../../../src/chain/transactions/typed-data.ts'
import { startFaultRpc, type FaultName, type FaultRpc } from '../../support/fault-rpc.ts'
import { alice, bob, startWriterWorld, type WriterWorld } from '../../support/index/writer-world.ts'

describe('the reads of transfers', () => {
  let world: WriterWorld
  let rpc: FaultRpc
  let reads: ReturnType<typeof createTransferReads>
  before(async () => {
    world = await startWriterWorld()
    rpc = await startFaultRpc({ target: world.url })
    reads = createTransferReads({ rpcUrl: rpc.url, contract: world.contract, chainId: 84532 })
  })
  after(async () => {
    await rpc.close()
    await world.close()
  })

  const consent = { tokenId: 1n, claimant: alice.address, nonce: 0, deadline: 1n }
  async function isSigned(): Promise<boolean> {
    const digest = digestOf(reads.domain, { type: 'ClaimConsent', message: consent })
    const { block } = await reads.position(1n)
    const signature = await alice.sign({ hash: digest })
    const by = (signer: Hex) => reads.isSignedBy({ signer, digest, signature }, block)
    assert.equal(await by(bob.address), false)
    return by(alice.address)
  }

  it('are all at one block, and an asset that is not there has state 0', async () => {
    rpc.set('none')
    const { record, offer, block } = await reads.position(7n)
    assert.deepEqual([record.state, offer], [0, { to: null, expiry: 0n, nonce: 0 }])
    assert.match(block.hash, /^0x[0-9a-f]{64}$/)
    assert.equal(await isSigned(), true)
  })

  it('are by number where a provider supports no hash objects', async () => {
    rpc.set('no-hash-objects')
    assert.equal((await reads.position(7n)).record.state, 0)
    assert.equal(await isSigned(), true)
  })

  const faults: readonly FaultName[] = [
    'null-result',
    'rpc-error',
    'rate-limit',
    'garbage',
    'die',
    'truncated',
    'empty-result',
  ]
  for (const name of faults) {
    it(`are CHAIN_UNAVAILABLE after «${name}», never an answer`, async () => {
      rpc.set('none')
      const { block } = await reads.position(7n)
      const digest: Hex = `0x${'1'.repeat(64)}`
      rpc.set(name)
      await assert.rejects(reads.position(7n), { code: 'CHAIN_UNAVAILABLE' })
      if (name === 'empty-result') return // that is a wallet which does not answer
      await assert.rejects(reads.isSignedBy({ signer: alice.address, digest, signature: '0x12' }, block), {
        code: 'CHAIN_UNAVAILABLE',
      })
    })
  }

  it('ask again while a provider is behind a block that is known to exist', async () => {
    rpc.set('none')
    await world.mine()
    const { block } = await reads.position(7n)
    const behind = { number: `0x${(block.number - 1n).toString(16)}` }
    reads.reached(block.number)
    const rewrite = (method: string, _params: readonly unknown[], result: unknown) =>
      method === 'eth_getBlockByNumber' ? { ...(result as object), ...behind } : result
    rpc.set({ rewrite, times: 2 })
    assert.equal((await reads.position(7n)).block.number, block.number)
  })
})
