/**
 * The registry's events about a token (spec §2.5, §3; contracts/src/IAssetRegistry.sol), decoded from their logs by position
 * (ABI specification, «Events»). The public deployment has the first four and ERC-721's Transfer.
 */
import { keccak_256 } from '@noble/hashes/sha3.js'
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js'
import type { Hex } from '@touchstone/verdict'
import { chainUnavailable } from '../lib/errors.ts'

/** One log of the registry; `topics[0]` is the event. All of the contract's events carry the token id in `topics`. */
export type ChainLog = Readonly<{
  address: Hex
  topics: readonly Hex[]
  data: Hex
  blockNumber: bigint
  blockHash: Hex
  logIndex: number
  transactionHash: Hex
  /** Unix seconds; not every provider sends it. */
  blockTimestamp?: bigint
}>

/** The codes of `kind` in the table `history`. These numbers are stored and never change. */
export const eventKinds = {
  AssetMinted: 1,
  TagBound: 2,
  StateChanged: 3,
  AssetResold: 4,
  FlagsChanged: 5,
  MetadataHashSet: 6,
  TransferInitiated: 7,
  TransferCancelled: 8,
  Transfer: 9,
} as const

/**
 * One event. `tokenId` is decimal. A member that the event does not have is `null`. `data` is its metadata, tag, reason or
 * message hash, zero hashes as they are; `timestamp` is its block's and `expiry` the offer's, both in unix seconds.
 */
export type AssetEvent = Readonly<{
  kind: number
  tokenId: string
  fromState: number | null
  toState: number | null
  flags: number | null
  from: Hex | null
  to: Hex | null
  actor: Hex | null
  nonce: number | null
  expiry: bigint | null
  data: Hex | null
  blockNumber: bigint
  logIndex: number
  blockHash: Hex
  transactionHash: Hex
  timestamp: bigint
}>

/**
 * Parses the events among logs, in their order; other logs are left out. Throws CHAIN_UNAVAILABLE for a log of one of these
 * events with another shape, because an index without it would be wrong. `timeOf` returns the time of a log's block.
 */
export function parseEvents(logs: readonly ChainLog[], timeOf: (log: ChainLog) => bigint): readonly AssetEvent[] {
  const events: AssetEvent[] = []
  for (const log of logs) {
    const shape = shapeByTopic.get(log.topics[0] ?? '0x')
    if (shape !== undefined) events.push(parseEvent(log, shape, timeOf(log)))
  }
  return events
}

type Event = { -readonly [Name in keyof AssetEvent]: AssetEvent[Name] }

/** `topics` and `words` count the topics and words of data, `token` is the topic with the token id. */
type Layout = Readonly<{ kind: number; topics: number; words: number; token: 1 | 3 }>
/** `fill` decodes the rest of the event. */
type Shape = Readonly<{ layout: Layout; fill: (event: Event, topics: readonly Hex[], data: Hex) => void }>

