/**
 * The only maker of verdicts (spec §2.1). A verdict is the contract's state at one block, the rules of `@touchstone/verdict`, and
 * the product's metadata as `untrusted`.
 */
import { LRUCache } from 'lru-cache'
import { untrustedOf, verdictOf, type Hex, type Untrusted, type Verdict } from '@touchstone/verdict'
import type { CachedAsset } from '../chain/assets/cache.ts'
import { type BlockId, chainId, type TimedBlock } from '../domain/chain.ts'
import { withDeadline } from '../lib/async/deadline.ts'
import { traced } from '../lib/async/span.ts'
import { chainUnavailable, reasonOf, ServiceError } from '../lib/errors.ts'
import type { Log } from '../lib/log.ts'

/** Reads assets from the chain. `head()` is the block at which every asset that is still `current` holds. */
export type AssetSource = {
  readonly read: (tokenId: bigint) => Promise<Found>
  readonly head: () => BlockId | undefined
  /** Reads the asset of a tag at one block. It is null when no token carries the tag. `tagHash` is the commitment that was found. */
  readonly readByTag: (
    tagHash: Hex,
    formerTagHash?: Hex,
  ) => Promise<{ readonly asset: CachedAsset | null; readonly tagHash: Hex; readonly block: TimedBlock }>
}
type Found = { readonly asset: CachedAsset; readonly block: BlockId }
/** Reads the canonical metadata text of a hash. */
export type MetadataSource = { readonly get: (hash: Hex) => Promise<string | undefined> }

/** The record at the verdict's block: its bits, the time of its last change (spec §2.5), and the hash of its metadata. `timestamp` is in unix seconds. */
type Reading = { readonly flags: number; readonly timestamp: number; readonly metadataHash: Hex | null }

/** A verdict as the bytes of its JSON; `etag` names exactly these bytes. */
export type VerdictAnswer = Reading & {
  readonly verdict: Verdict
  readonly body: string
  readonly byteLength: number
  readonly etag: string
}

/** The asset of a tag at one block, null for an unbound tag. `tagHash` is the commitment that the chain has of it. */
type TagAnswer = {
  readonly block: TimedBlock
  readonly asset: (Reading & { readonly verdict: Verdict; readonly tagHash: Hex }) | null
}

/** Verdicts in the order of the tokens, null for one that does not exist. `block` is null where no token was asked for. */
type Answers = { readonly block: BlockId | null; readonly answers: readonly (VerdictAnswer | null)[] }

export type Verdicts = ReturnType<typeof createVerdicts>

export function createVerdicts({
  assets,
  metadata,
  contract,
  maxEntries,
  textTimeoutMs = 1_500,
  log,
  now = () => performance.now(),
}: {
  readonly assets: AssetSource
  readonly metadata: MetadataSource
  readonly contract: Hex
  readonly maxEntries: number
  /** The default is long for a busy database, and half of what a read of the chain may take. */
  readonly textTimeoutMs?: number | undefined
  readonly log: Log
  readonly now?: () => number
}) {
  const maxSize = Math.max(maxEntries * entryBytes, longestBytes)
  const rendered = new LRUCache<string, Rendered>({ max: maxEntries, maxSize, sizeCalculation: bytesOf })

  async function answersAtOnce(tokenIds: readonly bigint[]): Promise<Answers> {
    for (let attempt = 0; attempt < mostAttempts; attempt++) {
      const readings = await Promise.all(tokenIds.map((tokenId) => assets.read(tokenId)))
      const block = readings[0]?.block ?? null
      // The head may move between two batches; what was read is cached by then, at the new head.
      if (readings.some((reading) => reading.block.hash !== block?.hash)) continue
      return { block, answers: await Promise.all(readings.map(answerTo)) }
    }
    throw chainUnavailable('the head moves faster than the tokens can be read at one block')
  }

  /** Returns null for a token that does not exist. */
  async function answerTo({ asset, block }: Found): Promise<VerdictAnswer | null> {
    return asset.record.state === 0 ? null : answerOf(asset, block)
  }

  async function answerOf(asset: CachedAsset, block: BlockId): Promise<VerdictAnswer> {
    const key = asset.tokenId.toString()
    const known = rendered.get(key)
    if (known !== undefined && known.asset === asset && now() < known.staleAt) return pinned(known, block)
    const untrusted = asset.metadataHash === null ? undefined : await untrustedFor(asset.metadataHash)
    const isMissing = asset.metadataHash !== null && untrusted === undefined
    const made = render(asset, untrusted, { contract, staleAt: isMissing ? staleSoon() : Infinity })
    if (asset.current) rendered.set(key, made)
    return pinned(made, block)
  }

  /** Returns undefined when the store cannot be read in time. The verdict does not depend on it, and leaves out `untrusted` for a while. */
  async function untrustedFor(hash: Hex): Promise<Untrusted | undefined> {
    try {
      const text = await withDeadline(metadata.get(hash), textTimeoutMs)
      return text === undefined ? undefined : untrustedOf(JSON.parse(text))
    } catch (error) {
      log.warn('metadata unavailable', { reason: reasonOf(error) })
      return undefined
    }
  }

  /** Looks for missing metadata while the verdict without it is still served, so that no request waits for the store. */
  async function lookAgain(key: string, known: Rendered): Promise<void> {
    const { asset } = known
    if (asset.metadataHash === null) return
    known.isSought = true
    const untrusted = await untrustedFor(asset.metadataHash)
    known.isSought = false
    if (rendered.peek(key) !== known) return
    if (untrusted === undefined) known.staleAt = staleSoon()
    else rendered.set(key, render(asset, untrusted, { contract, staleAt: Infinity }))
  }

  function staleSoon(): number {
    return now() + missingMetadataMs
  }

  return {
    /** Returns the verdict on a token now, or null when the token does not exist. Throws CHAIN_UNAVAILABLE. */
    answer: (tokenId: bigint) => traced({ name: 'verdict' }, async () => answerTo(await assets.read(tokenId))),
    /** Returns the verdicts on many tokens, all at one block. Throws CHAIN_UNAVAILABLE. */
    answers: (tokenIds: readonly bigint[]) => traced({ name: 'verdict' }, () => answersAtOnce(tokenIds)),
    /** Returns the verdict on the token that carries a tag. Throws CHAIN_UNAVAILABLE. */
    byTag: (presentTagHash: Hex, formerTagHash?: Hex) =>
      traced({ name: 'verdict' }, async (): Promise<TagAnswer> => {
        const { asset, tagHash, block } = await assets.readByTag(presentTagHash, formerTagHash)
        if (asset === null || asset.record.state === 0) return { block, asset: null }
        const { verdict, flags, timestamp, metadataHash } = await answerOf(asset, block)
        return { block, asset: { verdict, flags, timestamp, metadataHash, tagHash } }
      }),
    /** Returns the verdict at once where it is cached and its asset still current; else undefined. */
    ready(key: string): VerdictAnswer | undefined {
      const known = rendered.peek(key)
      if (known === undefined || !known.asset.current) return undefined
      if (known.staleAt !== Infinity) {
        const left = known.staleAt - now()
        if (left <= 0) return undefined
        if (left <= aheadMs && !known.isSought) void lookAgain(key, known)
      }
      const head = assets.head()
      // `head()` may have dropped the asset, so `current` is checked after it.
      return head === undefined || !known.asset.current ? undefined : pinned(known, head)
    },
  }
}

