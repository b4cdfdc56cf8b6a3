/**
 * The reads of one provider (spec §2.2, §2.5): the calls, the checks of the answer, and the key in which providers must agree.
 * Each throws `RpcError`. `source.ts` decides which providers are asked, and how many.
 */
import type { EthProof, Hex } from '@touchstone/verdict'
import type { ChainLog } from '../../domain/registry-event.ts'
import { isObject } from '../../lib/json.ts'
import { memoizeLast } from '../../lib/memoize.ts'
import { isHexData, isVagueLimit, isWord, parseQuantity, quantity, RpcError, type RpcErrorKind } from './answer.ts'
import { type Block, filterBitsOf, hasBits, logFilterOf, type OnUnchecked, parseBlock } from './block.ts'
import type { RpcAttempt, RpcCall } from './client.ts'
import type { Provider } from './provider.ts'

export type Read<T> = Readonly<{
  run: (rpc: RpcAttempt, provider: Provider) => Promise<T>
  /** Equal for two answers that mean the same. */
  consensusKey: (answer: T) => string
}>

/** `at` is a tag or a number in hex. `null`, as for `safe` on a young chain, is a fault. */
export function readBlockAt(at: string, onUnchecked: OnUnchecked): Read<Block> {
  return {
    run: async (rpc) => parseBlock(await rpc.ask('eth_getBlockByNumber', [at, false]), onUnchecked),
    consensusKey: (block) => block.hash,
  }
}

export function readBlock(hash: Hex, onUnchecked: OnUnchecked): Read<Block> {
  async function run(rpc: RpcAttempt): Promise<Block> {
    const found = await rpc.ask('eth_getBlockByHash', [hash, false])
    if (found === null) throw new RpcError('non-canonical', 'unknown block')
    const block = parseBlock(found, onUnchecked)
    if (block.hash !== hash) throw new RpcError('fault', 'another block than the one asked for')
    return block
  }
  return { run, consensusKey: (block) => block.hash }
}

/** Reads many blocks at once. `null` for a number that the provider does not know. */
export function readBlocksAt(numbers: readonly bigint[], onUnchecked: OnUnchecked): Read<readonly (Block | null)[]> {
  const calls = numbers.map((number): RpcCall => ['eth_getBlockByNumber', [quantity(number), false]])
  async function run(rpc: RpcAttempt): Promise<readonly (Block | null)[]> {
    return (await rpc.askAll(calls)).map((value, index) => {
      const block = value === null ? null : parseBlock(value, onUnchecked)
      if (block !== null && block.number !== numbers[index]) throw new RpcError('fault', 'block of another number')
      return block
    })
  }
  return { run, consensusKey: (blocks) => blocks.map((block) => block?.hash).join() }
}

/** Reads the number of the `finalized` block. It is a hint that saves work, so providers need not agree on it. */
export function readFinalized(onUnchecked: OnUnchecked): Read<bigint | null> {
  async function run(rpc: RpcAttempt): Promise<bigint | null> {
    const found = await rpc.ask('eth_getBlockByNumber', ['finalized', false]).catch((error: unknown) => {
      if (error instanceof RpcError && error.answered && !error.isFault) return null
      throw error
    })
    return found === null ? null : parseBlock(found, onUnchecked).number
  }
  return { run, consensusKey: () => '' }
}

/** Reads `eth_call` results in one batch. */
export function readCalls(to: Hex, datas: readonly Hex[], block: Block): Read<readonly Hex[]> {
  const params = datas.map((data) => (at: unknown) => [{ to, data }, at])
  return {
    run: async (rpc, provider) => (await provider.pin.ask(rpc, 'eth_call', block, params)).map(parseCallResult),
    consensusKey: (results) => results.join(),
  }
}

function parseCallResult(result: unknown): Hex {
  if (!isHexData(result)) throw new RpcError('fault', 'result of eth_call is not data')
  // No code answers at the address: this is the chain's own answer, like a revert.
  if (result === '0x') throw new RpcError('reverted', 'eth_call answered 0x')
  return result
}

export function readLogs(contract: Hex, block: Block): Read<readonly ChainLog[]> {
  return { run: (rpc, provider) => askLogs(rpc, provider, contract, block), consensusKey: logsKey }
}

/** Addresses and topics of a block that are hashed at most, which takes 50 ms. */
const mostNames = 8_000
/** Failures of an answer that is too large, or that the provider does not have. */
const isTooMuch = (error: unknown) =>
  error instanceof RpcError && ['too-large', 'too-wide', 'rejected'].includes(error.kind)

/**
 * Reads the logs of the contract in a block. A node may have the header and not yet the logs, so an empty list against the filter of the
 * header must be explained by all logs of the block. Anyone may make a block too large for that: then the list is only asked for again.
 */
