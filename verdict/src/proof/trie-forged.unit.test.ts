/** Nodes that hash as they should but that no honest trie holds: here the attacker makes the root too. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { bytesOf, type Hex, hexOf, keccak256 } from '../lib/hex.ts'
import { encodeRlp, type RlpItem } from './rlp.ts'
import { checkTrieProof } from './trie.ts'

const path: Hex = `0x${'1'.repeat(64)}`
const none = new Uint8Array()
const value = Uint8Array.of(7)

function bytes(hex: string): Uint8Array {
  const found = bytesOf(`0x${hex}`)
  assert.ok(found)
  return found
}

/** A leaf over the last `count` nibbles. */
function leaf(count: number, held: RlpItem = value): RlpItem {
  return [bytes(count % 2 === 1 ? `3${'1'.repeat(count)}` : `20${'1'.repeat(count)}`), held]
}

function branch(child: RlpItem, held: RlpItem = none): RlpItem {
  return [none, child, ...Array<RlpItem>(14).fill(none), held]
}

function hash(node: RlpItem): Uint8Array {
  return bytes(keccak256(encodeRlp(node)).slice(2))
}

/** Checks a chain of nodes, the first of which is the root. */
function check(...nodes: (RlpItem | Hex)[]) {
  const proof = nodes.map((node) => (typeof node === 'string' ? node : hexOf(encodeRlp(node))))
  return checkTrieProof({ root: keccak256(bytes((proof[0] ?? '0x').slice(2))), path, proof })
}

function reasonOf(result: ReturnType<typeof check>): string {
  return result.ok ? 'accepted' : result.reason
}

/** A branch chain down to an extension over all but the last `count` nibbles. */
const over = (count: number, child: RlpItem): RlpItem => [
  bytes(count % 2 === 0 ? `00${'1'.repeat(64 - count)}` : `1${'1'.repeat(64 - count)}`),
  child,
]

const long = new Uint8Array(40).fill(1)

