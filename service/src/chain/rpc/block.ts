/** A block as a provider sends it (spec §2.1 `chainRef`): its header must hash to its hash, and its state must exist. */
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
