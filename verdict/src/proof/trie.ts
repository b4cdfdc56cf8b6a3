/** Merkle-Patricia proofs (Ethereum Yellow Paper, appendices C and D; the node lists of EIP-1186). */
import { bytesOf, type Hex, hexOf, keccak256 } from '../lib/hex.ts'
import { decodeRlp, encodeRlp, type RlpItem } from './rlp.ts'

/** Root of a trie without keys: keccak256 of the RLP of the empty string. */
const emptyRoot: Hex = '0x56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421'

/**
 * The longest node has fewer bytes than this, with room to spare. A branch has 16 hashes, a leaf 32 bytes of path and
 * an account.
 */
const longestNode = 1024

/** The result of a proof: the value at the path, or `null` when the path is proven to be absent. */
export type TrieProofResult = { ok: true; value: Uint8Array | null } | { ok: false; reason: string }

/** The step from a node: to the end of the path, or over some nibbles to a child. */
type Step = { end: Uint8Array | null } | { child: RlpItem; nibbles: number }

/**
 * Checks the nodes from a root towards a path. Paths are 32 bytes (the hashed key), as in the state and storage tries,
 * so no value ever sits in a branch. Every listed node must be needed and must hash to what its parent says; nodes
 * under 32 bytes are part of their parent and not listed. A list that stops early, goes on too long or is not canonical
 * proves nothing.
 */
export function checkTrieProof(of: { root: Hex; path: Hex; proof: readonly Hex[] }): TrieProofResult {
  const { root, path, proof } = of
  const nibbles = path.slice(2)
  let child: RlpItem | null = bytesOf(root)
  if (child?.length !== 32 || nibbles.length !== 64) return failed('the root or the path is not 32 bytes')
  if (proof.length === 0) return root === emptyRoot ? { ok: true, value: null } : failed('the proof has no nodes')
  let listed = 0
  let rest = nibbles
  for (;;) {
    const node = child instanceof Uint8Array ? listedNode(child, proof[listed], listed === 0) : inlineNode(child)
    if (typeof node === 'string') return failed(node)
    if (child instanceof Uint8Array) listed += 1
    const step = follow(node, rest)
    if (typeof step === 'string') return failed(step)
    if ('end' in step)
      return listed === proof.length ? { ok: true, value: step.end } : failed('nodes follow the last one')
    child = step.child
    rest = rest.slice(step.nibbles)
  }
}

function failed(reason: string): { ok: false; reason: string } {
  return { ok: false, reason }
}

/** The next listed node, or why it does not belong under the hash that its parent holds. */
function listedNode(hash: Uint8Array, text: Hex | undefined, isRoot: boolean): RlpItem | string {
  if (hash.length !== 32) return 'a child is neither a hash nor a node'
  if (text === undefined) return 'a node is missing'
  if (text.length > 2 + 2 * longestNode) return 'a node is longer than any of a trie'
  const bytes = bytesOf(text)
  if (bytes === null) return 'a node is not hex'
  if (bytes.length < 32 && !isRoot) return 'a node under 32 bytes stands alone'
  if (keccak256(bytes) !== hexOf(hash)) return 'a node does not hash to what its parent says'
  return decodeRlp(bytes) ?? 'a node is not canonical RLP'
}

/** A node inside its parent: only nodes under 32 bytes may be. */
function inlineNode(node: RlpItem): RlpItem | string {
  return encodeRlp(node).length < 32 ? node : 'a node of 32 bytes or more stands inside its parent'
}

/** Follows the rest of the path through one node (appendix D), or says why the node is malformed. */
function follow(node: RlpItem, rest: string): Step | string {
  // The node of the empty trie is the empty string.
  if (node instanceof Uint8Array) return node.length === 0 ? { end: null } : 'a node is not a list'
  if (node.length === 17) return followBranch(node, rest)
  return node.length === 2 ? followPath(node, rest) : 'a node has neither 2 nor 17 items'
}

function followBranch(node: readonly RlpItem[], rest: string): Step | string {
  if (rest === '') return 'a branch lies below the end of the path'
  if (!isEmpty(node[16] ?? [])) return 'a branch holds a value'
  const child = node[Number.parseInt(rest.charAt(0), 16)] ?? []
  return isEmpty(child) ? { end: null } : { child, nibbles: 1 }
}

/** A leaf ends the path with a value; an extension skips nibbles that all paths below it share. */
function followPath([prefix = [], next = []]: readonly RlpItem[], rest: string): Step | string {
  const part = prefix instanceof Uint8Array ? hexPrefix(prefix) : null
  if (part === null) return 'a path is not canonical hex-prefix'
  if (part.leaf) {
    if (!(next instanceof Uint8Array) || next.length === 0) return 'a leaf has no value'
    if (part.nibbles.length !== rest.length) return 'a leaf does not end at the length of the path'
    return { end: part.nibbles === rest ? next : null }
  }
  if (part.nibbles === '' || part.nibbles.length >= rest.length) return 'an extension skips nothing or everything'
  if (isEmpty(next)) return 'an extension leads nowhere'
  return rest.startsWith(part.nibbles) ? { child: next, nibbles: part.nibbles.length } : { end: null }
}

function isEmpty(item: RlpItem): boolean {
  return item instanceof Uint8Array && item.length === 0
}

/**
 * Appendix C: the first nibble holds the kind (bit 1) and the parity (bit 0); an even path is padded with a zero
 * nibble.
 */
function hexPrefix(bytes: Uint8Array): { leaf: boolean; nibbles: string } | null {
  const digits = hexOf(bytes).slice(2)
  const flags = Number.parseInt(digits.charAt(0), 16)
  const odd = (flags & 1) === 1
  if (!(flags <= 3) || (!odd && digits.charAt(1) !== '0')) return null
  return { leaf: (flags & 2) === 2, nibbles: digits.slice(odd ? 1 : 2) }
}