describe('checkTrieProof of forged nodes', () => {
  it('accepts the honest forms that the forgeries below are made from', () => {
    const proven = { ok: true, value }
    assert.deepEqual(check(leaf(64)), proven)
    assert.deepEqual(check(over(2, branch(leaf(1)))), proven) // both nodes inside the extension
    assert.deepEqual(check(branch(hash(leaf(63, long))), leaf(63, long)), { ok: true, value: long })
    assert.deepEqual(check(over(3, hash(branch(hash(leaf(2, long))))), branch(hash(leaf(2, long))), leaf(2, long)), {
      ok: true,
      value: long,
    })
  })

  const forged: [name: string, result: ReturnType<typeof check>, reason: RegExp][] = [
    ['a node of three items', check([none, none, none]), /neither 2 nor 17/],
    ['an empty list', check([]), /neither 2 nor 17/],
    ['a node that is a text', check(value), /not a list/],
    ['hex-prefix flags above 3', check([bytes(`40${'1'.repeat(64)}`), value]), /hex-prefix/],
    ['a hex-prefix padded with 1', check([bytes(`21${'1'.repeat(64)}`), value]), /hex-prefix/],
    ['an empty hex-prefix', check([none, value]), /hex-prefix/],
    ['a path that is a list', check([[], value]), /hex-prefix/],
    ['a leaf that is too short', check(leaf(62)), /length of the path/],
    ['a leaf that is too long', check(leaf(66)), /length of the path/],
    ['a leaf without a value', check(leaf(64, none)), /no value/],
    ['a leaf with a list for a value', check(leaf(64, [value])), /no value/],
    ['an extension over nothing', check([bytes('00'), leaf(64)]), /skips nothing/],
    ['an extension over the whole path', check([bytes(`00${'1'.repeat(64)}`), branch(none, value)]), /everything/],
    ['an extension that leads nowhere', check(over(2, none)), /leads nowhere/],
    ['a branch with a value', check(over(2, branch(leaf(1), value))), /holds a value/],
    ['a branch with a list for a value', check(branch(none, [])), /holds a value/],
    [
      'a branch below the end of the path',
      check(over(1, hash(branch(branch(none)))), branch(branch(none))),
      /below the end/,
    ],
    ['a child of 31 bytes', check(branch(new Uint8Array(31).fill(1)), leaf(63)), /neither a hash nor a node/],
    ['a child that is an empty list', check(branch([])), /neither 2 nor 17/],
    ['a large node inside its parent', check(branch(leaf(63, long))), /stands inside/],
    ['a small node by its hash', check(over(2, hash(branch(leaf(1)))), branch(leaf(1))), /stands alone/],
    ['an inner node listed again', check(over(2, branch(leaf(1))), branch(leaf(1))), /follow/],
    ['a node with bytes after it', check(`${hexOf(encodeRlp(leaf(64)))}00`), /not canonical/],
    ['a node with a long length', check(`0xf80180`), /not canonical/],
  ]
  for (const [name, result, reason] of forged) it(`refuses ${name}`, () => assert.match(reasonOf(result), reason))

  it('refuses a node longer than any of a trie, before its items are read', () => {
    // A branch whose first child is a list of 200,000 empty texts.
    const items = '80'.repeat(200_000)
    const child = `fa${(200_000).toString(16).padStart(6, '0')}${items}`
    const branchOf = `${'80'}${child}${'80'.repeat(15)}`
    const length = (branchOf.length / 2).toString(16).padStart(6, '0')
    assert.match(reasonOf(check(`0xfa${length}${branchOf}`)), /longer than/)
  })

  it('reads a node of 1024 bytes, and none of 1025', () => {
    // A leaf whose value fills the node: two prefixes of three bytes, and 34 bytes of path.
    const filling = (length: number) => leaf(64, new Uint8Array(length - 40).fill(1))
    assert.deepEqual(
      [1024, 1025].map((length) => encodeRlp(filling(length)).length),
      [1024, 1025],
    )
    assert.equal(check(filling(1024)).ok, true)
    assert.match(reasonOf(check(filling(1025))), /longer than/)
  })

  it('reads a node of 31 bytes inside its parent, and none of 32', () => {
    const inside = (length: number): RlpItem => leaf(1, new Uint8Array(length - 3).fill(1))
    assert.deepEqual(
      [31, 32].map((length) => encodeRlp(inside(length)).length),
      [31, 32],
    )
    const proofOf = (length: number) => check(over(2, hash(branch(inside(length)))), branch(inside(length)))
    assert.equal(proofOf(31).ok, true)
    assert.match(reasonOf(proofOf(32)), /stands inside/)
    const large = new Uint8Array(40).fill(1)
    const alone = (length: number) => leaf(63, new Uint8Array(length - 35).fill(1))
    assert.deepEqual(
      [alone(40), leaf(63, large)].map((node) => check(branch(hash(node)), node).ok),
      [true, true],
    )
  })

  it('refuses a node that is no hex', () => {
    assert.match(reasonOf(checkTrieProof({ root: path, path, proof: ['0xzz'] })), /not hex/)
    assert.match(reasonOf(checkTrieProof({ root: path, path, proof: ['0x123'] })), /not hex/)
  })

  it('refuses a root or path that is not 32 bytes', () => {
    const proof = [hexOf(encodeRlp(leaf(64)))]
    const root = keccak256(encodeRlp(leaf(64)))
    const reason = 'the root or the path is not 32 bytes'
    for (const wrong of ['0x12', `${root}00`, 'x', '0x'] as Hex[])
      assert.deepEqual(checkTrieProof({ root: wrong, path, proof }), { ok: false, reason })
    for (const wrong of ['0x11', `${path}11`, '0x'] as Hex[])
      assert.deepEqual(checkTrieProof({ root, path: wrong, proof }), { ok: false, reason })
    assert.equal(checkTrieProof({ root: keccak256(encodeRlp(leaf(64))), path, proof: [] }).ok, false)
  })
})
