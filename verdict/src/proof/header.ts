/** The hash of a block header, computed from the JSON that an RPC returns for it. */
import { bytesOf, type Hex, keccak256 } from '../lib/hex.ts'
import { encodeRlp, integerBytes } from './rlp.ts'

/** The answer of `eth_getBlockByHash` without transaction objects: JSON of a provider, every field of which is checked. */
export type RpcHeader = Readonly<Record<string, unknown>>

/**
 * A header has these members since the Prague fork, in hashing order. The form is the number of bytes, `quantity`, or
 * `data` of any length.
 */
const members: readonly (readonly [name: string, form: number | 'quantity' | 'data'])[] = [
  ['parentHash', 32],
  ['sha3Uncles', 32],
  ['miner', 20],
  ['stateRoot', 32],
  ['transactionsRoot', 32],
  ['receiptsRoot', 32],
  ['logsBloom', 256],
  ['difficulty', 'quantity'],
  ['number', 'quantity'],
  ['gasLimit', 'quantity'],
  ['gasUsed', 'quantity'],
  ['timestamp', 'quantity'],
  ['extraData', 'data'],
  ['mixHash', 32],
  ['nonce', 8],
  ['baseFeePerGas', 'quantity'], // EIP-1559
  ['withdrawalsRoot', 32], // EIP-4895
  ['blobGasUsed', 'quantity'], // EIP-4844
  ['excessBlobGas', 'quantity'],
  ['parentBeaconBlockRoot', 32], // EIP-4788
  ['requestsHash', 32], // EIP-7685
]

/** Fields of a block's JSON that are not part of its header. */
const besideHeader = ['hash', 'size', 'totalDifficulty', 'transactions', 'uncles', 'withdrawals']

const known = new Set([...members.map(([name]) => name), ...besideHeader])

/** The names of members that this library does not know, as after a later fork. A member that is `null` counts as missing. */
export function unknownHeaderMembers(header: RpcHeader): string[] {
  return Object.keys(header).filter((name) => !known.has(name) && header[name] !== null && header[name] !== undefined)
}

/**
 * The block hash: keccak256 of the RLP list of the 21 header members since Prague (Yellow Paper §4.4; execution-apis
 * `Block`). Returns `null` when it cannot be computed: a member is missing or malformed, or there is an unknown one and the others
 * do not hash to the block's own `hash`. An unknown member beside the header, such as a provider's own, does no harm.
 */
export function headerHash(header: RpcHeader): Hex | null {
  const hash = hashOfKnown(header)
  return unknownHeaderMembers(header).length === 0 || hash === header['hash'] ? hash : null
}

function hashOfKnown(header: RpcHeader): Hex | null {
  const items: Uint8Array[] = []
  for (const [name, form] of members) {
    const value = header[name]
    const item = form === 'quantity' ? quantity(value) : bytesOf(value)
    if (item === null || (typeof form === 'number' && item.length !== form)) return null
    items.push(item)
  }
  return keccak256(encodeRlp(items))
}

/** Header integers are at most 256 bits; leading zeros of a sloppy provider do no harm, because the hash decides. */
function quantity(value: unknown): Uint8Array | null {
  if (typeof value !== 'string' || !/^0x[0-9a-fA-F]{1,64}$/.test(value)) return null
  return integerBytes(BigInt(value))
}
