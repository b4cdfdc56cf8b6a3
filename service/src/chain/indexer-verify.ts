/**
 * Compares the index with the chain (spec §2.5): every batch of tokens is read from both at one block, the index's own.
 * It finds what a lying provider, a lost event or a changed row has left behind.
 */
import type { AssetRecord, Hex } from '@touchstone/verdict'
import { untold } from './indexer-source.ts'
import { callWithWord, selectorOf, wordOf } from './read-calls.ts'
import { createFormChooser } from './read-calls-probe.ts'
import type { ReadInterface } from './read-calls-probe.ts'
import { blockGone } from './source.ts'
import type { Block, RpcChainSource } from './source.ts'

/** A token as the index has it; `pending` is its offer, if one stands. Times are unix seconds, hashes `null` for none. */
type IndexedToken = Readonly<{
  tokenId: bigint
  owner: Hex
  state: number
  flags: number
  metadataHash: Hex | null
  tagHash: Hex | null
  pending: Readonly<{ to: Hex; nonce: bigint; expiry: bigint }> | null
}>

/** Tokens of the index, and the block at which they are so. `products` is how many the index counts in all. */
type TokenPage = Readonly<{
  at: Readonly<{ number: bigint; hash: Hex }>
  products: bigint
  tokens: readonly IndexedToken[]
}>

type TokenPages = Readonly<{
  /** Tokens in the order of their ids; at most `limit` of those behind `after`. `null`: there is no index. */
  after: (after: bigint, limit: number) => Promise<TokenPage | null>
  /** About `count` tokens here and there. */
  sample: (count: number) => Promise<TokenPage | null>
}>

/** A token with the members that are not as on the chain. Values are left out: among them would be addresses. */
export type Difference = Readonly<{ tokenId: bigint; fields: readonly string[] }>

/** `supply` is the chain's count of tokens where it has one; it must equal `products`. `at` is the last block compared at. */
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
  /** How many tokens to look at; without it all. */
  sample?: number
  onProgress?: (compared: number) => void
}>

const tokensAtOnce = 200
const callsAtOnce = 100
const attempts = 5
const mostDifferences = 1_000
const lastSecond = 253_402_300_799n

const getTagByToken = selectorOf('getTagByToken(uint256)')
const pendingTransfer = selectorOf('pendingTransfer(uint256)')
const totalSupply = selectorOf('totalSupply()')

/** `null`: there is no index yet. Throws CHAIN_UNAVAILABLE. */
export async function verifyIndex(options: VerifyIndexOptions): Promise<Verified | null> {
  const { source, contract, pages, sample, onProgress } = options
  const isOwn = options.interface === 'registry'
  const chooseForm = createFormChooser(options)
  const differences: Difference[] = []
  let compared = 0

  async function compare(
    ask: () => Promise<TokenPage | null>,
  ): Promise<{ page: TokenPage; supply: bigint | null } | null> {
    for (let attempt = 1; ; attempt++) {
      const page = await ask()
      if (page === null || page.at.number < 0n) return null
      const block = await source.block(page.at.hash)
      const found = block === blockGone ? block : await differencesAt(page, block)
      if (found !== blockGone) {
        differences.push(...found.differences)
        compared += page.tokens.length
        onProgress?.(compared)
        return { page, supply: found.supply }
      }
      if (attempt === attempts) throw untold('the block of the index is not on the chain')
    }
  }

  async function differencesAt({ tokens }: TokenPage, block: Block) {
    const supply = isOwn ? await supplyAt(block) : null
    if (supply === blockGone) return blockGone
    const found: Difference[] = []
    const form = await chooseForm(block, deadline())
    if (form === blockGone) return form
    for (let from = 0; from < tokens.length; from += Math.min(form.maxBatch, callsAtOnce)) {
      const batch = tokens.slice(from, from + Math.min(form.maxBatch, callsAtOnce))
      const ids = batch.map(({ tokenId }) => tokenId)
      const records = await form.read(ids, block, deadline())
      if (records === blockGone) return records
      if ('suspects' in records) throw untold('the contract gives impossible answers')
      const more = isOwn ? await ownReads(ids, block) : null
      if (more === blockGone) return more
      batch.forEach((token, index) => {
        const read = records[index]
        const fields = read === undefined ? ['record'] : recordFields(token, read.record, isOwn)
        if (read !== undefined && form.name !== 'proof' && isOwn && read.metadataHash !== token.metadataHash)
          fields.push('metadataHash')
        const own = more?.[index]
        if (own !== undefined) fields.push(...ownFields(token, own, block.timestamp))
        if (fields.length > 0) found.push({ tokenId: token.tokenId, fields })
      })
    }
    return { differences: found, supply }
  }

  async function supplyAt(block: Block): Promise<bigint | null | typeof blockGone> {
    const data = await source.call(contract, totalSupply, block)
    return data === blockGone ? data : wordOf(data)
  }

  async function ownReads(ids: readonly bigint[], block: Block): Promise<readonly OwnRead[] | typeof blockGone> {
    const datas = ids.flatMap((id) => [callWithWord(getTagByToken, id), callWithWord(pendingTransfer, id)])
    const answers = await source.calls(contract, datas, block)
    if (answers === blockGone) return answers
    return ids.map((_, index) => ({ tag: answers[2 * index] ?? '0x', pending: answers[2 * index + 1] ?? '0x' }))
  }

  let last = await compare(() => (sample === undefined ? pages.after(-1n, tokensAtOnce) : pages.sample(sample)))
  if (last === null) return null
  while (sample === undefined && last.page.tokens.length > 0 && differences.length < mostDifferences) {
    const after: bigint = last.page.tokens.at(-1)?.tokenId ?? 0n
    const next = await compare(() => pages.after(after, tokensAtOnce))
    if (next === null) break
    last = next
  }
  return { at: last.page.at.number, compared, differences, products: last.page.products, supply: last.supply }
}

type OwnRead = Readonly<{ tag: Hex; pending: Hex }>

function deadline(): number {
  return performance.now() + 10_000
}

/** Foreign contracts have flags of which no event tells. */
function recordFields(token: IndexedToken, record: AssetRecord, isOwn: boolean): string[] {
  const fields: string[] = []
  if (record.owner !== token.owner) fields.push('owner')
  if (record.state !== token.state) fields.push('state')
  if (isOwn && record.flags !== token.flags) fields.push('flags')
  return fields
}

/** An offer that has run out may be on the chain still. */
function ownFields(token: IndexedToken, { tag, pending }: OwnRead, time: bigint): string[] {
  const fields: string[] = []
  if (wordOf(tag) !== BigInt(token.tagHash ?? 0)) fields.push('tagHash')
  const [to = 0n, expiry = 0n, nonce = 0n] = [0, 1, 2].map(
    (index) => wordOf(`0x${pending.slice(2 + 64 * index, 66 + 64 * index)}`) ?? -1n,
  )
  const capped = expiry < lastSecond ? expiry : lastSecond
  const offer = token.pending
  if (
    offer === null
      ? to !== 0n && expiry > time + 3_600n
      : BigInt(offer.to) !== to || offer.expiry !== capped || offer.nonce !== nonce
  )
    fields.push('pendingTransfer')
  return fields
}
