/**
 * A block as a provider shows it, and whether it may be the head of an answer (spec §2.1 `chain_ref`, §2.5):
 * its header must hash to its hash, its state must exist, it must be fresh.
 */
import { headerHash } from '@touchstone/verdict'
import { RpcFailure, isObject, isWord, quantityOf } from './rpc-answer.ts'
import type { Block } from './source.ts'

const zeroWord = `0x${'00'.repeat(32)}`

/** Called for a header with fields this code does not know (a fork) or without some (a thin provider); may throw. */
export type OnUnchecked = () => void

/** Decodes a block of `eth_getBlockBy…`. Throws `RpcFailure` for a block that cannot be. */
export function blockOf(value: unknown, onUnchecked: OnUnchecked): Block {
  if (!isObject(value)) throw new RpcFailure('fault', 'no block')
  const { transactions: _transactions, ...header } = value
  const { hash, parentHash, stateRoot } = header
  const number = quantityOf(header.number)
  const timestamp = quantityOf(header.timestamp)
  if (!isWord(hash) || !isWord(parentHash) || !isWord(stateRoot) || number === null || timestamp === null) {
    throw new RpcFailure('fault', 'block without the fields of a block')
  }
  if (stateRoot === zeroWord) throw new RpcFailure('fault', 'block with a zero stateRoot')
  const found = headerHash(header)
  if (found === null) onUnchecked()
  else if (found !== hash) throw new RpcFailure('fault', 'header does not hash to the block hash')
  return { number, hash, parentHash, timestamp, header }
}

/**
 * Refuses a head that is older than `maxAgeSeconds` (0: any age), or as far in the future: a stuck or lying provider,
 * or a clock here that is wrong. `now` is in unix milliseconds.
 */
export function assertFresh(block: Block, now: number, maxAgeSeconds: number): void {
  const age = now / 1000 - Number(block.timestamp)
  if (maxAgeSeconds > 0 && Math.abs(age) > maxAgeSeconds) {
    throw new RpcFailure('fault', `head is ${Math.round(age)} s old`)
  }
}
