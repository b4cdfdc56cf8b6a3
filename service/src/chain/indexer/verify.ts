/**
 * Compares the index with the chain (spec §2.5). It compares tokens with the state of the chain at the block of the index, the stored
 * events with its logs, and all other rows with these events. It finds the traces of a dishonest provider, a lost event or a changed row.
 */
import type { AssetRecord, Hex } from '@touchstone/verdict'
import { toFunctionSelector } from 'viem/utils'
import type { BlockId } from '../../domain/chain.ts'
import {
  clampSeconds,
  type IndexedToken,
  type IndexRepair,
  type TokenPage,
  type TokenPages,
} from '../../domain/chain-index.ts'
import { chainUnavailable } from '../../lib/errors.ts'
import { decodeWord, encodeCall } from '../assets/calls/abi.ts'
import { createEncodingDetector, isOfRegistry, type ReadInterface } from '../assets/calls/encodings.ts'
import type { Block } from '../rpc/block.ts'
import { type NonCanonical, nonCanonical } from '../rpc/answer.ts'
import { reorganised } from './realtime.ts'
import type { RetryingSource } from './retrying-source.ts'
import { createBackfill } from './backfill.ts'
import { type AssetEvent, eventKinds } from '../../domain/registry-event.ts'

/** A token with its fields that differ from the chain, without their values: among these would be addresses. */
type Difference = Readonly<{ tokenId: bigint; fields: readonly string[] }>

/**
 * `supply` is the chain's number of tokens where it has one; it must equal `products`. `at` is the last compared block; `repair` is
 * `null` where nothing can be repaired, or the logs were not compared.
 */
export type Verified = Readonly<{
  at: bigint
  compared: number
  differences: readonly Difference[]
  products: bigint
  supply: bigint | null
  repair: IndexRepair | null
}>

export type VerifyIndexOptions = Readonly<{
  source: RetryingSource
  contract: Hex
  interface: ReadInterface
  pages: TokenPages
  /** The block of the contract's first log, or any before. */
  startBlock: bigint
  /** About how many tokens to compare, without the logs; all when left out. */
  sample?: number
  onProgress?: (compared: number) => void
  /** Ends the comparison before its next page or range: its reason is thrown. */
  signal?: AbortSignal
}>

const tokensAtOnce = 200
const callsAtOnce = 100
const eventsAtOnce = 8_000
/** Events of one repair; the rest is found by the next comparison. */
const mostEvents = 20_000
const attempts = 5
const mostDifferences = 1_000
const readTimeoutMs = 10_000

const getTagByToken = toFunctionSelector('getTagByToken(uint256)')
const pendingTransfer = toFunctionSelector('pendingTransfer(uint256)')
const totalSupply = toFunctionSelector('totalSupply()')

