/**
 * The reads of one provider (spec §2.2, §2.5): what is sent, what the answer must look like, and which of its words
 * providers must agree on. Each throws `RpcFailure`; who is asked, and how many, is decided in `providers.ts`.
 */
import type { EthProof, Hex } from '@touchstone/verdict'
import { logsOf } from './chain-log.ts'
import { blockOf } from './head.ts'
import type { OnUnchecked } from './head.ts'
import type { Provider } from './provider.ts'
import { RpcFailure, isHexData, isObject, isWord } from './rpc-answer.ts'
import type { FailureKind } from './rpc-answer.ts'
import type { Rpc, RpcCall } from './rpc-connection.ts'
import type { Block, ChainLog } from './source.ts'

export type Read<T> = Readonly<{
  run: (rpc: Rpc, provider: Provider) => Promise<T>
  /** Equal for two answers that say the same. */
  words: (answer: T) => string
}>

/** `at` is a tag or a number in hex. `null`, as for `safe` on a young chain, is a fault. */
export function readBlockAt(at: string, onUnchecked: OnUnchecked): Read<Block> {
  return {
    run: async (rpc) => blockOf(await rpc.ask('eth_getBlockByNumber', [at, false]), onUnchecked),
    words: (block) => block.hash,
  }
}

export function readBlock(hash: Hex, onUnchecked: OnUnchecked): Read<Block> {
  async function run(rpc: Rpc): Promise<Block> {
    const found = await rpc.ask('eth_getBlockByHash', [hash, false])
    if (found === null) throw new RpcFailure('gone', 'unknown block')
    const block = blockOf(found, onUnchecked)
    if (block.hash !== hash) throw new RpcFailure('fault', 'another block than the one asked for')
    return block
  }
  return { run, words: (block) => block.hash }
}

/** Many blocks in one batch, or one by one where a provider does no batches. A number that is unknown there gives `null`. */
export function readBlocksAt(numbers: readonly bigint[], onUnchecked: OnUnchecked): Read<readonly (Block | null)[]> {
  const calls = numbers.map((number): RpcCall => ['eth_getBlockByNumber', [quantity(number), false]])
  async function run(rpc: Rpc): Promise<readonly (Block | null)[]> {
    const found = await rpc.askAll(calls).catch((error: unknown) => {
      if (!(error instanceof RpcFailure) || error.kind !== 'refused' || calls.length === 1) throw error
      return Promise.all(calls.map((call) => rpc.ask(...call)))
    })
    return found.map((value, index) => {
      const block = value === null ? null : blockOf(value, onUnchecked)
      if (block !== null && block.number !== numbers[index]) throw new RpcFailure('fault', 'block of another number')
      return block
    })
  }
  return { run, words: (blocks) => blocks.map((block) => block?.hash).join() }
}

/** How far a provider says the chain is final. It is a hint that saves work, so providers need not agree on it. */
export function readFinalized(onUnchecked: OnUnchecked): Read<bigint | null> {
  async function run(rpc: Rpc): Promise<bigint | null> {
    const found = await rpc.ask('eth_getBlockByNumber', ['finalized', false]).catch((error: unknown) => {
      if (error instanceof RpcFailure && error.said && !error.isFault) return null
      throw error
    })
    return found === null ? null : blockOf(found, onUnchecked).number
  }
  return { run, words: () => '' }
}

export function readCalls(to: Hex, datas: readonly Hex[], block: Block): Read<readonly Hex[]> {
  const params = datas.map((data) => (at: unknown) => [{ to, data }, at])
  return {
    run: async (rpc, provider) => (await provider.pin.ask(rpc, 'eth_call', block, params)).map(callResult),
    words: (results) => results.join(),
  }
}

export function readCall(to: Hex, data: Hex, block: Block): Read<Hex> {
  const params = [(at: unknown) => [{ to, data }, at]]
  return {
    run: async (rpc, provider) => callResult((await provider.pin.ask(rpc, 'eth_call', block, params))[0]),
    words: (result) => result,
  }
}

function callResult(result: unknown): Hex {
  if (!isHexData(result)) throw new RpcFailure('fault', 'result of eth_call is not data')
  // No code there: the chain's own answer, like a revert.
  if (result === '0x') throw new RpcFailure('reverted', 'eth_call answered 0x')
  return result
}

