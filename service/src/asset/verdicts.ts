/**
 * The only maker of verdicts (spec §2.1): every door asks here. A verdict is what the contract says at one block,
 * the rules of `@touchstone/verdict`, and the product's metadata as `untrusted`.
 */
import { untrustedOf, verdictOf, type AssetRecord, type Hex, type Untrusted, type Verdict } from '@touchstone/verdict'
import { reasonOf, ServiceError } from '../errors.ts'
import type { Log } from '../log.ts'

type Block = Readonly<{ number: bigint; hash: Hex }>
/** `timestamp` is in unix seconds. */
type TimedBlock = Block & Readonly<{ timestamp: bigint }>
type Asset = Readonly<{ tokenId: bigint; record: AssetRecord; metadataHash: Hex | null; live: boolean }>

/** What verdicts need of the chain: `head()` is the block at which every asset that is still `live` is true. */
export type AssetSource = {
  readonly read: (tokenId: bigint) => Promise<{ readonly asset: Asset; readonly block: Block }>
  readonly head: () => Block | undefined
  /** Token and asset of a tag commitment, read at one block; both null when no token carries the tag. */
  readonly readByTag: (tagHash: Hex) => Promise<{ readonly asset: Asset | null; readonly block: TimedBlock }>
}
/** What verdicts need of the store: the canonical metadata text of a hash. */
export type MetadataSource = { readonly get: (hash: Hex) => Promise<string | undefined> }

/** A verdict as the bytes of its JSON; `etag` names exactly these bytes. */
export type Answer = {
  readonly verdict: Verdict
  readonly body: string
  readonly byteLength: number
  readonly etag: string
}

/** What a tag's commitment leads to at one block. `timestamp` is the record's, in unix seconds; `twin` is null for an unbound tag. */
type TagAnswer = {
  readonly block: TimedBlock
  readonly twin: { readonly verdict: Verdict; readonly timestamp: number; readonly metadataHash: Hex | null } | null
}

export type Verdicts = {
  /** The verdict on a token now, or null when the token does not exist. It throws CHAIN_UNAVAILABLE, never guesses. */
  readonly answer: (tokenId: bigint) => Promise<Answer | null>
  /** The same without waiting, when the chain was asked before and nothing touched the token since; else undefined. */
  readonly ready: (key: string) => Answer | undefined
  /** The verdict on the token that carries a tag. It throws CHAIN_UNAVAILABLE. */
  readonly byTag: (tagHash: Hex) => Promise<TagAnswer>
}

export function createVerdicts({
  assets,
  metadata,
  contract,
  chainId,
  maxEntries,
  log,
  now = () => performance.now(), // a wall clock that is set back would make things last longer
}: {
  readonly assets: AssetSource
  readonly metadata: MetadataSource
  readonly contract: Hex
  readonly chainId: number
  readonly maxEntries: number
  readonly log: Log
  readonly now?: () => number
}): Verdicts {
  const rendered = new Map<string, Rendered>()

  async function answer(tokenId: bigint): Promise<Answer | null> {
    const { asset, block } = await assets.read(tokenId)
    return asset.record.state === 0 ? null : answerOf(asset, block)
  }

  async function answerOf(asset: Asset, block: Block): Promise<Answer> {
    const key = asset.tokenId.toString()
    const known = rendered.get(key)
    if (known !== undefined && known.asset === asset && now() < known.lookAgainAt) return pinned(known, block)
    const untrusted = asset.metadataHash === null ? undefined : await untrustedFor(asset.metadataHash)
    const lookAgainAt = asset.metadataHash !== null && untrusted === undefined ? now() + missingMetadataMs : Infinity
    const made = render(asset, untrusted, { contract, chainId, lookAgainAt })
    if (asset.live) keep(key, made)
    return pinned(made, block)
  }

  /** A verdict does not depend on the store: without its text the optional `untrusted` is left out for a while. */
  async function untrustedFor(hash: Hex): Promise<Untrusted | undefined> {
    try {
      const text = await metadata.get(hash)
      return text === undefined ? undefined : untrustedOf(JSON.parse(text))
    } catch (error) {
      log.warn('metadata unavailable', { reason: reasonOf(error) })
      return undefined
    }
  }

  function keep(key: string, made: Rendered): void {
    rendered.delete(key)
    if (rendered.size >= maxEntries) rendered.delete(rendered.keys().next().value ?? '')
    rendered.set(key, made)
  }

  return {
    answer,
    async byTag(tagHash) {
      const { asset, block } = await assets.readByTag(tagHash)
      if (asset === null || asset.record.state === 0) return { block, twin: null }
      const { verdict } = await answerOf(asset, block)
      return { block, twin: { verdict, timestamp: Number(asset.record.timestamp), metadataHash: asset.metadataHash } }
    },
    ready(key) {
      const known = rendered.get(key)
      if (known === undefined || !known.asset.live) return undefined
      if (known.lookAgainAt !== Infinity && now() >= known.lookAgainAt) return undefined
      const head = assets.head()
      // Asking for the head may have dropped the asset: `live` counts after it.
      return head === undefined || !known.asset.live ? undefined : pinned(known, head)
    },
  }
}

/** How long a hash whose text is not in the store is answered without `untrusted`, in milliseconds. */
const missingMetadataMs = 5_000

type Rendered = {
  readonly lookAgainAt: number
  readonly byteLength: number
  readonly asset: Asset
  readonly verdict: Verdict
  readonly before: string
  readonly after: string
  readonly tag: string
  block: Block | undefined
  answer: Answer | undefined
}

const blockMark = { number: 0n, hash: `0x${'0'.repeat(64)}` } as const
const markText = `"block_number":0,"block_hash":"${blockMark.hash}"`

/** The JSON text around the block, made once an asset; the first mark is ours, because supplier text comes behind it. */
function render(
  asset: Asset,
  untrusted: Untrusted | undefined,
  { contract, chainId, lookAgainAt }: { contract: Hex; chainId: number; lookAgainAt: number },
): Rendered {
  const { record, tokenId } = asset
  const verdict = verdictOf({ record, tokenId, block: blockMark, contract, chainId, ...(untrusted && { untrusted }) })
  if (verdict === null) throw new ServiceError('INTERNAL', 'A verdict was asked for a token that does not exist.')
  const text = JSON.stringify(verdict)
  const at = text.indexOf(markText)
  const before = text.slice(0, at)
  const after = text.slice(at + markText.length)
  const byteLength = Buffer.byteLength(before) + Buffer.byteLength(after)
  return {
    asset,
    verdict,
    before,
    after,
    tag: tagOf(verdict, asset.metadataHash),
    byteLength,
    lookAgainAt,
    block: undefined,
    answer: undefined,
  }
}

/** Tells apart whatever can differ between two verdicts on one token at one block. */
function tagOf({ state_code, flagged, owner_commitment, untrusted }: Verdict, metadataHash: Hex | null): string {
  const text = untrusted === undefined || metadataHash === null ? '' : metadataHash.slice(2, 18)
  return `${state_code}${flagged ? 'f' : ''}-${owner_commitment?.slice(2, 18) ?? ''}-${text}`
}

/** The answer at one block; the same object as long as the block stays. */
function pinned(rendered: Rendered, block: Block): Answer {
  if (rendered.answer !== undefined && rendered.block?.hash === block.hash) return rendered.answer
  const { before, after, tag, verdict } = rendered
  const pin = `"block_number":${block.number},"block_hash":"${block.hash}"`
  rendered.block = block
  rendered.answer = {
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