/** Returns `null` where there is no index. Throws CHAIN_UNAVAILABLE, or the reason of the signal. */
export async function verifyIndex(options: VerifyIndexOptions): Promise<Verified | null> {
  const { source, contract, pages, sample, onProgress, signal } = options
  const isRegistry = options.interface === 'registry'
  const detectEncoding = createEncodingDetector(options)
  const differences = new Map<bigint, Set<string>>()
  /** Tokens that are not as on the chain. */
  const wrong = new Set<bigint>()
  /** Tokens whose rows are not as their events say, or are missing. */
  const strayed = new Set<string>()
  let compared = 0

  const first = await compare(() => (sample === undefined ? pages.after(-1n, tokensAtOnce) : pages.sample(sample)))
  if (first === null) return null
  let last = first
  while (sample === undefined && last.page.tokens.length > 0 && differences.size < mostDifferences) {
    const after: bigint = last.page.tokens.at(-1)?.tokenId ?? 0n
    const next = await compare(() => pages.after(after, tokensAtOnce))
    if (next === null) break
    last = next
  }
  const repair = sample === undefined ? await compareHistory(first.page.at, first.supply) : null
  const { products, at } = last.page
  const found = [...differences].map(([tokenId, fields]) => ({ tokenId, fields: [...fields] }))
  return { at: at.number, compared, differences: found, products, supply: last.supply, repair }

  function note(tokenId: bigint, fields: readonly string[]): void {
    if (fields.length === 0) return
    const known = differences.get(tokenId) ?? new Set()
    for (const field of fields) known.add(field)
    differences.set(tokenId, known)
  }

  /**
   * Compares all stored events with the logs of the chain. A provider may hide logs, so a stored event that they lack is forged only
   * where its token is not as on the chain, and the logs account for every token.
   */
  async function compareHistory(at: BlockId, supply: bigint | null): Promise<IndexRepair | null> {
    const lost: AssetEvent[] = []
    const unseen: AssetEvent[] = []
    let minted = 0n
    let last: BlockId | undefined
    signal?.throwIfAborted()
    const { ranges } = createBackfill({ source, wantedLogs: eventsAtOnce, ...(signal && { signal }) })
    if (at.number >= options.startBlock)
      for await (const { before, events, to } of ranges(options.startBlock, at.number)) {
        signal?.throwIfAborted()
        if (last !== undefined && before.hash !== last.hash) throw chainUnavailable(reorganised)
        last = to
        const stored = await pages.events(before.number + 1n, to.number)
        lost.push(...eventsWithout(events, stored))
        unseen.push(...eventsWithout(stored, events))
        const mints = events.flatMap(({ kind, tokenId }) => (kind === eventKinds.AssetMinted ? [tokenId] : []))
        minted += BigInt(mints.length)
        for (const id of await pages.missing(mints)) {
          note(BigInt(id), ['token'])
          strayed.add(id)
        }
        if (lost.length + unseen.length > mostEvents) break
      }
    const ends = [last ?? at, at]
    const blocks = await source.blocksAt(ends.map(({ number }) => number))
    if (ends.some(({ hash }, index) => blocks[index]?.hash !== hash)) throw chainUnavailable(reorganised)
    const places = new Set(lost.map(placeOf))
    const surplus = unseen.filter((event) => !places.has(placeOf(event)))
    const isForged = ({ tokenId }: AssetEvent) => minted === supply && wrong.has(BigInt(tokenId))
    const forged = surplus.filter(isForged)
    const doubtful = new Set(surplus.filter((event) => !isForged(event)).map(({ tokenId }) => tokenId))
    const certain = lost.filter(({ tokenId }) => !doubtful.has(tokenId))
    const changed = new Set([...certain, ...forged].map(({ tokenId }) => tokenId))
    for (const id of strayed) if (!doubtful.has(id)) changed.add(id)
    for (const { tokenId } of [...lost, ...unseen]) note(BigInt(tokenId), ['history'])
    return changed.size === 0 ? null : { at, lost: certain, forged, tokens: [...changed] }
  }

  /** Compares one page, which is read again while its block is not on the chain. */
  async function compare(
    read: () => Promise<TokenPage | null>,
  ): Promise<{ page: TokenPage; supply: bigint | null } | null> {
    for (let attempt = 1; attempt <= attempts; attempt++) {
      signal?.throwIfAborted()
      const page = await read()
      if (page === null || page.at.number < 0n) return null
      const block = await source.block(page.at.hash)
      const found = block === nonCanonical ? block : await differencesAt(page, block)
      if (found === nonCanonical) continue
      for (const { tokenId, fields } of found.differences) {
        wrong.add(tokenId)
        note(tokenId, fields)
      }
      for (const { tokenId, strayed: fields } of page.tokens) {
        note(tokenId, fields)
        if (fields.length > 0 && !fields.includes('history')) strayed.add(tokenId.toString())
      }
      compared += page.tokens.length
      onProgress?.(compared)
      return { page, supply: found.supply }
    }
    throw chainUnavailable('the block of the index is not on the chain')
  }

  async function differencesAt({ tokens }: TokenPage, block: Block) {
    const supply = isRegistry ? await source.call(contract, totalSupply, block) : null
    if (supply === nonCanonical) return supply
    const found: Difference[] = []
    const encoding = await detectEncoding(block, performance.now() + readTimeoutMs)
    if (encoding === nonCanonical) return encoding
    const batchSize = Math.min(encoding.maxBatch, callsAtOnce)
    for (let from = 0; from < tokens.length; from += batchSize) {
      const batch = tokens.slice(from, from + batchSize)
      const ids = batch.map(({ tokenId }) => tokenId)
      const records = await encoding.read(ids, block, performance.now() + readTimeoutMs)
      if (records === nonCanonical) return records
      if ('suspects' in records) throw chainUnavailable('the contract gives impossible answers')
      const tags = isRegistry ? await readTags(ids, block) : null
      if (tags === nonCanonical) return tags
      batch.forEach((token, index) => {
        const read = records[index]
        const emitsChanges = isOfRegistry(encoding)
        const fields = read === undefined ? ['record'] : recordFields(token, read.record, emitsChanges)
        if (read !== undefined && emitsChanges && read.metadataHash !== token.metadataHash) fields.push('metadataHash')
        const tag = tags?.[index]
        if (tag !== undefined) fields.push(...registryFields(token, tag, block.timestamp))
        if (fields.length > 0) found.push({ tokenId: token.tokenId, fields })
      })
    }
    return { differences: found, supply: supply && decodeWord(supply) }
  }

  async function readTags(ids: readonly bigint[], block: Block): Promise<readonly TagAndOffer[] | NonCanonical> {
    const datas = ids.flatMap((id) => [encodeCall(getTagByToken, id), encodeCall(pendingTransfer, id)])
    const answers = await source.calls(contract, datas, block)
    if (answers === nonCanonical) return answers
    return ids.map((_, index) => ({ tag: answers[2 * index] ?? '0x', pending: answers[2 * index + 1] ?? '0x' }))
  }
}

