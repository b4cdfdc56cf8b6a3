/** A block as a provider sends it (spec §2.1 `chainRef`): its header must hash to its hash, and its state must exist. */
import { keccak_256 } from '@noble/hashes/sha3.js'
import { hexToBytes } from '@noble/hashes/utils.js'
import { headerHash, type Hex, type RpcHeader, unknownHeaderMembers } from '@touchstone/verdict'
import type { BlockId } from '../../domain/chain.ts'
import { isObject } from '../../lib/json.ts'
import { isWord, parseQuantity, RpcError } from './answer.ts'

/** `timestamp` is in unix seconds. `header` is the provider's own JSON without its transactions, for proofs. */
export type Block = BlockId & Readonly<{ parentHash: Hex; timestamp: bigint; header: RpcHeader }>

/**
 * Is called for a header with members that are unknown here, or without some. A fork or a provider adds members; a thin provider lacks
 * them. May throw. `isChecked`: the known members hash to the block hash all the same.
 */
export type OnUnchecked = (isChecked: boolean, unknown: readonly string[]) => void

/** Parses a block of `eth_getBlockBy…`. Throws `RpcError` for an impossible block. */
export function parseBlock(value: unknown, onUnchecked: OnUnchecked): Block {
  if (!isObject(value)) throw new RpcError('fault', 'no block')
  const { transactions: _transactions, ...header } = value
  const { hash, parentHash, stateRoot } = header
  const number = parseQuantity(header.number)
  const timestamp = parseQuantity(header.timestamp)
  if (!isWord(hash) || !isWord(parentHash) || !isWord(stateRoot) || number === null || timestamp === null)
    throw new RpcError('fault', 'block without the fields of a block')
  if (/^0x0*$/.test(stateRoot)) throw new RpcError('fault', 'block with a zero stateRoot')
  const found = headerHash(header)
  const unknown = unknownHeaderMembers(header)
  if (found === null || unknown.length > 0) onUnchecked(found !== null, unknown)
  if (found !== null && found !== hash) throw new RpcError('fault', 'header does not hash to the block hash')
  return { number, hash, parentHash, timestamp, header }
}

const bloomPattern = /^0x[0-9a-f]{512}$/
/** The root of no receipts at all. */
const noReceipts = '0x56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421'

/**
 * Returns `logsBloom`, the filter of a block's logs (Yellow Paper §4.4.1): 2048 bits, three for each address and topic. `null` where it says
 * nothing: a header that cannot be checked, or one of a chain that leaves the filter empty.
 */
export function logFilterOf({ header, hash }: Block): bigint | null {
  const { logsBloom, receiptsRoot } = header
  if (typeof logsBloom !== 'string' || !bloomPattern.test(logsBloom) || headerHash(header) !== hash) return null
  const filter = BigInt(logsBloom)
  return filter === 0n && receiptsRoot !== noReceipts ? null : filter
}

/** Returns the bits that these addresses and topics set in a filter. */
export function filterBitsOf(values: Iterable<Hex>): bigint {
  let bits = 0n
  for (const value of values) {
    const digest = keccak_256(hexToBytes(value.slice(2)))
    for (const at of [0, 2, 4]) bits |= 1n << BigInt((((digest[at] ?? 0) << 8) | (digest[at + 1] ?? 0)) & 2047)
  }
  return bits
}

/** Returns whether a filter has all these bits. */
export function hasBits(filter: bigint, bits: bigint): boolean {
  return (filter & bits) === bits
}

/** Returns a function that finds whether a block may hold logs of the contract. Those of most blocks need not be read. */
export function mayHoldLogsOf(contract: Hex): (block: Block) => boolean {
  const bits = filterBitsOf([contract])
  return (block) => hasBits(logFilterOf(block) ?? bits, bits)
}
