/** The reads of the chain for transfers by signature (spec §4.9), from a provider that misbehaves. */
import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import type { Hex } from '@touchstone/verdict'
import { createRpcClient } from '../../../src/chain/rpc/client.ts'
import { createTransferReads } from '../../../src/chain/transactions/transfer-reads.ts'
import { registryDigest } from '../../../src/chain/transactions/typed-data.ts'
import { startFaultRpc, type FaultName } from '../../support/fault-rpc.ts'
import { alice, bob, startWriterWorld } from '../../support/index/writer-world.ts'
import { useOpened } from '../../support/opened.ts'

describe('the reads of transfers', () => {
  let reads: ReturnType<typeof createTransferReads>
  const world = useOpened(startWriterWorld)
  const rpc = useOpened(() => startFaultRpc({ target: world.url }))
  before(() => {
    reads = createTransferReads({ rpc: createRpcClient({ url: rpc.url }), contract: world.contract, chainId: 84532 })
  })

  const none = 2n ** 200n
  const signable = { type: 'InvalidateNonce', message: { tokenId: 1n, owner: alice.address, nonce: 0 } } as const
  async function isSigned(): Promise<boolean> {
    const position = await reads.position(1n)
    const signature = await alice.sign({ hash: registryDigest(reads.domain, signable) })
    const by = (signer: Hex) => reads.isSignedBy({ signer, signable, signature }, position)
    assert.equal(await by(bob.address), false)
    return by(alice.address)
  }

  it('are all at one block, and an asset that is not there has state 0', async () => {
    rpc.set('none')
    const { record, offer, block } = await reads.position(none)
    assert.deepEqual([record.state, offer], [0, { to: null, expiry: 0n, nonce: 0 }])
    assert.match(block.hash, /^0x[0-9a-f]{64}$/)
    assert.equal(await isSigned(), true)
  })

  it('are by number where a provider supports no hash objects', async () => {
    rpc.set('no-hash-objects')
    assert.equal((await reads.position(none)).record.state, 0)
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
      const position = await reads.position(none)
      rpc.set(name)
      await assert.rejects(reads.position(none), { code: 'CHAIN_UNAVAILABLE' })
      if (name === 'empty-result') return // that is a wallet which does not answer
      await assert.rejects(reads.isSignedBy({ signer: alice.address, signable, signature: '0x12' }, position), {
        code: 'CHAIN_UNAVAILABLE',
      })
    })
  }

  it('ask again while a provider is behind a block that is known to exist', async () => {
    rpc.set('none')
    await world.mine()
    const { block } = await reads.position(none)
    const behind = { number: `0x${(block.number - 1n).toString(16)}` }
    reads.reached(block.number)
    const rewrite = (method: string, _params: readonly unknown[], result: unknown) =>
      method === 'eth_getBlockByNumber' ? { ...(result as object), ...behind } : result
    rpc.set({ rewrite, times: 2 })
    assert.equal((await reads.position(none)).block.number, block.number)
  })
})
