/** Logs of the registry as providers send them: of the right contract, complete, in order, none taken back by a reorg. */
import type { Hex } from '@touchstone/verdict'
import { RpcFailure, isHexData, isObject, isWord, quantityOf } from './rpc-answer.ts'
import type { ChainLog } from './source.ts'

/** Decodes an answer of `eth_getLogs`; `contract` is in lower case. Throws `RpcFailure` for a list that cannot be. */
export function logsOf(value: unknown, contract: Hex): readonly ChainLog[] {
  if (!Array.isArray(value)) throw new RpcFailure('fault', 'result of eth_getLogs is not a list')
  const logs = value.map((log: unknown) => logOf(log, contract))
  logs.forEach((log, index) => {
    const before = logs[index - 1]
    if (before !== undefined && !isAfter(log, before)) throw new RpcFailure('fault', 'logs out of order')
  })
  return logs
}

function logOf(value: unknown, contract: Hex): ChainLog {
  if (!isObject(value)) throw new RpcFailure('fault', 'log is not an object')
  const { address, topics, data, blockHash, transactionHash, removed } = value
  const blockNumber = quantityOf(value.blockNumber)
  const logIndex = quantityOf(value.logIndex)
  if (removed !== undefined && removed !== false) throw new RpcFailure('fault', 'log that a reorg removed')
  if (typeof address !== 'string' || address.toLowerCase() !== contract) {
    throw new RpcFailure('fault', 'log of another contract')
  }
  if (!isTopics(topics) || !isHexData(data) || !isWord(blockHash) || !isWord(transactionHash)) {
    throw new RpcFailure('fault', 'log without the fields of a log')
  }
  if (blockNumber === null || logIndex === null || logIndex > 0xffff_ffffn) {
    throw new RpcFailure('fault', 'log without a place')
  }
  const place = { blockNumber, blockHash, logIndex: Number(logIndex), transactionHash }
  return { address: contract, topics, data, ...place }
}

function isTopics(value: unknown): value is readonly Hex[] {
  return Array.isArray(value) && value.length <= 4 && value.every(isWord)
}

function isAfter(log: ChainLog, before: ChainLog): boolean {
  if (log.blockNumber !== before.blockNumber) return log.blockNumber > before.blockNumber
  return log.logIndex > before.logIndex && log.blockHash === before.blockHash
}