async function askLogs(rpc: RpcAttempt, { pin }: Provider, contract: Hex, block: Block): Promise<readonly ChainLog[]> {
  const ask = async () => logsOfBlock(await pin.askLogs(rpc, block), block, contract)
  const logs = await ask()
  if (logs.length > 0) return logs
  const filter = logFilterOf(block) ?? 0n
  if (!hasBits(filter, filterBitsOf([contract]))) return logs
  const answer = await askAllLogs(rpc, block)
  if (answer === tooMuch) return ask()
  const all = logsOfBlock(answer, block)
  const names = new Set(all.flatMap(({ address, topics }) => [address, ...topics]))
  if (names.size > mostNames) return ask()
  if (!hasBits(filterBitsOf(names), filter))
    throw new RpcError('behind', 'fewer logs than the filter of the header names')
  return all.filter(({ address }) => address === contract)
}

const tooMuch = Symbol('more logs than one answer holds')

/** Some providers give logs of one address only, but receipts. */
async function askAllLogs(rpc: RpcAttempt, { hash }: Block): Promise<unknown> {
  try {
    return await rpc.ask('eth_getLogs', [{ blockHash: hash }])
  } catch (error) {
    if (!(error instanceof RpcError) || ['busy', 'non-canonical'].includes(error.kind)) throw error
    const isLarge = error.kind === 'too-large' || error.kind === 'too-wide'
    const receipts = await rpc.ask('eth_getBlockReceipts', [hash]).catch((fault: unknown) => {
      if (isLarge && isTooMuch(fault)) return tooMuch
      throw fault
    })
    if (receipts === tooMuch) return receipts
    return Array.isArray(receipts) ? receipts.flatMap((receipt) => (isObject(receipt) ? receipt.logs : receipt)) : []
  }
}

function logsOfBlock(value: unknown, block: Block, contract?: Hex): readonly ChainLog[] {
  const logs = parseLogs(value, contract)
  if (logs.some((log) => log.blockHash !== block.hash || log.blockNumber !== block.number))
    throw new RpcError('fault', 'log of another block')
  return logs
}

type Range = Readonly<{ contract: Hex; from: bigint; to: bigint }>

/** Reads the logs of a range of blocks; with `events`, only those whose first topic is one of these. */
export function readLogsBetween(
  { contract, from, to }: Range,
  events: readonly Hex[] | undefined,
): Read<readonly ChainLog[]> {
  const filter = {
    address: contract,
    fromBlock: quantity(from),
    toBlock: quantity(to),
    ...(events && { topics: [events] }),
  }
  const allowed = events && new Set<Hex | undefined>(events)
  const isWanted = ({ topics }: ChainLog) => allowed === undefined || allowed.has(topics[0])
  /** Most nodes answer a range that ends above their head with the logs up to there. */
  async function ask(rpc: RpcAttempt): Promise<readonly [last: unknown, logs: unknown]> {
    const last = await rpc.ask('eth_getBlockByNumber', [quantity(to), false])
    if (last === null) throw new RpcError('behind', 'the last block of the range is unknown')
    return [last, await rpc.ask('eth_getLogs', [filter])]
  }
  async function run(rpc: RpcAttempt, provider: Provider): Promise<readonly ChainLog[]> {
    const [found, list] = await ask(rpc).catch((error: unknown) => askForLess(error, from < to))
    const last = parseBlock(found, () => {})
    const logs = parseLogs(list, contract)
    if (logs.some((log) => log.blockNumber < from || log.blockNumber > to))
      throw new RpcError('fault', 'log outside of the range')
    if (!logs.every(isWanted)) throw new RpcError('fault', 'log of another event')
    // Another node behind the same URL may have answered.
    if (logs.at(-1)?.blockNumber !== to && hasBits(logFilterOf(last) ?? 0n, filterBitsOf([contract]))) {
      const missing = (await askLogs(rpc, provider, contract, last)).some(isWanted)
      if (missing) throw new RpcError('behind', 'the logs of the last block of the range are missing')
    }
    return logs
  }
  return { run, consensusKey: logsKey }
}

/** Smaller requests are wanted after this failure of a wide range. One block has no smaller ones. */
function askForLess(error: unknown, isWide: boolean): never {
  if (error instanceof RpcError && (error.kind === 'too-large' || (isWide && isVagueLimit(error))))
    throw new RpcError('too-wide', error.message)
  throw error
}

function logsKey(logs: readonly ChainLog[]): string {
  return logs.map((log) => [log.blockHash, log.logIndex, log.transactionHash, log.data, ...log.topics].join()).join(';')
}

export function readProof(contract: Hex, slots: readonly Hex[], block: Block): Read<EthProof> {
  async function run(rpc: RpcAttempt, provider: Provider): Promise<EthProof> {
    const [proof] = await provider.pin.ask(rpc, 'eth_getProof', block, [(at) => [contract, slots, at]])
    if (!isProof(proof) || proof.storageProof.length !== slots.length)
      throw new RpcError('fault', 'result of eth_getProof is not a proof of these slots')
    return proof
  }
  return { run, consensusKey: proofKey }
}

