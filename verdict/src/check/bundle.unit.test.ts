/** The report on a recorded proof bundle, offline and held against an endpoint. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { blockHash, codeHash, contract, latest, recorded, recordedChain } from '../../test/_recorded.ts'
import { failed } from '../../test/_report.ts'
import { mappingSlot, recordSlot } from '../proof/storage.ts'
import { type BundlePins, checkProofBundle, recheckProofBundle } from './bundle.ts'
import type { Report } from './report.ts'

const { header, verdict } = recorded
const { accountProof, storageProof } = recorded.proof
const proof = { header, accountProof, storageProof: storageProof.slice(0, 1), recordsSlot: 3, codeHash }
const bundle = { version: '1', verdict, proof }
const pins: BundlePins = { contract, blockHash, codeHash }
const rpcUrl = 'https://rpc.example'

const rows = ({ checks }: Report) => checks.map(({ field, claimed, found }) => [field, claimed, found])
const { chainRef, untrusted: _, ...plain } = verdict
const offlineRows = (canonical: string[]) => [
  ['keys', '12 keys', 'the keys of the specification'],
  ['untrusted', 'supplier metadata', 'the form is right; the texts are not derived from the chain'],
  ['chainRef', '5 keys', 'the keys of the specification'],
  ['bundle.version', '1', '1'],
  ['contract', contract, contract],
  ...(canonical.length === 0 ? [] : [canonical]),
  ['bundle.recordsSlot', '3', '3'],
  ['proof.header', blockHash, blockHash],
  ['proof.account', contract, contract],
  ['proof.code', codeHash, codeHash],
  ['proof.storage', recordSlot(6n), recordSlot(6n)],
  ...Object.entries(plain).map(([name, value]) => [name, String(value), String(value)]),
  ...Object.entries(chainRef).map(([name, value]) => [`chainRef.${name}`, String(value), String(value)]),
  ['bundle.codeHash', codeHash, codeHash],
]

describe('checkProofBundle of a recorded block', () => {
  it('has a row for each comparison', () => {
    const report = checkProofBundle(bundle, pins)
    assert.deepEqual(rows(report), offlineRows(['block.canonical', blockHash, blockHash]))
    assert.deepEqual([report.ok, report.outcome], [true, 'agrees'])
    const upper = blockHash.toUpperCase().replace('X', 'x') as typeof blockHash
    assert.equal(checkProofBundle(bundle, { ...pins, blockHash: upper }).outcome, 'agrees')
  })

  it('leaves the block undecided where it is not pinned', () => {
    const report = checkProofBundle(bundle, { contract, codeHash })
    const why = 'not pinned: compare the block hash with a source you trust'
    assert.deepEqual(rows(report), offlineRows(['block.canonical', blockHash, why]))
    assert.deepEqual([report.outcome, failed(report)], ['undecided', ['block.canonical']])
    assert.deepEqual(failed(checkProofBundle(bundle)), ['contract', 'block.canonical'])
    assert.equal(checkProofBundle(bundle, { ...pins, blockHash: codeHash }).outcome, 'differs')
  })

  it('names what is no bundle', () => {
    const form = 'not an object of version, verdict and proof'
    const { version: _version, ...headless } = bundle
    for (const thing of [null, [], {}, headless, { ...bundle, more: 1 }])
      assert.deepEqual(rows(checkProofBundle(thing, pins)), [['bundle', thing === null ? 'null' : 'an object', form]])
    for (const thing of [7, 'x']) assert.deepEqual(rows(checkProofBundle(thing)), [['bundle', String(thing), form]])
    const inner = 'not header, accountProof, storageProof, recordsSlot and codeHash'
    for (const key of Object.keys(proof)) {
      const { [key]: _left, ...rest } = proof as Record<string, unknown>
      assert.deepEqual(rows(checkProofBundle({ ...bundle, proof: rest }, pins)), [['bundle.proof', 'an object', inner]])
    }
    for (const thing of [null, [], { ...proof, more: 1 }])
      assert.deepEqual(rows(checkProofBundle({ ...bundle, proof: thing }, pins))[0]?.[0], 'bundle.proof')
    assert.deepEqual(rows(checkProofBundle({ ...bundle, verdict: 7, version: 1 }, pins)), [
      ['verdict', '7', 'not a JSON object'],
      ['bundle.version', '1', '1'],
    ])
    assert.deepEqual(failed(checkProofBundle({ ...bundle, verdict: 7, version: 1 }, pins)), [
      'verdict',
      'bundle.version',
    ])
  })

  it('holds slot and code of the bundle against what is proven', () => {
    const of = (change: object, by: BundlePins = pins) =>
      checkProofBundle({ ...bundle, proof: { ...proof, ...change } }, by)
    for (const recordsSlot of [8, '3', null]) assert.deepEqual(failed(of({ recordsSlot })), ['bundle.recordsSlot'])
    assert.deepEqual(failed(of({ codeHash: blockHash })), ['bundle.codeHash'])
    assert.deepEqual(rows(of({ storageProof: [] })).slice(-2), [
      ['proof.storage', recordSlot(6n), 'there is not one storage proof per slot'],
      ['bundle.codeHash', codeHash, 'nothing proven'],
    ])
    assert.deepEqual(failed(of({}, { ...pins, recordsSlot: 8n })), [
      'bundle.recordsSlot',
      'proof.storage',
      'bundle.codeHash',
    ])
    assert.equal(
      rows(of({}, { ...pins, recordsSlot: 8n })).find(([field]) => field === 'proof.storage')?.[1],
      mappingSlot(6n, 8n),
    )
    const unpublished = { chainId: 84532, contract, codeHash: null, recordsSlot: null }
    const report = of({}, { blockHash, deployment: unpublished })
    assert.deepEqual(report.checks.at(-1), {
      field: 'bundle.recordsSlot',
      ok: false,
      undecided: true,
      claimed: '3',
      found: 'not published: give recordsSlot',
    })
    assert.deepEqual(failed(checkProofBundle(bundle, { ...pins, tokenId: 7n })), ['token asked for'])
  })
})

describe('recheckProofBundle', () => {
  it('holds the block against the endpoint in the place of a pin', async () => {
    const { fetch, requests } = recordedChain()
    const report = await recheckProofBundle(bundle, { rpcUrl, contract, codeHash, fetch })
    assert.deepEqual(rows(report), [
      ...offlineRows([]),
      ['rpc.chain_id', '84532', '84532'],
      ['block.canonical', blockHash, blockHash],
      ['block.age', '2026-11-23T12:00:47Z', '12 s before the latest block'],
    ])
    assert.deepEqual([report.ok, report.outcome], [true, 'agrees'])
    assert.deepEqual(requests, [
      { method: 'eth_chainId', params: [] },
      { method: 'eth_getBlockByNumber', params: ['0x9', false] },
      { method: 'eth_getBlockByNumber', params: ['latest', false] },
    ])
  })

  it('does not take a pin for the block that the endpoint has', async () => {
    const { fetch } = recordedChain({ eth_getBlockByNumber: () => ({ result: latest }) })
    const report = await recheckProofBundle(bundle, { rpcUrl, ...pins, fetch })
    assert.deepEqual([report.outcome, failed(report)], ['differs', ['block.canonical']])
    const elsewhere = recordedChain({ eth_chainId: () => ({ result: '0x1' }) })
    const other = await recheckProofBundle(bundle, { rpcUrl, ...pins, fetch: elsewhere.fetch })
    assert.deepEqual([other.outcome, failed(other)], ['differs', ['rpc.chain_id']])
  })

  it('sends no request where the bundle is wrong already', async () => {
    const { fetch, requests } = recordedChain()
    const numbered = (number: unknown) => ({ ...verdict, chainRef: { ...chainRef, block_number: number } })
    const wrong: unknown[] = [
      null,
      {},
      { ...bundle, verdict: null },
      { ...bundle, version: '2' },
      { ...bundle, verdict: { ...verdict, flagged: true } },
      { ...bundle, verdict: numbered(1) },
      { ...bundle, verdict: numbered('x') },
    ]
    for (const thing of wrong) {
      const report = await recheckProofBundle(thing, { rpcUrl, ...pins, fetch })
      assert.deepEqual(report, checkProofBundle(thing, pins))
      assert.equal(report.outcome, 'differs')
    }
    // The record is not compared where its slot is not published. The number of the block is then read first here.
    const deployment = { chainId: 84532, contract, codeHash: null, recordsSlot: null }
    for (const number of ['x', null, 1.5, {}]) {
      const report = await recheckProofBundle({ ...bundle, verdict: numbered(number) }, { rpcUrl, deployment, fetch })
      assert.equal(report.outcome, 'undecided')
    }
    assert.deepEqual(requests, [])
    await recheckProofBundle({ ...bundle, verdict: numbered(31) }, { rpcUrl, deployment, fetch })
    assert.deepEqual(requests.at(-1), { method: 'eth_getBlockByNumber', params: ['0x1f', false] })
  })

  it('limits the age only where the caller does, and is a fault where the endpoint refuses', async () => {
    const old = {
      eth_getBlockByNumber: ([at]: readonly unknown[]) => ({
        result: at === 'latest' ? { ...latest, timestamp: '0x80000000' } : header,
      }),
    }
    const of = (maxAgeSeconds?: number) =>
      recheckProofBundle(bundle, { rpcUrl, contract, maxAgeSeconds, fetch: recordedChain(old).fetch })
    assert.equal((await of()).outcome, 'agrees')
    assert.deepEqual(failed(await of(3600)), ['block.age'])
    const { fetch } = recordedChain({ eth_getBlockByNumber: () => ({ error: { code: -32000, message: 'no' } }) })
    await assert.rejects(recheckProofBundle(bundle, { rpcUrl, contract, fetch }), {
      code: 'RPC_UNAVAILABLE',
      message: 'The RPC refused eth_getBlockByNumber (code -32000). For old blocks it must keep old state.',
    })
  })
})