export function readLogs(contract: Hex, block: Block): Read<readonly ChainLog[]> {
  async function run(rpc: Rpc, provider: Provider): Promise<readonly ChainLog[]> {
    const logs = logsOf(await provider.pin.askLogs(rpc, block), contract)
    if (logs.some((log) => log.blockHash !== block.hash || log.blockNumber !== block.number)) {
      throw new RpcFailure('fault', 'log of another block')
    }
    return logs
  }
  return { run, words: wordsOfLogs }
}

/** `events`: only logs whose first topic is one of these. */
export function readLogsBetween(
  contract: Hex,
  from: bigint,
  to: bigint,
  events?: readonly Hex[],
): Read<readonly ChainLog[]> {
  const allowed = new Set<Hex | undefined>(events)
  const read = readRange(contract, from, to, events && [events])
  if (events === undefined) return read
  return checked(read, 'fault', (logs) =>
    logs.every(({ topics }) => allowed.has(topics[0])) ? null : 'log of another event',
  )
}

/** The logs whose second topic is the token id: every event of a record but the ERC-721 ones has it there. */
export function readLogsAbout(contract: Hex, tokenId: bigint, from: bigint, to: bigint): Read<readonly ChainLog[]> {
  const topic: Hex = `0x${tokenId.toString(16).padStart(64, '0')}`
  return checked(readRange(contract, from, to, [null, topic]), 'fault', (logs) =>
    logs.every(({ topics }) => topics[1] === topic) ? null : 'log about something else',
  )
}

function readRange(
  contract: Hex,
  from: bigint,
  to: bigint,
  topics?: readonly (Hex | readonly Hex[] | null)[],
): Read<readonly ChainLog[]> {
  const filter = { address: contract, fromBlock: quantity(from), toBlock: quantity(to), ...(topics && { topics }) }
  async function run(rpc: Rpc): Promise<readonly ChainLog[]> {
    const found = await rpc.ask('eth_getLogs', [filter]).catch(askForLess)
    const logs = logsOf(found, contract)
    if (logs.some((log) => log.blockNumber < from || log.blockNumber > to)) {
      throw new RpcFailure('fault', 'log outside of the range')
    }
    return logs
  }
  return { run, words: wordsOfLogs }
}

function quantity(value: bigint): Hex {
  return `0x${value.toString(16)}`
}

function askForLess(error: unknown): never {
  if (error instanceof RpcFailure && error.kind === 'too-large') throw new RpcFailure('too-wide', error.message)
  throw error
}

function wordsOfLogs(logs: readonly ChainLog[]): string {
  return logs.map((log) => [log.blockHash, log.logIndex, log.transactionHash, log.data, ...log.topics].join()).join(';')
}

export function readProof(contract: Hex, slots: readonly Hex[], block: Block): Read<EthProof> {
  async function run(rpc: Rpc, provider: Provider): Promise<EthProof> {
    const [proof] = await provider.pin.ask(rpc, 'eth_getProof', block, [(at) => [contract, slots, at]])
    if (!isProof(proof) || proof.storageProof.length !== slots.length) {
      throw new RpcFailure('fault', 'result of eth_getProof is not a proof of these slots')
    }
    return proof
  }
  return { run, words: wordsOfProof }
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

/** Trie nodes are left out: clients may list them differently, and whoever needs them checks them. */
function wordsOfProof(proof: EthProof): string {
  const values = proof.storageProof.map((slot) => BigInt(slot.value).toString(16))
  return [proof.codeHash, proof.storageHash, ...values].join()
}

/** The read whose answer must also satisfy the caller: `check` says what is wrong with it, or `null`. */
export function checked<T>(
  read: Read<T>,
  kind: FailureKind,
  check: ((answer: T) => string | null) | undefined,
): Read<T> {
  if (check === undefined) return read
  return {
    words: read.words,
    async run(rpc, provider) {
      const answer = await read.run(rpc, provider)
      const wrong = check(answer)
      if (wrong !== null) throw new RpcFailure(kind, wrong)
      return answer
    },
  }
}
