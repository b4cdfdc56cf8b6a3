/** Proves storage slots of a contract from a block hash alone (EIP-1186 proofs under a header's state root). */
import { abiEncode, bytesOf, type Hex, hexOf, keccak256, numberOf } from '../lib/hex.ts'
import { isObject } from '../lib/json.ts'
import { headerHash, type RpcHeader } from './header.ts'
import { decodeRlp } from './rlp.ts'
import { checkTrieProof } from './trie.ts'

/** The answer of `eth_getProof` (EIP-1186). A check needs the nodes only; what else it says must agree with them. */
export type EthProof = Readonly<{
  address?: Hex
  balance?: Hex
  codeHash?: Hex
  nonce?: Hex
  storageHash?: Hex
  /** RLP of the trie nodes from the state root to the account. */
  accountProof: readonly Hex[]
  /**
   * Each slot has one entry, in the order asked for. It holds RLP of the trie nodes from the storage root to the slot.
   */
  storageProof: readonly Readonly<{ key: Hex; value: Hex; proof: readonly Hex[] }>[]
}>

/** Which part of a proof failed. */
export type ProofStep = 'header' | 'account' | 'code' | 'storage'

/**
 * Returns the proven words and the proven code hash, or the first thing that is wrong. The words are in the order
 * of the slots, and 0 where nothing is stored.
 */
export type StorageProofResult =
  | { ok: true; values: bigint[]; codeHash: Hex }
  | { ok: false; step: ProofStep; reason: string }

/**
 * Slot of `mapping(uint256 => …)` at storage slot `slot`: `keccak256(abi.encode(key, slot))` (Solidity, «Layout of
 * State Variables in Storage»).
 */
export function mappingSlot(key: bigint, slot: bigint): Hex {
  return keccak256(abiEncode(key, slot))
}

/** Slot of a token's asset record. The registry keeps its records in the mapping at slot 3. */
export function recordSlot(tokenId: bigint, recordsSlot: bigint = 3n): Hex {
  return mappingSlot(tokenId, recordsSlot)
}

/**
 * Checks that the header hashes to `blockHash`, and that account and slots lie under its state root. The account is
 * that of `contract` with `codeHash` (not compared when it is left out). Each slot lies under the account's storage
 * root. Everything in `header` and `proof` may be hostile. A slot is 32 bytes: a shorter one would be hashed to another
 * place of the trie. What remains trusted: that `blockHash` is a block of the chain.
 */
export function verifyStorageProof(of: {
  header: RpcHeader
  blockHash: Hex
  contract: Hex
  codeHash?: Hex | undefined
  proof: EthProof
  slots: readonly Hex[]
}): StorageProofResult {
  const { header, blockHash, contract, proof, slots } = of
  if (!isObject(header)) return failed('header', 'the header is not an object')
  if (!isEthProof(proof)) return failed('account', 'the proof has not the form of EIP-1186')
  const hash = headerHash(header)
  if (hash === null)
    return failed('header', 'the header has missing, malformed or unknown members, so its hash cannot be checked')
  if (hash !== blockHash) return failed('header', `the header hashes to ${hash}`)
  const account = proveAccount(contract, hexOf(bytesOf(header['stateRoot']) ?? new Uint8Array()), proof)
  if (typeof account === 'string') return failed('account', account)
  if (of.codeHash !== undefined && account.codeHash !== of.codeHash.toLowerCase())
    return failed('code', `the code hash is ${account.codeHash}`)
  if (proof.storageProof.length !== slots.length) return failed('storage', 'there is not one storage proof per slot')
  const values: bigint[] = []
  for (const [index, slot] of slots.entries()) {
    if (bytesOf(slot)?.length !== 32) return failed('storage', 'a slot is not 32 bytes in hex: pad it with zeros')
    const value = proveSlot(slot, account.storageHash, proof.storageProof[index])
    if (typeof value === 'string') return failed('storage', value)
    values.push(value)
  }
  return { ok: true, values, codeHash: account.codeHash }
}

function failed(step: ProofStep, reason: string): StorageProofResult {
  return { ok: false, step, reason }
}

/** Has parsed JSON the members of an `eth_getProof` answer that a check needs? */
function isEthProof(value: unknown): value is EthProof {
  if (!isObject(value) || !isNodeList(value['accountProof']) || !Array.isArray(value['storageProof'])) return false
  return value['storageProof'].every((entry) => isObject(entry) && isNodeList(entry['proof']))
}

function isNodeList(value: unknown): boolean {
  return Array.isArray(value) && value.every((node) => typeof node === 'string')
}

/** The account leaf is RLP of nonce, balance, storage root and code hash (Yellow Paper §4.1). */
function proveAccount(contract: Hex, stateRoot: Hex, proof: EthProof): { storageHash: Hex; codeHash: Hex } | string {
  const found = checkTrieProof({ root: stateRoot, path: hashedKey(contract), proof: proof.accountProof })
  if (!found.ok) return found.reason
  if (found.value === null) return 'there is no account at this address'
  const leaf = decodeRlp(found.value)
  const [nonce, balance, storageHash, codeHash, ...more] = leaf === null || leaf instanceof Uint8Array ? [] : leaf
  if (!isInteger(nonce) || !isInteger(balance) || !isHash(storageHash) || !isHash(codeHash) || more.length > 0) {
    return 'the account is malformed'
  }
  const agrees =
    agree(proof.address, BigInt(contract)) &&
    agree(proof.nonce, numberOf(nonce)) &&
    agree(proof.balance, numberOf(balance)) &&
    agree(proof.storageHash, numberOf(storageHash)) &&
    agree(proof.codeHash, numberOf(codeHash))
  if (!agrees) return 'the answer disagrees with its own proof'
  return { storageHash: hexOf(storageHash), codeHash: hexOf(codeHash) }
}

/** A storage leaf is the RLP integer of the word; zero is never stored. */
function proveSlot(slot: Hex, storageHash: Hex, entry: EthProof['storageProof'][number] | undefined): bigint | string {
  if (entry === undefined || !agree(entry.key, BigInt(slot))) return 'a storage proof is for another slot'
  const found = checkTrieProof({ root: storageHash, path: hashedKey(slot), proof: entry.proof })
  if (!found.ok) return found.reason
  const leaf = found.value === null ? new Uint8Array() : decodeRlp(found.value)
  if (!isInteger(leaf) || (found.value !== null && leaf.length === 0)) return 'the stored value is not an RLP integer'
  return agree(entry.value, numberOf(leaf)) ? numberOf(leaf) : 'the answer disagrees with its own proof'
}

/** State and storage tries are keyed by the hash of the address or slot. */
function hashedKey(key: Hex): Hex {
  return keccak256(bytesOf(key) ?? new Uint8Array())
}

function isInteger(item: unknown): item is Uint8Array {
  return item instanceof Uint8Array && item.length <= 32 && item[0] !== 0
}

function isHash(item: unknown): item is Uint8Array {
  return item instanceof Uint8Array && item.length === 32
}

/** Says a member of the answer, where it is present, this number in hex? Providers differ in padding. */
function agree(text: unknown, value: bigint): boolean {
  return (
    text === undefined || (typeof text === 'string' && /^0x[0-9a-fA-F]{1,64}$/.test(text) && BigInt(text) === value)
  )
}
