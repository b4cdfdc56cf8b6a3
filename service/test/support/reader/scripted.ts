/**
 * A reader for tests of interleavings that no real chain can be forced into. A table stands in for the chain. Every question waits until
 * the test lets it be looked up, and then until the test lets the answer out.
 */
import { encodeWord } from '../../../src/lib/words.ts'
import assert from 'node:assert/strict'
import type { Hex } from '@touchstone/verdict'
import { ServiceError } from '../../../src/lib/errors.ts'
import { silentLog } from './anvil.ts'
import {
  type AssetReader,
  type AssetReading,
  createAssetReader,
  type AssetReaderOptions,
} from '../../../src/chain/assets/reader.ts'
import { selectors } from '../../../src/chain/assets/calls/abi.ts'
import { nonCanonical } from '../../../src/chain/rpc/answer.ts'
import { type ChainSource } from '../../../src/chain/rpc/source.ts'
import type { Block } from '../../../src/chain/rpc/block.ts'
import type { ChainLog } from '../../../src/domain/registry-event.ts'

/** The records of a block by token, as storage words; no entry is zero. */
type Words = ReadonlyMap<bigint, bigint>
type ScriptedBlock = Readonly<{ block: Block; words: Words; logs: readonly ChainLog[] }>

export type ScriptedChain = Readonly<{
  source: ChainSource
  tip: () => Block
  /** A block in which each of these tokens changes; `hidden` ones without a log, `topic` instead of the usual event. */
  mine: (tokens: readonly bigint[], how?: Readonly<{ hidden?: readonly bigint[]; topic?: Hex }>) => Block
  /** Takes the last blocks away (not the first one); what comes next has other hashes. */
  rewind: (depth: number) => void
  /** The node gives up all blocks that are not canonical now. */
  forget: () => void
  wordAt: (tokenId: bigint, hash: Hex) => bigint
  /** Questions and answers that wait. */
  waiting: () => number
  /** Lets one of them go on; with `fail` it fails instead. */
  release: (index: number, fail?: boolean) => void
  /** Lets all go on until nothing waits any more. */
  drain: () => Promise<void>
  /** A provider no longer takes block hashes. */
  losePin: () => void
  asked: Record<'head' | 'block' | 'call' | 'logs' | 'proof', number>
}>

const scriptedContract: Hex = '0x00000000000000000000000000000000000000aa'
/** keccak256 of the signatures. */
export const topics = {
  flagsChanged: '0x8547a4bb417c8ebff6c4216f4a8a672501ce36b7c0f47c34876d93b62e013d0c',
  upgraded: '0xbc7cd75a20ee27fd9adebab32041f755214dbc6bffa90cc0225b39da2e5c2d3b',
  unheardOf: '0x00000000000000000000000000000000000000000000000000000000000000ff',
} as const