/** Memory of one verdict for which `maxEntries` stands, in bytes, and the least memory for all: any verdict fits in. */
const entryBytes = 1_500
const longestBytes = 1_000_000
/** Bytes of a verdict beside its text: objects, short texts and the place in the cache. */
const otherBytes = 1_300

/** Returns the bytes in memory. The body and the verdict each have the text; V8 takes two bytes a character where one is not Latin-1. */
function bytesOf({ body }: Rendered): number {
  return otherBytes + 2 * body.length * (/[^\0-\xff]/.test(body) ? 2 : 1)
}

/** Attempts to read many tokens at one block. */
const mostAttempts = 4

/** Milliseconds for which a verdict without its metadata text is kept. */
const missingMetadataMs = 5_000
/** Milliseconds before that, from which on a request starts the next look for the text. */
const aheadMs = 1_000

type Rendered = {
  /** Infinity where nothing is missing. */
  staleAt: number
  isSought: boolean
  readonly byteLength: number
  readonly asset: CachedAsset
  readonly verdict: Verdict
  readonly tag: string
  /** The JSON text. Its part about the block begins at `blockAt` and has `blockLength` characters. */
  body: string
  readonly blockAt: number
  blockLength: number
  block: BlockId | undefined
  answer: VerdictAnswer | undefined
}

const blockMark = { number: 0n, hash: `0x${'0'.repeat(64)}` } as const
const markText = `"block_number":0,"block_hash":"${blockMark.hash}"`

/** Renders the JSON text around the block once for an asset. The first mark is ours, because supplier text comes behind it. */
function render(
  asset: CachedAsset,
  untrusted: Untrusted | undefined,
  { contract, staleAt }: { contract: Hex; staleAt: number },
): Rendered {
  const { record, tokenId } = asset
  const verdict = verdictOf({ record, tokenId, block: blockMark, contract, chainId, ...(untrusted && { untrusted }) })
  if (verdict === null) throw new ServiceError('INTERNAL', 'A verdict was asked for a token that does not exist.')
  const text = JSON.stringify(verdict)
  const tag = etagPart(verdict, asset.metadataHash)
  return {
    asset,
    verdict,
    tag,
    body: text,
    blockAt: text.indexOf(markText),
    blockLength: markText.length,
    byteLength: Buffer.byteLength(text) - markText.length,
    staleAt,
    isSought: false,
    block: undefined,
    answer: undefined,
  }
}

/** Differs for any two verdicts on one token at one block. */
function etagPart({ state_code, flagged, owner_commitment, untrusted }: Verdict, metadataHash: Hex | null): string {
  const text = untrusted === undefined || metadataHash === null ? '' : metadataHash.slice(2, 18)
  return `${state_code}${flagged ? 'f' : ''}-${owner_commitment?.slice(2, 18) ?? ''}-${text}`
}

/** Returns the answer at one block; the same object as long as the block stays. */
function pinned(rendered: Rendered, block: BlockId): VerdictAnswer {
  if (rendered.answer !== undefined && rendered.block?.hash === block.hash) return rendered.answer
  const { body, blockAt, blockLength, tag, verdict } = rendered
  const pin = `"block_number":${block.number},"block_hash":"${block.hash}"`
  rendered.block = block
  rendered.body = contiguous(body.slice(0, blockAt) + pin + body.slice(blockAt + blockLength))
  rendered.blockLength = pin.length
  const { record, metadataHash } = rendered.asset
  rendered.answer = {
    flags: record.flags,
    timestamp: Number(record.timestamp),
    metadataHash,
    body: rendered.body,
    byteLength: rendered.byteLength + pin.length,
    etag: `"${tag}-${block.hash.slice(2, 18)}"`,
    get verdict(): Verdict {
      return {
        ...verdict,
        chainRef: { ...verdict.chainRef, block_number: Number(block.number), block_hash: block.hash },
      }
    },
  }
  return rendered.answer
}

/** Copies a text into one piece of memory. V8 keeps a joined text in its parts, and would join them for every response. */
function contiguous(text: string): string {
  return Buffer.from(text).toString()
}
