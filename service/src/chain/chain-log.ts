/** Logs of the registry as providers send them: of the right contract, complete, in order, none taken back by a reorg. */
import type { Hex } from '@touchstone/verdict'
import { RpcFailure, isHexData, isObject, isWord, quantityOf } from './rpc-answer.ts'
import type { ChainLog } from './source.ts'

/** Decodes an answer of `eth_getLogs`; `contract` is in lower case. Throws `RpcFailure` for a list that cannot be. */
export function logsOf(value: unknown, contract: Hex): readonly ChainLog[] {
  if (!Array.isArray(value)) throw new RpcFailure('fault', 'result of eth_getLogs is not a list')
  // Logs of one block come together: what was seen in the log before is not looked at again.
  const addressOf = remembering((text) => addressIn(text, contract))
  const numberOf = remembering(quantityOf)
  const timeOf = remembering(quantityOf)
  const wordIn = remembering((text) => (isWord(text) ? text : null))
  let before: ChainLog | undefined
  return value.map((log: unknown) => (before = logOf(log, before)))

  function logOf(log: unknown, last: ChainLog | undefined): ChainLog {
    if (!isObject(log)) throw new RpcFailure('fault', 'log is not an object')
    const { topics, data, transactionHash, removed, blockTimestamp } = log
    if (removed !== undefined && removed !== false) throw new RpcFailure('fault', 'log that a reorg removed')
    const address = addressOf(log.address)
    if (address === null) throw new RpcFailure('fault', 'log of another contract')
    const blockHash = wordIn(log.blockHash)
    if (!isTopics(topics) || !isHexData(data) || blockHash === null || !isWord(transactionHash)) {
      throw new RpcFailure('fault', 'log without the fields of a log')
    }
    const blockNumber = numberOf(log.blockNumber)
    const logIndex = indexOf(log.logIndex)
    if (blockNumber === null || logIndex === null) throw new RpcFailure('fault', 'log without a place')
    if (last !== undefined && !isAfter(blockNumber, blockHash, logIndex, last)) {
      throw new RpcFailure('fault', 'logs out of order')
    }
    const time = timeOf(blockTimestamp)
    return time === null
      ? { address, topics, data, blockNumber, blockHash, logIndex, transactionHash }
      : { address, topics, data, blockNumber, blockHash, logIndex, transactionHash, blockTimestamp: time }
  }
}

/** The same function, which does not work twice in a row for the same text. */
function remembering<T>(read: (value: unknown) => T): (value: unknown) => T {
  let last: { readonly value: unknown; readonly result: T } | undefined
  return (value) => {
    if (last === undefined || last.value !== value) last = { value, result: read(value) }
    return last.result
  }
}

function addressIn(value: unknown, contract: Hex): Hex | null {
  return typeof value === 'string' && value.toLowerCase() === contract ? contract : null
}

/** Up to 32 bits, so that it is a number. */
function indexOf(value: unknown): number | null {
  return typeof value === 'string' && /^0x(0|[1-9a-f][0-9a-f]{0,7})$/.test(value) ? parseInt(value, 16) : null
}

function isTopics(value: unknown): value is readonly Hex[] {
  return Array.isArray(value) && value.length <= 4 && value.every(isWord)
}

function isAfter(blockNumber: bigint, blockHash: Hex, logIndex: number, before: ChainLog): boolean {
  if (blockNumber !== before.blockNumber) return blockNumber > before.blockNumber
  return logIndex > before.logIndex && blockHash === before.blockHash
}