export function createScriptedChain(): ScriptedChain {
  const all = new Map<Hex, ScriptedBlock>()
  const forgotten = new Set<Hex>()
  const asked = { head: 0, block: 0, call: 0, logs: 0, proof: 0 }
  let chain: ScriptedBlock[] = []
  let hashes = 0
  let lostPins = 0
  let changes = 0
  let gates: { open: () => void; fail: (error: unknown) => void }[] = []
  mine([])

  function mine(tokens: readonly bigint[], how: Readonly<{ hidden?: readonly bigint[]; topic?: Hex }> = {}): Block {
    const parent = chain.at(-1)
    const number = parent === undefined ? 100n : parent.block.number + 1n
    const hash: Hex = `0x${encodeWord(BigInt(++hashes))}`
    const words = new Map(parent?.words)
    for (const token of [...tokens, ...(how.hidden ?? [])]) words.set(token, (1n << 224n) | (BigInt(++changes) << 160n))
    const block: Block = {
      number,
      hash,
      parentHash: parent?.block.hash ?? `0x${encodeWord(0n)}`,
      timestamp: number,
      header: {},
    }
    const logs = tokens.map((token, logIndex) => logOf(block, how.topic ?? topics.flagsChanged, token, logIndex))
    const scripted = { block, words, logs }
    chain.push(scripted)
    all.set(hash, scripted)
    return block
  }

  function isCanonical(hash: Hex): boolean {
    return chain.some(({ block }) => block.hash === hash)
  }

  function served(hash: Hex): ScriptedBlock | undefined {
    return forgotten.has(hash) ? undefined : all.get(hash)
  }

  function gate(): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    gates.push({ open: resolve, fail: reject })
    return promise
  }

  async function through<T>(kind: keyof typeof asked, look: () => T): Promise<T> {
    asked[kind]++
    await gate()
    const answer = look()
    await gate()
    return answer
  }

  function release(index: number, fail = false): void {
    const [chosen] = gates.splice(index % gates.length, 1)
    if (fail) chosen?.fail(new ServiceError('CHAIN_UNAVAILABLE', 'scripted'))
    else chosen?.open()
  }

  /** getAssetsWithMetadata(uint256[]), the metadata hash being the record word itself. */
  function answerCall(data: Hex, block: Block): Hex | typeof nonCanonical {
    if (!data.startsWith(selectors.getAssetsWithMetadata)) throw new Error('another call than scripted')
    if (!isCanonical(block.hash)) return nonCanonical
    const ids = (data.slice(10 + 128).match(/.{64}/g) ?? []).map((word) => BigInt(`0x${word}`))
    const words = ids.map((id) => encodeWord(wordAt(id, block.hash))).join('')
    const length = encodeWord(BigInt(ids.length))
    return `0x${encodeWord(64n)}${encodeWord(BigInt(96 + 32 * ids.length))}${length}${words}${length}${words}`
  }

  function wordAt(tokenId: bigint, hash: Hex): bigint {
    const scripted = all.get(hash)
    if (scripted === undefined) throw new Error('a block that never was')
    return scripted.words.get(tokenId) ?? 0n
  }

  const unused = () => Promise.reject(new Error('not scripted'))

  return {
    asked,
    mine,
    wordAt,
    release,
    tip: () => chain.at(-1)?.block as Block,
    rewind: (depth) => void (chain = chain.slice(0, Math.max(1, chain.length - depth))),
    forget() {
      for (const hash of all.keys()) if (!isCanonical(hash)) forgotten.add(hash)
    },
    waiting: () => gates.length,
    losePin: () => void lostPins++,
    async drain() {
      for (let quiet = 0; quiet < 3; quiet = gates.length === 0 ? quiet + 1 : 0) {
        while (gates.length > 0) release(0)
        await new Promise((resolve) => setImmediate(resolve))
      }
      gates = []
    },
    source: {
      head: () => through('head', () => chain.at(-1)?.block as Block),
      // A node may still know a block that is not canonical any more.
      block: (hash) => through('block', () => served(hash)?.block ?? nonCanonical),
      call: (_to, data, block) => through('call', () => answerCall(data, block)),
      calls: unused,
      logs: (block) => through('logs', () => served(block.hash)?.logs ?? nonCanonical),
      logsBetween: unused,
      proof: (_slots, block) =>
        through('proof', () => {
          const words = all.get(block.hash)?.words ?? new Map<bigint, bigint>()
          const storageHash: Hex = `0x${encodeWord([...words.values()].reduce((sum, word) => sum + word, 0n))}`
          return { accountProof: [], storageProof: [], storageHash, codeHash: `0x${encodeWord(1n)}` }
        }),
      lostPins: () => lostPins,
      close: () => Promise.resolve(),
    },
  }
}

function logOf(block: Block, topic: Hex, token: bigint, logIndex: number): ChainLog {
  const place = { blockNumber: block.number, blockHash: block.hash, logIndex, transactionHash: block.hash }
  return { address: scriptedContract, topics: [topic, `0x${encodeWord(token)}`], data: '0x', ...place }
}

/** Until everything that is possible now has happened. */
export const turn = () => new Promise((resolve) => setImmediate(resolve))

/** A reader over the chain, with a clock that the test moves. */
export function readerOf(chain: ScriptedChain, options: Partial<AssetReaderOptions> = {}) {
  const clock = { ms: 0 }
  const fixed = { source: chain.source, contract: scriptedContract, interface: 'registry', trust: 'rpc' } as const
  const reader = createAssetReader({
    ...fixed,
    cache: 'events',
    cacheEntries: 100,
    log: silentLog,
    now: () => clock.ms,
    retryPausesMs: [0],
    ...options,
  })
  return { reader, clock }
}

/** Reads with everything answered at once. */
export async function readNow(chain: ScriptedChain, reader: AssetReader, tokenId: bigint): Promise<AssetReading> {
  const reading = reader.read(tokenId)
  await turn()
  await chain.drain()
  return reading
}

/** A chain with these tokens and a reader with its first head and audit. The next head is due. */
export async function warm(tokens: readonly bigint[] = [1n]) {
  const chain = createScriptedChain()
  chain.mine(tokens)
  const made = readerOf(chain)
  await readNow(chain, made.reader, 1n)
  assert.equal(made.reader.stats().mode, 'events')
  made.clock.ms += 2000
  /** Asks for the head when it is due in the background, and answers. */
  async function renew(): Promise<void> {
    made.clock.ms += 300
    made.reader.head()
    await turn()
    await chain.drain()
  }
  return { ...made, chain, renew }
}
