/**
 * Compares the index with the chain (spec §2.5): both are read at the block of the index, batch by batch. It finds the traces of a
 * dishonest provider, a lost event or a changed row.
 */
import type { AssetRecord, Hex } from '@touchstone/verdict'
import { toFunctionSelector } from 'viem'
import { clampSeconds, type IndexedToken, type TokenPage, type TokenPages } from '../../domain/chain-index.ts'
import { chainUnavailable } from '../../lib/errors.ts'
import { decodeWord, encodeCall } from '../assets/calls/abi.ts'
import { createEncodingDetector, type ReadInterface } from '../assets/calls/encodings.ts'
import type { Block } from '../rpc/block.ts'
import { type NonCanonical, nonCanonical, type RpcChainSource } from '../rpc/source.ts'

/** A token with its fields that differ from the chain, without their values: among these would be addresses. */
export type Difference = Readonly<{ tokenId: bigint; fields: readonly string[] }>

/** `supply` is the chain's number of tokens where it has one; it must equal `products`. `at` is the last compared block. */
export type Verified = Readonly<{
  at: bigint
  compared: number
  differences: readonly Difference[]
  products: bigint
  supply: bigint | null
}>

export type VerifyIndexOptions = Readonly<{
  source: RpcChainSource
  contract: Hex
  interface: ReadInterface
  pages: TokenPages
  /** About how many tokens to compare; all when left out. */
  sample?: number
  onProgress?: (compared: number) => void
}>

const tokensAtOnce = 200
const callsAtOnce = 100
const attempts = 5
const mostDifferences = 1_000
const readTimeoutMs = 10_000

const getTagByToken = toFunctionSelector('getTagByToken(uint256)')
const pendingTransfer = toFunctionSelector('pendingTransfer(uint256)')
const totalSupply = toFunctionSelector('totalSupply()')

/** Returns `null` where there is no index. Throws CHAIN_UNAVAILABLE. */
export async function verifyIndex(options: VerifyIndexOptions): Promise<Verified | null> {
  const { source, contract, pages, sample, onProgress } = options
  const isRegistry = options.interface === 'registry'
  const detectEncoding = createEncodingDetector(options)
  const differences: Difference[] = []
  let compared = 0

  let last = await compare(() => (sample === undefined ? pages.after(-1n, tokensAtOnce) : pages.sample(sample)))
  if (last === null) return null
  while (sample === undefined && last.page.tokens.length > 0 && differences.length < mostDifferences) {
    const after: bigint = last.page.tokens.at(-1)?.tokenId ?? 0n
    const next = await compare(() => pages.after(after, tokensAtOnce))
    if (next === null) break
    last = next
  }
  return { at: last.page.at.number, compared, differences, products: last.page.products, supply: last.supply }

  /** Compares one page, which is read again while its block is not on the chain. */
  async function compare(
    read: () => Promise<TokenPage | null>,
  ): Promise<{ page: TokenPage; supply: bigint | null } | null> {
    for (let attempt = 1; attempt <= attempts; attempt++) {
      const page = await read()
      if (page === null || page.at.number < 0n) return null
      const block = await source.block(page.at.hash)
      const found = block === nonCanonical ? block : await differencesAt(page, block)
      if (found === nonCanonical) continue
      differences.push(...found.differences)
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
        const fields = read === undefined ? ['record'] : recordFields(token, read.record, isRegistry)
        if (read !== undefined && encoding.name !== 'proof' && isRegistry && read.metadataHash !== token.metadataHash)
          fields.push('metadataHash')
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

/** Flags are compared for our own contract only: foreign ones change theirs without an event. */
function recordFields(token: IndexedToken, record: AssetRecord, isRegistry: boolean): string[] {
  const fields: string[] = []
  if (record.owner !== token.owner) fields.push('owner')
  if (record.state !== token.state) fields.push('state')
  if (isRegistry && record.flags !== token.flags) fields.push('flags')
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