const shapes: Readonly<Record<string, Shape>> = {
  'AssetMinted(uint256,address,bytes32)': {
    layout: { kind: eventKinds.AssetMinted, topics: 3, words: 1, token: 1 },
    fill(event, topics, data) {
      event.to = addressIn(topics[2])
      event.data = data
    },
  },
  'TagBound(uint256,bytes32)': {
    layout: { kind: eventKinds.TagBound, topics: 3, words: 0, token: 1 },
    fill(event, topics) {
      event.data = topics[2] ?? null
    },
  },
  'StateChanged(uint256,uint8,uint8,address)': {
    layout: { kind: eventKinds.StateChanged, topics: 2, words: 3, token: 1 },
    fill(event, _topics, data) {
      event.fromState = stateIn(data, 0)
      event.toState = stateIn(data, 1)
      event.actor = addressIn(wordIn(data, 2))
    },
  },
  'AssetResold(uint256,address,address)': {
    layout: { kind: eventKinds.AssetResold, topics: 4, words: 0, token: 1 },
    fill(event, topics) {
      event.from = addressIn(topics[2])
      event.to = addressIn(topics[3])
    },
  },
  'FlagsChanged(uint256,uint8,address,bytes32)': {
    layout: { kind: eventKinds.FlagsChanged, topics: 2, words: 3, token: 1 },
    fill(event, _topics, data) {
      event.flags = numberIn(data, 0, 2)
      event.actor = addressIn(wordIn(data, 1))
      event.data = wordIn(data, 2)
    },
  },
  'MetadataHashSet(uint256,bytes32)': {
    layout: { kind: eventKinds.MetadataHashSet, topics: 2, words: 1, token: 1 },
    fill(event, _topics, data) {
      event.data = data
    },
  },
  'TransferInitiated(uint256,address,address,uint64,uint32,bytes32)': {
    layout: { kind: eventKinds.TransferInitiated, topics: 4, words: 3, token: 1 },
    fill(event, topics, data) {
      event.from = addressIn(topics[2])
      event.to = addressIn(topics[3])
      event.expiry = BigInt(`0x${digitsIn(data, 0, 16)}`)
      event.nonce = numberIn(data, 1, 8)
      event.data = wordIn(data, 2)
    },
  },
  'TransferCancelled(uint256,uint32,address)': {
    layout: { kind: eventKinds.TransferCancelled, topics: 2, words: 2, token: 1 },
    fill(event, _topics, data) {
      event.nonce = numberIn(data, 0, 8)
      event.actor = addressIn(wordIn(data, 1))
    },
  },
  'Transfer(address,address,uint256)': {
    layout: { kind: eventKinds.Transfer, topics: 4, words: 0, token: 3 },
    fill(event, topics) {
      event.from = addressIn(topics[1])
      event.to = addressIn(topics[2])
    },
  },
}

/** By the first topic: keccak256 of the event's signature. */
const shapeByTopic = new Map(Object.entries(shapes).map(([signature, shape]) => [topicOf(signature), shape]))

/** The first topics of the events, for log filters. */
export const eventTopics: readonly Hex[] = [...shapeByTopic.keys()]

function parseEvent(log: ChainLog, { layout, fill }: Shape, timestamp: bigint): AssetEvent {
  const { topics, data, blockNumber, logIndex, blockHash, transactionHash } = log
  if (topics.length !== layout.topics || data.length !== 2 + 64 * layout.words) reject('of another length')
  // All members in one literal, whatever the event, so that the engine sees one shape of object.
  const event: Event = {
    kind: layout.kind,
    tokenId: decimalOf(topics[layout.token] ?? reject('without a token')),
    fromState: null,
    toState: null,
    flags: null,
    from: null,
    to: null,
    actor: null,
    nonce: null,
    expiry: null,
    data: null,
    blockNumber,
    logIndex,
    blockHash,
    transactionHash,
    timestamp,
  }
  fill(event, topics, data)
  return event
}

const zerosOf = (digits: number) => '0'.repeat(64 - digits)
const beforeSafe = zerosOf(13)
const beforeAddress = zerosOf(40)
/** By the digits that are left. */
const zerosBefore = { 2: zerosOf(2), 8: zerosOf(8), 16: zerosOf(16) }

/** Small ids are exact as a number, which is faster. */
function decimalOf(word: Hex): string {
  return word.startsWith(beforeSafe, 2) ? String(parseInt(word.slice(53), 16)) : BigInt(word).toString()
}

function addressIn(word: Hex | undefined): Hex {
  if (word === undefined || !word.startsWith(beforeAddress, 2)) reject('with an impossible address')
  return `0x${word.slice(26)}`
}

function wordIn(data: Hex, index: number): Hex {
  return `0x${data.slice(2 + 64 * index, 66 + 64 * index)}`
}

function stateIn(data: Hex, index: number): number {
  const state = numberIn(data, index, 2)
  return state <= 6 ? state : reject('with an unknown state')
}

function numberIn(data: Hex, index: number, digits: 2 | 8): number {
  return parseInt(digitsIn(data, index, digits), 16)
}

/** Returns the last digits of a word; all digits before them must be zero. */
function digitsIn(data: Hex, index: number, digits: 2 | 8 | 16): string {
  const end = 66 + 64 * index
  if (!data.startsWith(zerosBefore[digits], end - 64)) reject('with a number that is too large')
  return data.slice(end - digits, end)
}

function topicOf(signature: string): Hex {
  return `0x${bytesToHex(keccak_256(utf8ToBytes(signature)))}`
}

function reject(how: string): never {
  throw chainUnavailable(`a log of a known event ${how}`)
}
