/** Proofs of the real registry against an RPC that lies (chain trust «proof»), and what becomes of them when a single digit changes. */
import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import fc from 'fast-check'
import {
  type EthProof,
  type Fetch,
  getAssetCall,
  headerHash,
  type Hex,
  mappingSlot,
  prove,
  recheck,
  recordSlot,
  type RpcHeader,
  verifyStorageProof,
  wordOfRecord,
} from '../src/index.ts'
import { claimed, operator, startChain } from './_chain.ts'
import { changedResult } from './_liar.ts'
import { failed, found } from './_report.ts'

type Entry = EthProof['storageProof'][number]

const chain = await startChain()
after(() => chain[Symbol.asyncDispose]())

const { rpcUrl, contract, codeHash } = chain
for (let count = 0; count < 12; count += 1) await chain.send('mint(address,bytes32)', BigInt(operator), 0xfeedn)
await chain.send('bindTag(uint256,bytes32)', 1n, 0xdeadn)
const stored = { owner: operator, timestamp: 5n, state: 4, flags: 0x20, reserved: 3 } as const
await chain.store(1000n, stored)

const header = await chain.head()
const blockHash = header['hash'] as Hex
/** The record of a token, its tag, its metadata hash, and a record that is not there. */
const slots = [recordSlot(1000n), mappingSlot(1n, 6n), mappingSlot(1n, 7n), recordSlot(5000n)]
const values = [wordOfRecord(stored), 0xdeadn, 0xfeedn, 0n]
const proof = (await chain.rpc('eth_getProof', [contract, slots, { blockHash }])) as EthProof
const honest = { header, blockHash, contract, codeHash, proof, slots }

await chain.store(1n, claimed)
const verdict = await chain.verdict(1n)
await chain.store(1n, { ...claimed, flags: 2 })
const later = await chain.verdict(1n)

const proven = (of: unknown, fetch: Fetch) => prove(of, { rpcUrl, contract, codeHash, fetch })
/** The fields that fail where an endpoint gives another result of a method. */
const failedBy = async (...change: Parameters<typeof changedResult>) =>
  failed(await proven(verdict, changedResult(...change)))

describe('an RPC that lies', () => {
  it('deceives a recheck, which is why it takes one that you trust', async () => {
    const stolen = await chain.rpc('eth_call', [{ to: contract, data: getAssetCall(1n) }, 'latest'])
    const lie = { ...later, chainRef: verdict.chainRef }
    assert.ok((await recheck(lie, { rpcUrl, contract, fetch: changedResult('eth_call', () => stolen) })).ok)
    assert.equal((await recheck(lie, { rpcUrl, contract })).ok, false)
  })

  it('deceives a proof only with a whole chain of its own, of which an endpoint beside it knows nothing', async () => {
    await using invented = await startChain() // the same chain id, contract address and code
    await invented.store(1n, claimed)
    await invented.store(1n, claimed)
    const lie = await invented.verdict(1n)
    assert.ok((await prove(lie, { rpcUrl: invented.rpcUrl, contract, codeHash })).ok)
    const both = await prove(lie, { rpcUrl: [invented.rpcUrl, rpcUrl], contract, codeHash })
    assert.equal(both.outcome, 'differs')
  })

  it('cannot deceive a proof with nodes of another block', async () => {
    const other = await chain.rpc('eth_getProof', [contract, [], 'latest'])
    assert.deepEqual(await failedBy('eth_getProof', () => other), ['proof.account'])
  })

  const withProof = (change: (proof: EthProof) => unknown): Fetch =>
    changedResult('eth_getProof', (proof) => change(proof as EthProof))
  const withEntry = (change: (entry: Entry) => Partial<Entry>): Fetch =>
    withProof((proof) => ({
      ...proof,
      storageProof: proof.storageProof.map((entry) => ({ ...entry, ...change(entry) })),
    }))
  const lies: [name: string, field: string, fetch: Fetch][] = [
    ['another value', 'proof.storage', withEntry(() => ({ value: '0x1' }))],
    ['another slot', 'proof.storage', withEntry(() => ({ key: '0x1' }))],
    ['no storage proof', 'proof.storage', withProof((proof) => ({ ...proof, storageProof: [] }))],
    [
      'two storage proofs',
      'proof.storage',
      withProof((proof) => ({ ...proof, storageProof: [...proof.storageProof, ...proof.storageProof] })),
    ],
    ['a storage proof without its end', 'proof.storage', withEntry(({ proof }) => ({ proof: proof.slice(0, -1) }))],
    ['another balance', 'proof.account', withProof((proof) => ({ ...proof, balance: '0x1' }))],
    ['another code hash', 'proof.account', withProof((proof) => ({ ...proof, codeHash: verdict.chainRef.block_hash }))],
    [
      'a longer account proof',
      'proof.account',
      withProof((proof) => ({ ...proof, accountProof: [...proof.accountProof, '0x80'] })),
    ],
    ['nodes that are numbers', 'proof.account', withProof((proof) => ({ ...proof, accountProof: [1, 2] }))],
    ['null', 'proof.account', withProof(() => null)],
  ]
  for (const [name, field, fetch] of lies) {
    it(`cannot deceive a proof with ${name}`, async () =>
      assert.deepEqual(failed(await proven(verdict, fetch)).slice(0, 1), [field]))
  }

  it('cannot pass a block off as canonical that it has replaced itself', async () => {
    for (const block of [{ hash: later.chainRef.block_hash }, null])
      assert.deepEqual(await failedBy('eth_getBlockByNumber', () => block), ['block.canonical'])
  })
})

