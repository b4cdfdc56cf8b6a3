/** Storage proofs of the real registry, and what becomes of them when a single digit changes. */
import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import fc from 'fast-check'
import {
  type EthProof,
  type Hex,
  mappingSlot,
  recordSlot,
  type RpcHeader,
  verifyStorageProof,
  wordOfRecord,
} from '../src/index.ts'
import { operator, startChain } from './_chain.ts'

const chain = await startChain()
after(() => chain[Symbol.asyncDispose]())

const { contract, codeHash } = chain
for (let count = 0; count < 12; count += 1) await chain.send('mint(address,bytes32)', BigInt(operator), 0xfeedn)
await chain.send('bindTag(uint256,bytes32)', 1n, 0xdeadn)
const record = { owner: operator, timestamp: 5n, state: 4, flags: 0x20, reserved: 3 } as const
await chain.store(1000n, record)

const header = await chain.head()
const blockHash = header['hash'] as Hex
/** The record of a token, its tag, its metadata hash, and a record that is not there. */
const slots = [recordSlot(1000n), mappingSlot(1n, 6n), mappingSlot(1n, 7n), recordSlot(5000n)]
const values = [wordOfRecord(record), 0xdeadn, 0xfeedn, 0n]
const proof = (await chain.rpc('eth_getProof', [contract, slots, { blockHash }])) as EthProof
const honest = { header, blockHash, contract, codeHash, proof, slots }

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

describe('verifyStorageProof', () => {
  it('proves several slots at once, present and absent', () => {
    assert.deepEqual(verifyStorageProof(honest), { ok: true, values, codeHash })
  })

  it('proves the code hash where none is given', () => {
    assert.deepEqual(verifyStorageProof({ ...honest, codeHash: undefined }), { ok: true, values, codeHash })
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

  const [first, second] = proof.storageProof
  assert.ok(first && second)
  const wrong: [name: string, step: string, change: Partial<typeof honest>][] = [
    ['another block', 'header', { blockHash: header['parentHash'] as Hex }],
    ['another contract', 'account', { contract: operator }],
    ['other code', 'code', { codeHash: blockHash }],
    ['slots in another order', 'storage', { slots: slots.toReversed() }],
    ['a slot more than proofs', 'storage', { slots: [...slots, recordSlot(1n)] }],
    ['a slot that is not 32 bytes, which would be hashed unpadded', 'storage', { slots: ['0x0', ...slots.slice(1)] }],
    ['a slot less than proofs', 'storage', { slots: slots.slice(1) }],
    [
      'the nodes of another slot',
      'storage',
      { proof: { ...proof, storageProof: [{ ...first, proof: second.proof }, ...proof.storageProof.slice(1)] } },
    ],
    ['no header', 'header', { header: null as unknown as RpcHeader }],
    ['no proof', 'account', { proof: undefined as unknown as EthProof }],
    ['a list for a proof', 'account', { proof: [] as unknown as EthProof }],
    [
      'storage proofs that are null',
      'account',
      { proof: { ...proof, storageProof: [null, null, null, null] as unknown as EthProof['storageProof'] } },
    ],
    [
      'a key that is a number',
      'storage',
      {
        proof: { ...proof, storageProof: proof.storageProof.map((entry) => ({ ...entry, key: 1 as unknown as Hex })) },
      },
    ],
  ]
  for (const [name, step, change] of wrong) {
    it(`refuses ${name}`, () => {
      const found = verifyStorageProof({ ...honest, ...change })
      assert.equal(found.ok ? 'accepted' : found.step, step)
    })
  }

  it('checks a hundred proofs in a blink', () => {
    const began = process.cpuUsage()
    for (let count = 0; count < 100; count += 1) assert.ok(verifyStorageProof(honest).ok)
    // Processor time, which other programs do not use up.
    assert.ok(process.cpuUsage(began).user < 2_000_000)
  })
})
