/** The offline proof bundle. */
import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import {
  type BundlePins,
  checkProofBundle,
  type Hex,
  recheckProofBundle,
  type ProofBundle,
  recordSlot,
  untrustedOf,
} from '../src/index.ts'
import { operator, startChain } from './_chain.ts'
import { changedResult } from './_liar.ts'
import { failed, found } from './_report.ts'

const chain = await startChain()
after(() => chain[Symbol.asyncDispose]())

const { contract, codeHash } = chain
await chain.store(7n, { owner: operator, timestamp: 5n, state: 5, flags: 1, reserved: 4 })

async function bundleOf(tokenId: bigint, slot?: Hex): Promise<ProofBundle> {
  const { verdict, ...rest } = await chain.bundle(tokenId, slot)
  const made = { ...rest, verdict: { ...verdict, untrusted: untrustedOf({ name: 'Jacket' }) } }
  return JSON.parse(JSON.stringify(made)) as ProofBundle
}

const bundle = await bundleOf(7n)
const { verdict, proof } = bundle

/** Checks with the pins that a careful caller has. */
const check = (of: unknown, pins: BundlePins = {}) =>
  checkProofBundle(of, { contract, blockHash: verdict.chainRef.block_hash, ...pins })

describe('checkProofBundle', () => {
  it('proves a verdict without asking anybody', () => {
    const report = check(bundle, { codeHash, contract })
    assert.deepEqual(failed(report), [])
    assert.equal(found(report, 'contract'), contract)
    const blockHash = `0x${verdict.chainRef.block_hash.slice(2).toUpperCase()}` as const
    assert.deepEqual(failed(check(bundle, { codeHash, contract, blockHash })), [])
  })

  it('is undecided where the caller pins no contract or no block: anyone can make up both', () => {
    const report = checkProofBundle(bundle)
    assert.deepEqual([report.outcome, failed(report)], ['undecided', ['contract', 'block.canonical']])
    assert.equal(report.checks.find(({ field }) => field === 'proof.code')?.claimed, 'not pinned by the caller')
    assert.deepEqual(failed(checkProofBundle(bundle, { contract })), ['block.canonical'])
    assert.deepEqual(failed(check(bundle, { blockHash: codeHash })), ['block.canonical'])
  })

  it('is completed by an endpoint that knows the block', async () => {
    const { rpcUrl } = chain
    assert.equal((await recheckProofBundle(bundle, { rpcUrl, deployment: 'local' })).outcome, 'agrees')
    assert.equal((await recheckProofBundle(bundle, { rpcUrl })).outcome, 'undecided')
    const changed = { ...bundle, verdict: { ...verdict, state: 'CLAIMED' } }
    assert.equal((await recheckProofBundle(changed, { rpcUrl, contract })).outcome, 'differs')
    await using other = await startChain({ nonce: 1 })
    for (const outcome of ['undecided', 'differs']) {
      const elsewhere = await recheckProofBundle(bundle, { rpcUrl: other.rpcUrl, contract })
      assert.deepEqual([elsewhere.outcome, failed(elsewhere)], [outcome, ['block.canonical']])
      await other.rpc('anvil_mine', ['0x20']) // as many blocks, and more
    }
    await assert.rejects(recheckProofBundle(bundle, { rpcUrl: 'http://127.0.0.1:1', contract }), {
      code: 'RPC_UNAVAILABLE',
    })
  })

  it('is not completed by an endpoint of another chain, which may share blocks with this one', async () => {
    const fetch = changedResult('eth_chainId', () => '0x2105')
    const report = await recheckProofBundle(bundle, { rpcUrl: chain.rpcUrl, contract, fetch })
    assert.deepEqual([report.outcome, failed(report)], ['differs', ['rpc.chain_id']])
  })

  it('holds contract, code and slot against what the caller pins, not against the bundle', () => {
    assert.deepEqual(failed(check(bundle, { contract: operator })), ['contract'])
    assert.deepEqual(failed(check(bundle, { tokenId: '8' })), ['token asked for'])
    assert.deepEqual(failed(check(bundle, { tokenId: 7n })), [])
    assert.deepEqual(failed(check(bundle, { codeHash: verdict.chainRef.block_hash })), [
      'proof.code',
      'bundle.codeHash',
    ])
    assert.deepEqual(failed(check({ ...bundle, proof: { ...proof, codeHash: verdict.chainRef.block_hash } })), [
      'bundle.codeHash',
    ])
  })

  it('does not let a bundle choose the mapping: another one may hold words that look like records', async () => {
    const elsewhere = await bundleOf(7n, recordSlot(7n, 8n))
    const chosen = { ...elsewhere, proof: { ...elsewhere.proof, recordsSlot: 8 } }
    assert.deepEqual(failed(check(chosen)).slice(0, 1), ['bundle.recordsSlot'])
    assert.deepEqual(failed(check({ ...bundle, proof: { ...proof, recordsSlot: '3' } })), ['bundle.recordsSlot'])
  })

  it('reports a changed verdict, header, node or value', () => {
    const [entry] = proof.storageProof
    assert.ok(entry)
    const changes: [field: string, of: unknown][] = [
      ['state', { ...bundle, verdict: { ...verdict, state: 'CLAIMED' } }],
      [
        'chainRef.block_number',
        { ...bundle, verdict: { ...verdict, chainRef: { ...verdict.chainRef, block_number: 1 } } },
      ],
      ['chainRef.chain_id', { ...bundle, verdict: { ...verdict, chainRef: { ...verdict.chainRef, chain_id: 8453 } } }],
      ['keys', { ...bundle, verdict: { ...verdict, extra: 1 } }],
      ['untrusted', { ...bundle, verdict: { ...verdict, untrusted: { name: 'x' } } }],
      ['proof.header', { ...bundle, proof: { ...proof, header: { ...proof.header, gasUsed: '0x1' } } }],
      ['proof.header', { ...bundle, proof: { ...proof, header: null } }],
      ['proof.account', { ...bundle, proof: { ...proof, accountProof: proof.accountProof.toReversed() } }],
      ['proof.account', { ...bundle, proof: { ...proof, accountProof: 'nodes' } }],
      ['proof.storage', { ...bundle, proof: { ...proof, storageProof: [{ ...entry, value: '0x1' }] } }],
      ['proof.storage', { ...bundle, proof: { ...proof, storageProof: [entry, entry] } }],
      ['proof.account', { ...bundle, proof: { ...proof, storageProof: [1] } }],
      ['bundle.version', { ...bundle, version: 1 }],
      ['bundle', { ...bundle, more: 1 }],
      ['bundle.proof', { ...bundle, proof: { ...proof, more: 1 } }],
      ['bundle.proof', { ...bundle, proof: null }],
      ['verdict', { ...bundle, verdict: null }],
    ]
    for (const [field, changed] of changes) assert.ok(failed(check(changed)).includes(field), field)
  })

  it('reports anything that is no bundle', () => {
    for (const thing of [undefined, null, 1, 'x', [], {}, bundle.verdict, proof])
      assert.deepEqual(failed(check(thing)), ['bundle'])
  })
})