describe('prove', () => {
  it('reports other code than the caller pins', async () => {
    const report = await prove(verdict, { rpcUrl, contract, codeHash: verdict.chainRef.block_hash })
    assert.deepEqual(failed(report), ['proof.code'])
    assert.match(found(report, 'proof.code') ?? '', new RegExp(codeHash))
  })

  it('takes the pinned code hash in any case', async () => {
    assert.ok((await prove(verdict, { rpcUrl, contract, codeHash: `0x${codeHash.slice(2).toUpperCase()}` })).ok)
  })

  it('finds no record in another mapping', async () => {
    assert.equal((await prove(verdict, { rpcUrl, contract, recordsSlot: 8n })).ok, false)
  })

  it('reports an account that does not exist', async () => {
    const nobody: Hex = '0x00000000000000000000000000000000000abcde'
    const report = await proven({ ...verdict, chainRef: { ...verdict.chainRef, contract: nobody } }, fetch)
    assert.match(found(report, 'proof.account') ?? '', /no account/)
  })

  it('reports a block that a reorganisation has dropped', async () => {
    await chain.store(9n, claimed)
    const dropped = await chain.verdict(9n)
    await chain.rpc('anvil_reorg', [3, []])
    assert.deepEqual(failed(await proven(dropped, fetch)), ['block'])
    assert.deepEqual(failed(await recheck(dropped, { rpcUrl, contract })), ['block'])
    assert.deepEqual(failed(await proven(verdict, fetch)), [])
  })
})

describe('verifyStorageProof', () => {
  it('proves several slots at once, present and absent', () => {
    assert.deepEqual(verifyStorageProof(honest), { ok: true, values, codeHash })
  })

  it('never finds another value when a digit anywhere changes', () => {
    const all = texts({ header, proof })
    const property = fc.property(fc.nat(all.length - 1), fc.nat(), fc.integer({ min: 1, max: 15 }), (index, at, by) => {
      const { path, text } = all[index] ?? { path: [], text: '' }
      const position = 2 + (at % Math.max(text.length - 2, 1))
      const digit = (Number.parseInt(text.charAt(position) || '0', 16) ^ by).toString(16)
      const { header: changedHeader, proof: changedProof } = withText(
        { header, proof },
        path,
        text.slice(0, position) + digit + text.slice(position + 1),
      )
      const found = verifyStorageProof({ ...honest, header: changedHeader, proof: changedProof })
      const beside = ['hash', 'size', 'totalDifficulty', 'transactions'].includes(path[1] ?? '')
      assert.equal(found.ok, beside, path.join('.'))
      if (found.ok) assert.deepEqual(found.values, values)
    })
    fc.assert(property, { numRuns: 1000 })
  })
})

describe('headerHash', () => {
  it('is the hash that the chain gives each of its blocks', async () => {
    for (const tag of ['0x0', '0x1', 'latest']) {
      const header = (await chain.rpc('eth_getBlockByNumber', [tag, false])) as RpcHeader
      assert.equal(headerHash(header), header['hash'])
    }
  })
})

/** Every text inside parsed JSON, by its path. */
function texts(value: unknown, path: string[] = []): { path: string[]; text: string }[] {
  if (typeof value === 'string') return [{ path, text: value }]
  return typeof value === 'object' && value !== null
    ? Object.entries(value).flatMap(([key, inner]) => texts(inner, [...path, key]))
    : []
}

/** A copy with another text at a path. */
function withText<T>(value: T, path: string[], text: string): T {
  const copy = structuredClone(value)
  const last = path.at(-1) ?? ''
  const holder = path.slice(0, -1).reduce<unknown>((at, key) => (at as Record<string, unknown>)[key], copy)
  ;(holder as Record<string, unknown>)[last] = text
  return copy
}
