/** Storage proofs of a recorded block, and every way in which one can be wrong. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { blockHash, codeHash, contract, recorded } from '../../test/_recorded.ts'
import { bytesOf, type Hex, hexOf, keccak256 } from '../lib/hex.ts'
import { headerHash, type RpcHeader } from './header.ts'
import { encodeRlp, type RlpItem } from './rlp.ts'
import { type EthProof, mappingSlot, recordSlot, type StorageProofResult, verifyStorageProof } from './storage.ts'

const { header, proof } = recorded
const slots = [recordSlot(6n), mappingSlot(6n, 7n), mappingSlot(6n, 6n), recordSlot(5000n)]
const values = proof.storageProof.map(({ value }) => BigInt(value))
const honest = { header, blockHash, contract, codeHash, proof, slots }
const none = new Uint8Array()

const reasonOf = (found: StorageProofResult) => (found.ok ? 'accepted' : `${found.step}: ${found.reason}`)
const check = (change: object) => reasonOf(verifyStorageProof({ ...honest, ...change }))
const checkProof = (change: object) => check({ proof: { ...proof, ...change } })
const checkEntry = (change: object) =>
  checkProof({ storageProof: proof.storageProof.map((entry, at) => (at === 0 ? { ...entry, ...change } : entry)) })

describe('mappingSlot', () => {
  it('is the hash of key and slot; records lie in the mapping at slot 3', () => {
    assert.equal(mappingSlot(6n, 3n), '0xc69056f16cbaa3c616b828e333ab7d3a32310765507f8f58359e99ebb7a885f3')
    assert.equal(recordSlot(6n), mappingSlot(6n, 3n))
    assert.equal(recordSlot(6n, 8n), mappingSlot(6n, 8n))
  })
})

describe('verifyStorageProof of a recorded block', () => {
  it('proves the words, what is absent, and the code hash', () => {
    assert.deepEqual(verifyStorageProof(honest), { ok: true, values, codeHash })
    assert.equal(values[0], 0x3000000006b042aeff39fd6e51aad88f6f4ce6ab8827279cfffb92266n)
    assert.equal(values[3], 0n)
    assert.equal(check({ codeHash: undefined }), 'accepted')
    assert.equal(check({ codeHash: codeHash.toUpperCase().replace('X', 'x') }), 'accepted')
    assert.deepEqual(verifyStorageProof({ ...honest, slots: [], proof: { ...proof, storageProof: [] } }), {
      ok: true,
      values: [],
      codeHash,
    })
  })

  it('needs no more than the nodes', () => {
    const { accountProof } = proof
    const storageProof = proof.storageProof.map(({ proof: nodes }) => ({ proof: nodes }))
    assert.equal(check({ proof: { accountProof, storageProof } }), 'accepted')
  })

  it('accepts padding of what the answer repeats, and nothing else', () => {
    assert.equal(checkEntry({ value: `0x${(values[0] ?? 0n).toString(16).padStart(64, '0')}` }), 'accepted')
    assert.equal(checkProof({ balance: '0x00', nonce: '0x0001', address: contract.toLowerCase() }), 'accepted')
    const disagrees = 'account: the answer disagrees with its own proof'
    for (const member of ['address', 'balance', 'codeHash', 'nonce', 'storageHash'])
      for (const value of ['0x2', '0x', '', 'x0x0', 7, null, `0x${'0'.repeat(64)}1`])
        assert.equal(checkProof({ [member]: value }), disagrees, `${member} ${value}`)
    for (const value of ['0x2', '0x', 'x0x0', 7, null])
      assert.equal(checkEntry({ value }), 'storage: the answer disagrees with its own proof', String(value))
    for (const key of ['0x2', '0x', 7, null, slots[1]])
      assert.equal(checkEntry({ key }), 'storage: a storage proof is for another slot', String(key))
    // 65 digits are more than a word, though their value is the same.
    const padded = (text: Hex, digits: number) => `0x${text.slice(2).padStart(digits, '0')}`
    assert.equal(checkProof({ codeHash: padded(codeHash, 65) }), disagrees)
    assert.equal(checkProof({ nonce: ` 0x1` }), disagrees)
    assert.equal(checkProof({ nonce: `0x1\n` }), disagrees)
    assert.equal(checkProof({ nonce: 'a0x1' }), disagrees)
  })

  it('names the part that is wrong', () => {
    const form = 'account: the proof has not the form of EIP-1186'
    assert.equal(check({ header: null }), 'header: the header is not an object')
    assert.equal(check({ header: [] }), 'header: the header is not an object')
    for (const wrong of [null, [], 'x', {}, { accountProof: [] }, { storageProof: [] }])
      assert.equal(check({ proof: wrong }), form)
    assert.equal(checkProof({ accountProof: 'nodes' }), form)
    assert.equal(checkProof({ accountProof: [...proof.accountProof, 1] }), form)
    assert.equal(checkProof({ storageProof: {} }), form)
    assert.equal(checkProof({ storageProof: [...proof.storageProof, null] }), form)
    assert.equal(checkProof({ storageProof: [...proof.storageProof, 'x'] }), form)
    assert.equal(checkEntry({ proof: undefined }), form)
    assert.equal(checkEntry({ proof: [1] }), form)
    assert.equal(checkEntry({ proof: 'x' }), form)
    const { stateRoot: _, ...headless } = header
    const unhashed = 'header: the header has missing, malformed or unknown members, so its hash cannot be checked'
    assert.equal(check({ header: headless }), unhashed)
    assert.equal(check({ header: { ...header, later: '0x1', gasUsed: '0x1' } }), unhashed)
    assert.match(check({ header: { ...header, gasUsed: '0x1' } }), /^header: the header hashes to 0x[0-9a-f]{64}$/)
    assert.equal(check({ blockHash: header['parentHash'] }), `header: the header hashes to ${blockHash}`)
    assert.equal(check({ codeHash: blockHash }), `code: the code hash is ${codeHash}`)
    assert.match(check({ contract: `0x${'12'.repeat(20)}` }), /^account: /)
    const count = 'storage: there is not one storage proof per slot'
    assert.equal(check({ slots: slots.slice(1) }), count)
    assert.equal(check({ slots: [...slots, recordSlot(1n)] }), count)
    assert.equal(check({ slots: slots.toReversed() }), 'storage: a storage proof is for another slot')
    const padding = 'storage: a slot is not 32 bytes in hex: pad it with zeros'
    for (const slot of ['0x0', '0x00', 'x', `${slots[0]}00`])
      assert.equal(check({ slots: [slot, ...slots.slice(1)] }), padding)
    const [, second] = proof.storageProof
    assert.match(checkEntry({ proof: second?.proof }), /^storage: /)
  })

  it('accepts no node with one bit changed, left out or repeated', () => {
    for (const [at, node] of proof.accountProof.entries())
      for (const nodes of spoilt(proof.accountProof, at, node))
        assert.match(checkProof({ accountProof: nodes }), /^account: /)
    for (const [index, entry] of proof.storageProof.entries())
      for (const [at, node] of entry.proof.entries())
        for (const nodes of spoilt(entry.proof, at, node)) {
          const storageProof = proof.storageProof.map((one, other) =>
            other === index ? { ...one, proof: nodes } : one,
          )
          assert.match(checkProof({ storageProof }), /^storage: /)
        }
  })
})

describe('verifyStorageProof of nodes that hash as they should', () => {
  const storageRoot = bytes(keccak256(encodeRlp(leaf(slots[0] ?? '0x', Uint8Array.of(7)))))
  const account = [Uint8Array.of(1), none, storageRoot, bytes(codeHash)]

  it('proves an account and a word of a chain that the attacker makes, whose hash the caller must not trust', () => {
    assert.deepEqual(forged(account), { ok: true, values: [7n], codeHash })
    // A balance of 32 bytes, and a word of 33 bytes that is the RLP of 32.
    assert.deepEqual(forged([none, new Uint8Array(32).fill(255), storageRoot, bytes(codeHash)]), {
      ok: true,
      values: [7n],
      codeHash,
    })
    const most = encodeRlp(new Uint8Array(32).fill(255))
    assert.deepEqual(forged(account, most), { ok: true, values: [2n ** 256n - 1n], codeHash })
  })

  const malformed: [name: string, account: RlpItem][] = [
    ['a text', bytes(codeHash)],
    ['no member', []],
    ['a member more', [...account, none]],
    ['a member less', account.slice(0, 3)],
    ['a nonce that begins with zero', [Uint8Array.of(0, 1), ...account.slice(1)]],
    ['a nonce that is a list', [[], ...account.slice(1)]],
    ['a balance that begins with zero', [none, Uint8Array.of(0), ...account.slice(2)]],
    ['a balance of 33 bytes', [none, new Uint8Array(33).fill(1), ...account.slice(2)]],
    ['a balance that is a list', [none, [], ...account.slice(2)]],
    ['a storage root of 31 bytes', [none, none, storageRoot.subarray(1), bytes(codeHash)]],
    ['a storage root that is a list', [none, none, [], bytes(codeHash)]],
    ['a code hash of 31 bytes', [none, none, storageRoot, bytes(codeHash).subarray(1)]],
    ['a code hash of 33 bytes', [none, none, storageRoot, new Uint8Array(33).fill(1)]],
  ]
  for (const [name, item] of malformed)
    it(`refuses an account that is ${name}`, () => {
      assert.equal(reasonOf(forged(item)), 'account: the account is malformed')
    })

  it('refuses an account that is no RLP, and one that is none at all', () => {
    assert.equal(reasonOf(forged(Uint8Array.of(0x83, 1), undefined, false)), 'account: the account is malformed')
    const empty = keccak256(encodeRlp(none))
    const { blockHash: hash, header: made } = blockOf(bytes(empty))
    const found = verifyStorageProof({
      ...honest,
      header: made,
      blockHash: hash,
      proof: { accountProof: [], storageProof: [] },
    })
    assert.equal(reasonOf(found), 'account: there is no account at this address')
  })

  const words: [name: string, stored: Uint8Array][] = [
    ['zero, which is never stored', Uint8Array.of(0x80)],
    ['a zero byte', Uint8Array.of(0)],
    ['a number that begins with zero', Uint8Array.of(0x82, 0, 1)],
    ['a list', Uint8Array.of(0xc0)],
    ['33 bytes', encodeRlp(new Uint8Array(33).fill(1))],
    ['no RLP', Uint8Array.of(0x83, 1)],
  ]
  for (const [name, stored] of words)
    it(`refuses a word that is ${name}`, () => {
      assert.equal(reasonOf(forged(account, stored)), 'storage: the stored value is not an RLP integer')
    })

  /** Checks an account, and one stored word, of a chain that consists of one leaf each. */
  function forged(item: RlpItem, stored: Uint8Array = Uint8Array.of(7), isItem = true): StorageProofResult {
    const [slot = '0x'] = slots
    const storageLeaf = encodeRlp(leaf(slot, stored))
    const held =
      item instanceof Uint8Array
        ? item
        : item.map((member) => (member === storageRoot ? bytes(keccak256(storageLeaf)) : member))
    const accountLeaf = encodeRlp(leaf(contract, isItem ? encodeRlp(held) : (item as Uint8Array)))
    const { blockHash: hash, header: made } = blockOf(bytes(keccak256(accountLeaf)))
    const answer = {
      accountProof: [hexOf(accountLeaf)],
      storageProof: [{ proof: [hexOf(storageLeaf)] }],
    } as unknown as EthProof
    return verifyStorageProof({ header: made, blockHash: hash, contract, codeHash, proof: answer, slots: [slot] })
  }

  function blockOf(stateRoot: Uint8Array): { header: RpcHeader; blockHash: Hex } {
    const made = { ...header, stateRoot: hexOf(stateRoot) }
    const hash = headerHash(made)
    assert.ok(hash)
    return { header: made, blockHash: hash }
  }
})

/** The leaf of a trie that holds one key. */
function leaf(key: Hex, value: Uint8Array): RlpItem {
  return [bytes(`0x20${keccak256(bytes(key)).slice(2)}`), value]
}

/**
 * Returns lists of nodes that are not the proof. In them the last bit of a node is changed, a node is left out, or a node
 * stands twice.
 */
function spoilt(nodes: readonly Hex[], at: number, node: Hex): Hex[][] {
  const changed = `${node.slice(0, -1)}${(Number.parseInt(node.slice(-1), 16) ^ 1).toString(16)}` as Hex
  return [
    nodes.with(at, changed),
    nodes.with(at, `${node}00`),
    nodes.with(at, '0x'),
    nodes.toSpliced(at, 1),
    nodes.toSpliced(at, 0, node),
  ]
}

function bytes(text: Hex): Uint8Array {
  const found = bytesOf(text)
  assert.ok(found)
  return found
}
