import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createMPT, createMerkleProof } from '@ethereumjs/mpt'
import fc from 'fast-check'
import { bytesOf, type Hex, hexOf } from '../lib/hex.ts'
import { checkTrieProof } from './trie.ts'

/** Paths that share long beginnings, so that small tries have deep branches, extensions and nodes inside nodes. */
const path = fc
  .tuple(
    fc.constantFrom('0'.repeat(64), `${'a1'.repeat(31)}00`),
    fc.integer({ min: 0, max: 63 }),
    fc.integer({ min: 0, max: 0xffff }),
  )
  .map(([base, at, change]): Hex => `0x${(base.slice(0, at) + change.toString(16)).padEnd(64, '7').slice(0, 64)}`)

const value = fc.oneof(fc.uint8Array({ minLength: 1, maxLength: 2 }), fc.uint8Array({ minLength: 1, maxLength: 40 }))
const content = fc.uniqueArray(fc.tuple(path, value), { selector: ([key]) => key, maxLength: 24 })

/**
 * Returns the trie of the oracle, its root, and the nodes towards a path. Nodes under 32 bytes are in their parents and
 * not listed.
 */
async function oracle(entries: [Hex, Uint8Array][]) {
  const trie = await createMPT()
  for (const [key, bytes] of entries) await trie.put(bytesOf(key) ?? new Uint8Array(), bytes)
  const proofOf = async (key: Hex): Promise<Hex[]> => {
    const nodes = await createMerkleProof(trie, bytesOf(key) ?? new Uint8Array())
    return nodes.filter((node, index) => index === 0 || node.length >= 32).map(hexOf)
  }
  return { root: hexOf(trie.root()), proofOf }
}

function flipBit(node: Hex, at: number): Hex {
  const bytes = bytesOf(node) ?? new Uint8Array()
  const index = at % bytes.length
  return hexOf(bytes.map((byte, position) => (position === index ? byte ^ (1 << (at % 8)) : byte)))
}

/** Everything that is not the proof itself, made from it. */
function spoilt(proof: Hex[], at: number): Hex[][] {
  const index = at % proof.length
  const node = proof[index] ?? '0x'
  const with_ = (...nodes: Hex[]): Hex[] => [...proof.slice(0, index), ...nodes, ...proof.slice(index + 1)]
  const other = (index + 1) % proof.length
  const swapped = proof.map(
    (_, position) => proof[position === index ? other : position === other ? index : position] ?? '0x',
  )
  return [
    with_(),
    with_(node, node),
    with_(flipBit(node, at)),
    with_(`${node}00`),
    with_(node.slice(0, -2) as Hex),
    with_(node.slice(0, -1) as Hex),
    with_('0x'),
    proof.slice(0, index),
    proof.slice(1),
    [...proof, '0x80'],
    [...proof, node],
    ...(proof.length > 1 ? [swapped, proof.toReversed()] : []),
  ]
}

describe('checkTrieProof against @ethereumjs/mpt', () => {
  it('proves every present and every absent path, and accepts no other list of nodes', async () => {
    let inline = 0
    const property = fc.asyncProperty(
      content,
      fc.array(path, { maxLength: 4 }),
      fc.nat(),
      async (entries, strangers, at) => {
        const { root, proofOf } = await oracle(entries)
        const stored = new Map(entries)
        for (const key of [...stored.keys(), ...strangers]) {
          const proof = await proofOf(key)
          const expected = stored.get(key) ?? null
          assert.deepEqual(checkTrieProof({ root, path: key, proof }), { ok: true, value: expected })
          if (expected !== null && !(proof.at(-1) ?? '').endsWith(hexOf(expected).slice(2))) inline += 1
          if (proof.length === 0) continue
          for (const bad of spoilt(proof, at))
            assert.equal(checkTrieProof({ root, path: key, proof: bad }).ok, false, JSON.stringify(bad))
        }
      },
    )
    await fc.assert(property, { numRuns: 150 })
    assert.ok(inline > 0, 'no trie had a node inside its parent')
  })

  it('never proves a wrong value with the nodes of another path', async () => {
    const property = fc.asyncProperty(content, path, path, async (entries, one, other) => {
      const { root, proofOf } = await oracle(entries)
      const found = checkTrieProof({ root, path: other, proof: await proofOf(one) })
      if (found.ok) assert.deepEqual(found.value, new Map(entries).get(other) ?? null)
    })
    await fc.assert(property, { numRuns: 150 })
  })

  it('proves absence in the empty trie with no node or with the empty one', async () => {
    const { root } = await oracle([])
    const path64: Hex = `0x${'12'.repeat(32)}`
    for (const proof of [[], ['0x80']] satisfies Hex[][])
      assert.deepEqual(checkTrieProof({ root, path: path64, proof }), { ok: true, value: null })
    assert.equal(checkTrieProof({ root, path: path64, proof: ['0x80', '0x80'] }).ok, false)
    assert.equal(checkTrieProof({ root, path: path64, proof: ['0xc0'] }).ok, false)
  })
})