/** Returned bytes of `getTagByToken` and `pendingTransfer`. */
type TagAndOffer = Readonly<{ tag: Hex; pending: Hex }>

/** Flags are compared where each change of them emits an event. */
function recordFields(token: IndexedToken, record: AssetRecord, emitsChanges: boolean): string[] {
  const fields: string[] = []
  if (record.owner !== token.owner) fields.push('owner')
  if (record.state !== token.state) fields.push('state')
  if (emitsChanges && record.flags !== token.flags) fields.push('flags')
  return fields
}

/** The chain may still have an offer that expired, which the index has not. */
function registryFields(token: IndexedToken, { tag, pending }: TagAndOffer, time: bigint): string[] {
  const fields: string[] = []
  if (decodeWord(tag) !== BigInt(token.tagHash ?? 0)) fields.push('tagHash')
  const [to = 0n, expiry = 0n, nonce = 0n] = [0, 1, 2].map(
    (index) => decodeWord(`0x${pending.slice(2 + 64 * index, 66 + 64 * index)}`) ?? -1n,
  )
  const offer = token.pending
  const differs =
    offer === null
      ? to !== 0n && expiry > time + 3_600n
      : BigInt(offer.to) !== to || offer.expiry !== clampSeconds(expiry) || offer.nonce !== nonce
  return differs ? [...fields, 'pendingTransfer'] : fields
}

/** Returns the events that another list lacks. */
function eventsWithout(events: readonly AssetEvent[], others: readonly AssetEvent[]): AssetEvent[] {
  const known = new Set(others.map(textOf))
  return events.filter((event) => !known.has(textOf(event)))
}

function placeOf({ blockNumber, logIndex }: AssetEvent): string {
  return `${blockNumber} ${logIndex}`
}

function textOf(event: AssetEvent): string {
  const { blockNumber, logIndex, blockHash, transactionHash, tokenId, timestamp, ...rest } = event
  const { kind, fromState, toState, flags, from, to, actor, nonce, expiry, data } = rest
  const place = [blockNumber, logIndex, blockHash, transactionHash, clampSeconds(timestamp), tokenId]
  return [...place, kind, fromState, toState, flags, from, to, actor, nonce, expiry, data].join(' ')
}
