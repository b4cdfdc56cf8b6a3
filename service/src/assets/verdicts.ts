/**
 * The only maker of verdicts (spec §2.1). A verdict is the contract's state at one block, the rules of `@touchstone/verdict`, and
 * the product's metadata as `untrusted`.
 */
import { LRUCache } from 'lru-cache'
import { untrustedOf, verdictOf, type AssetRecord, type Hex, type Untrusted, type Verdict } from '@touchstone/verdict'
import type { BlockId } from '../domain/chain.ts'
import { reasonOf, ServiceError } from '../lib/errors.ts'
import type { Log } from '../lib/log.ts'

/** `timestamp` is in unix seconds. */
type TimedBlock = BlockId & Readonly<{ timestamp: bigint }>
type Asset = Readonly<{ tokenId: bigint; record: AssetRecord; metadataHash: Hex | null; current: boolean }>

/** Reads assets from the chain. `head()` is the block at which every asset that is still `current` holds. */
export type AssetSource = {
  readonly read: (tokenId: bigint) => Promise<{ readonly asset: Asset; readonly block: BlockId }>
  readonly head: () => BlockId | undefined
  /** Reads the asset of a tag by its commitment, or its former one, at one block; null when no token carries the tag. */
  readonly readByTag: (
    tagHash: Hex,
    formerTagHash?: Hex,
  ) => Promise<{ readonly asset: Asset | null; readonly block: TimedBlock }>
}
/** Reads the canonical metadata text of a hash. */
export type MetadataSource = { readonly get: (hash: Hex) => Promise<string | undefined> }

/** A verdict as the bytes of its JSON; `etag` names exactly these bytes. `flags` are the bits of the record (spec §2.5). */
export type Answer = {
  readonly verdict: Verdict
  readonly flags: number
  readonly body: string
  readonly byteLength: number
  readonly etag: string
}

/** The asset of a tag at one block, null for an unbound tag. `timestamp` is the record's, in unix seconds. */
type TagAnswer = {
  readonly block: TimedBlock
  readonly asset: { readonly verdict: Verdict; readonly timestamp: number; readonly metadataHash: Hex | null } | null
}

export type Verdicts = {
  /** Returns the verdict on a token now, or null when the token does not exist. Throws CHAIN_UNAVAILABLE. */
  readonly answer: (tokenId: bigint) => Promise<Answer | null>
  /** Returns the verdict at once where it is cached and its asset still current; else undefined. */
  readonly ready: (key: string) => Answer | undefined
  /** Returns the verdict on the token that carries a tag. Throws CHAIN_UNAVAILABLE. */
  readonly byTag: (tagHash: Hex, formerTagHash?: Hex) => Promise<TagAnswer>
}

export function createVerdicts({
  assets,
  metadata,
  contract,
  chainId,
  maxEntries,
  log,
  now = () => performance.now(),
}: {
  readonly assets: AssetSource
  readonly metadata: MetadataSource
  readonly contract: Hex
  readonly chainId: number
  readonly maxEntries: number
  readonly log: Log
  readonly now?: () => number
}): Verdicts {
  const rendered = new LRUCache<string, Rendered>({ max: maxEntries })

  async function answer(tokenId: bigint): Promise<Answer | null> {
    const { asset, block } = await assets.read(tokenId)
    return asset.record.state === 0 ? null : answerOf(asset, block)
  }

  async function answerOf(asset: Asset, block: BlockId): Promise<Answer> {
    const key = asset.tokenId.toString()
    const known = rendered.get(key)
    if (known !== undefined && known.asset === asset && now() < known.staleAt) return pinned(known, block)
    const untrusted = asset.metadataHash === null ? undefined : await untrustedFor(asset.metadataHash)
    const staleAt = asset.metadataHash !== null && untrusted === undefined ? now() + missingMetadataMs : Infinity
    const made = render(asset, untrusted, { contract, chainId, staleAt })
    if (asset.current) rendered.set(key, made)
    return pinned(made, block)
  }

  /** Returns undefined when the store cannot be read: the verdict does not depend on it, and leaves out `untrusted` for a while. */
  async function untrustedFor(hash: Hex): Promise<Untrusted | undefined> {
    try {
      const text = await metadata.get(hash)
      return text === undefined ? undefined : untrustedOf(JSON.parse(text))
    } catch (error) {
      log.warn('metadata unavailable', { reason: reasonOf(error) })
      return undefined
    }
  }

  return {
    answer,
    async byTag(tagHash, formerTagHash) {
      const { asset, block } = await assets.readByTag(tagHash, formerTagHash)
      if (asset === null || asset.record.state === 0) return { block, asset: null }
      const { verdict } = await answerOf(asset, block)
      return { block, asset: { verdict, timestamp: Number(asset.record.timestamp), metadataHash: asset.metadataHash } }
    },
    ready(key) {
      const known = rendered.peek(key)
      if (known === undefined || !known.asset.current) return undefined
      if (known.staleAt !== Infinity && now() >= known.staleAt) return undefined
      const head = assets.head()
      // `head()` may have dropped the asset, so `current` is checked after it.
      return head === undefined || !known.asset.current ? undefined : pinned(known, head)
    },
  }
}

/** Milliseconds for which a verdict without its metadata text is kept. */
const missingMetadataMs = 5_000

type Rendered = {
  readonly staleAt: number
  readonly byteLength: number
  readonly asset: Asset
  readonly verdict: Verdict
  readonly before: string
  readonly after: string
  readonly tag: string
  block: BlockId | undefined
  answer: Answer | undefined
}

const blockMark = { number: 0n, hash: `0x${'0'.repeat(64)}` } as const
const markText = `"block_number":0,"block_hash":"${blockMark.hash}"`

/** Renders the JSON text around the block once for an asset. The first mark is ours, because supplier text comes behind it. */
function render(
  asset: Asset,
  untrusted: Untrusted | undefined,
  { contract, chainId, staleAt }: { contract: Hex; chainId: number; staleAt: number },
): Rendered {
  const { record, tokenId } = asset
  const verdict = verdictOf({ record, tokenId, block: blockMark, contract, chainId, ...(untrusted && { untrusted }) })
  if (verdict === null) throw new ServiceError('INTERNAL', 'A verdict was asked for a token that does not exist.')
  const text = JSON.stringify(verdict)
  const at = text.indexOf(markText)
  const before = text.slice(0, at)
  const after = text.slice(at + markText.length)
  const byteLength = Buffer.byteLength(before) + Buffer.byteLength(after)
  const tag = etagPart(verdict, asset.metadataHash)
  return { asset, verdict, before, after, tag, byteLength, staleAt, block: undefined, answer: undefined }
}

/** Differs for any two verdicts on one token at one block. */
function etagPart({ state_code, flagged, owner_commitment, untrusted }: Verdict, metadataHash: Hex | null): string {
  const text = untrusted === undefined || metadataHash === null ? '' : metadataHash.slice(2, 18)
  return `${state_code}${flagged ? 'f' : ''}-${owner_commitment?.slice(2, 18) ?? ''}-${text}`
}

/** Returns the answer at one block; the same object as long as the block stays. */
function pinned(rendered: Rendered, block: BlockId): Answer {
  if (rendered.answer !== undefined && rendered.block?.hash === block.hash) return rendered.answer
  const { before, after, tag, verdict } = rendered
  const pin = `"block_number":${block.number},"block_hash":"${block.hash}"`
  rendered.block = block
  rendered.answer = {
    flags: rendered.asset.record.flags,
    body: `${before}${pin}${after}`,
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