function isProof(value: unknown): value is EthProof {
  if (!isObject(value)) return false
  const { accountProof, storageProof, codeHash, storageHash } = value
  return (
    isNodes(accountProof) &&
    isWord(codeHash) &&
    isWord(storageHash) &&
    Array.isArray(storageProof) &&
    storageProof.every(
      (slot) => isObject(slot) && isHexNumber(slot.key) && isHexNumber(slot.value) && isNodes(slot.proof),
    )
  )
}

function isNodes(value: unknown): boolean {
  return Array.isArray(value) && value.every(isHexData)
}

/** With or without leading zeros: clients write keys and values both ways. */
function isHexNumber(value: unknown): boolean {
  return typeof value === 'string' && /^0x[0-9a-f]{1,64}$/.test(value)
}

/** Leaves out the trie nodes: clients may list them differently, and the proof check covers them. */
function proofKey(proof: EthProof): string {
  const values = proof.storageProof.map((slot) => BigInt(slot.value).toString(16))
  return [proof.codeHash, proof.storageHash, ...values].join()
}

/** Returns the read with a check by the caller, which returns what is wrong with the answer, or `null`. */
export function checked<T>(
  read: Read<T>,
  kind: RpcErrorKind,
  check: ((answer: T) => string | null) | undefined,
): Read<T> {
  if (check === undefined) return read
  return {
    consensusKey: read.consensusKey,
    async run(rpc, provider) {
      const answer = await read.run(rpc, provider)
      const wrong = check(answer)
      if (wrong !== null) throw new RpcError(kind, wrong)
      return answer
    },
  }
}

/**
 * Parses the answer of `eth_getLogs`: logs of the contract (in lower case) or of all, complete, in order, none removed by a reorg.
 * Throws `RpcError` for any other list.
 */
export function parseLogs(value: unknown, contract?: Hex): readonly ChainLog[] {
  if (!Array.isArray(value)) throw new RpcError('fault', 'result of eth_getLogs is not a list')
  // Logs of one block come together, so each field that repeats is checked once.
  const addressOf = memoizeLast((field: unknown) => parseAddress(field, contract))
  const numberOf = memoizeLast(parseQuantity)
  const timeOf = memoizeLast(parseQuantity)
  const wordIn = memoizeLast((field: unknown) => (isWord(field) ? field : null))
  let before: ChainLog | undefined
  return value.map((log: unknown) => (before = logOf(log, before)))

  function logOf(log: unknown, last: ChainLog | undefined): ChainLog {
    if (!isObject(log)) throw new RpcError('fault', 'log is not an object')
    const { topics, data, transactionHash, removed, blockTimestamp } = log
    if (removed !== undefined && removed !== false) throw new RpcError('fault', 'log that a reorg removed')
    const address = addressOf(log.address)
    if (address === null) throw new RpcError('fault', 'log of another contract')
    const blockHash = wordIn(log.blockHash)
    if (!isTopics(topics) || !isHexData(data) || blockHash === null || !isWord(transactionHash))
      throw new RpcError('fault', 'log without the fields of a log')
    const blockNumber = numberOf(log.blockNumber)
    const logIndex = parseIndex(log.logIndex)
    if (blockNumber === null || logIndex === null) throw new RpcError('fault', 'log without a place')
    if (last !== undefined && !isAfter(blockNumber, blockHash, logIndex, last))
      throw new RpcError('fault', 'logs out of order')
    const time = timeOf(blockTimestamp)
    // Some providers write zero for a time that they do not have.
    return time === null || time === 0n
      ? { address, topics, data, blockNumber, blockHash, logIndex, transactionHash }
      : { address, topics, data, blockNumber, blockHash, logIndex, transactionHash, blockTimestamp: time }
  }
}

function parseAddress(value: unknown, contract: Hex | undefined): Hex | null {
  const address = typeof value === 'string' ? value.toLowerCase() : ''
  if (contract !== undefined) return address === contract ? contract : null
  return isHexData(address) && address.length === 42 ? address : null
}

/** Parses up to 32 bits. */
function parseIndex(value: unknown): number | null {
  return typeof value === 'string' && /^0x(0|[1-9a-f][0-9a-f]{0,7})$/.test(value) ? parseInt(value, 16) : null
}

function isTopics(value: unknown): value is readonly Hex[] {
  return Array.isArray(value) && value.length <= 4 && value.every(isWord)
}

function isAfter(blockNumber: bigint, blockHash: Hex, logIndex: number, before: ChainLog): boolean {
  if (blockNumber !== before.blockNumber) return blockNumber > before.blockNumber
  return logIndex > before.logIndex && blockHash === before.blockHash
}
