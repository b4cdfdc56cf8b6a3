/**
 * The registry's events about a token (spec §2.5, §3; contracts/src/IAssetRegistry.sol), decoded from their logs by position
 * (ABI specification, «Events»). The public deployment has the first four and ERC-721's Transfer.
 */
import { assetFlags, type Hex } from '@touchstone/verdict'
import { toEventSelector } from 'viem/utils'
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

/** The events by their codes. */
export const eventNames: ReadonlyMap<number, keyof typeof eventKinds> = new Map(
  Object.entries(eventKinds).map(([name, kind]) => [kind, name as keyof typeof eventKinds]),
)

export type EventCode = (typeof eventKinds)[keyof typeof eventKinds]

/** The reports among an asset's flags (spec §3), the gravest first. */
export const reportNames = ['STOLEN_CONFIRMED', 'STOLEN', 'RECALL', 'INVESTIGATION', 'LOST'] as const

/** Returns the reports of these flags, the gravest first. */
export function reportsOf(flags: number): (typeof reportNames)[number][] {
  return reportNames.filter((name) => (flags & assetFlags[name]) !== 0)
}

/** Names the bits of an asset's flags (spec §3). */
export function flagNamesOf(flags: number): string[] {
  return Object.entries(assetFlags).flatMap(([name, bit]) => ((flags & bit) === 0 ? [] : [name]))
}

/**
 * One event. `tokenId` is decimal. A member that the event does not have is `null`. `data` is its metadata, tag, reason or
 * message hash, zero hashes as they are; `timestamp` is its block's and `expiry` the offer's, both in unix seconds.
 */
export type AssetEvent = Readonly<{
  kind: EventCode
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

/** Decodes the word of a member; the bits that its type does not use must be zero. */
const decoders = {
  tokenId: decimalOf,
  from: addressIn,
  to: addressIn,
  actor: addressIn,
  fromState: stateIn,
  toState: stateIn,
  flags: (word: Hex) => parseInt(lowDigits(word, 2), 16),
  nonce: (word: Hex) => parseInt(lowDigits(word, 8), 16),
  expiry: (word: Hex) => BigInt(`0x${lowDigits(word, 16)}`),
  data: (word: Hex) => word,
} as const satisfies { readonly [Name in keyof AssetEvent]?: (word: Hex) => AssetEvent[Name] }

type Shape = Readonly<{ kind: EventCode; topics: readonly Member[]; words: readonly Member[] }>
type Member = keyof typeof decoders

/** Lists the types of an event's parameters, its members in the topics after the first, and those in the data. */
const shapes: Readonly<Record<keyof typeof eventKinds, readonly [string, readonly Member[], readonly Member[]]>> = {
  AssetMinted: ['uint256,address,bytes32', ['tokenId', 'to'], ['data']],
  TagBound: ['uint256,bytes32', ['tokenId', 'data'], []],
  StateChanged: ['uint256,uint8,uint8,address', ['tokenId'], ['fromState', 'toState', 'actor']],
  AssetResold: ['uint256,address,address', ['tokenId', 'from', 'to'], []],
  FlagsChanged: ['uint256,uint8,address,bytes32', ['tokenId'], ['flags', 'actor', 'data']],
  MetadataHashSet: ['uint256,bytes32', ['tokenId'], ['data']],
  TransferInitiated: [
    'uint256,address,address,uint64,uint32,bytes32',
    ['tokenId', 'from', 'to'],
    ['expiry', 'nonce', 'data'],
  ],
  TransferCancelled: ['uint256,uint32,address', ['tokenId'], ['nonce', 'actor']],
  Transfer: ['address,address,uint256', ['from', 'to', 'tokenId'], []],
}

/** By the first topic: keccak256 of the event's signature. */
const shapeByTopic = new Map(
  Object.entries(shapes).map(([name, [types, topics, words]]): [Hex, Shape] => [
    toEventSelector(`${name}(${types})`),
    { kind: eventKinds[name as keyof typeof eventKinds], topics, words },
  ]),
)

/** The first topics of the events, for log filters. */
export const eventTopics: readonly Hex[] = [...shapeByTopic.keys()]

function parseEvent(log: ChainLog, shape: Shape, timestamp: bigint): AssetEvent {
  const { topics, data, blockNumber, logIndex, blockHash, transactionHash } = log
  if (topics.length !== 1 + shape.topics.length || data.length !== 2 + 64 * shape.words.length)
    reject('of another length')
  // All members in one literal, whatever the event, so that the engine sees one shape of object.
  const event: AssetEvent = {
    kind: shape.kind,
    tokenId: '',
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
  const members: Partial<Record<Member, unknown>> = event
  for (const [index, name] of shape.topics.entries()) members[name] = decoders[name](topics[index + 1] ?? '0x')
  for (const [index, name] of shape.words.entries())
    members[name] = decoders[name](`0x${data.slice(2 + 64 * index, 66 + 64 * index)}`)
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

function addressIn(word: Hex): Hex {
  if (!word.startsWith(beforeAddress, 2)) reject('with an impossible address')
  return `0x${word.slice(26)}`
}

function stateIn(word: Hex): number {
  const state = parseInt(lowDigits(word, 2), 16)
  return state <= 6 ? state : reject('with an unknown state')
}

/** Returns the last digits of a word; all digits before them must be zero. */
function lowDigits(word: Hex, digits: keyof typeof zerosBefore): string {
  if (!word.startsWith(zerosBefore[digits], 2)) reject('with a number that is too large')
  return word.slice(-digits)
}

function reject(how: string): never {
  throw chainUnavailable(`a log of a known event ${how}`)
}
