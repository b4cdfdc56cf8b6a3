/**
 * Resolves a tap from its query parameters to the asset (spec §4.4–§4.6). Every tap route uses it. The chain is read between cryptogram and
 * ledger, so that one commit accepts and announces a tap. When it does not answer soon, the tap counts all the same: the retry after a 502
 * is the same tap, and a replay is answered as one. A tap is announced once, when first resolved.
 */
import type { Hex, Verdict } from '@touchstone/verdict'
import type { Verdicts } from '../assets/verdicts.ts'
import { withDeadline } from '../lib/async/deadline.ts'
import { traced } from '../lib/async/span.ts'
import { ServiceError } from '../lib/errors.ts'
import type { TappedProduct } from './replay-ledger.ts'
import type { ProductOf, TappedTag, TapRequest, TapResult, VerifyTap } from './verify-tap.ts'
import type { TimedBlock } from '../domain/chain.ts'

/** `uid` is 14 upper-case hex digits; `timestamp` is the record's, in unix seconds. */
export type TapOutcome =
  | Exclude<TapResult, TappedTag>
  | { readonly kind: 'unbound'; readonly tag: TappedTag; readonly block: TimedBlock }
  | {
      readonly kind: 'resolved'
      readonly tag: TappedTag
      readonly block: TimedBlock
      readonly verdict: Verdict
      /** Bits of the record. */
      readonly flags: number
      readonly timestamp: number
      readonly metadataHash: Hex | null
    }

export type ResolveTap = (request: TapRequest) => Promise<TapOutcome>

/** A fault behind a genuine tap, which counts by now, and stays good for another try. */
export class UnresolvedTap extends ServiceError {
  readonly tag: TappedTag

  constructor({ code, message, cause }: ServiceError, tag: TappedTag) {
    super(code, message, { cause })
    this.tag = tag
  }
}

/** Milliseconds that a tap waits for its product before it is consumed without. A replay is answered within them, too. */
const productWaitMs = 500

/** Creates the resolution. It throws CHAIN_UNAVAILABLE after a genuine tap, INTERNAL when the ledger does not answer. */
export function createResolveTap({
  verifyTap,
  verdicts,
  announce,
  onVerified,
  onRefused,
}: {
  readonly verifyTap: VerifyTap
  readonly verdicts: Pick<Verdicts, 'byTag'>
  /** Announces a tap that the ledger did not announce. It returns true for the first call per tap. */
  readonly announce: (tap: TappedTag & TappedProduct) => Promise<boolean>
  /** Publishes that a bound item was tapped, once for each tap. */
  readonly onVerified: (tag: TappedTag, verdict: Verdict) => void
  /** Logs why a tap did not count, and its batch where that is known. The caller learns neither. */
  readonly onRefused: (kind: string, reason?: string, batchId?: string) => void
}): ResolveTap {
  return (request) =>
    traced({ name: 'tap' }, async (span) => {
      const outcome = await resolve(request)
      span?.set({ 'touchstone.tap.outcome': outcome.kind })
      return outcome
    })

  async function resolve(request: TapRequest): Promise<TapOutcome> {
    let reading: ReturnType<Verdicts['byTag']> | undefined
    const productOf: ProductOf = ({ tagHash, formerTagHash }) => {
      reading = verdicts.byTag(tagHash, formerTagHash)
      const product = reading.then(
        ({ asset }) => asset && toProduct(asset),
        () => null, // the reading is awaited again below
      )
      return withDeadline(product, productWaitMs, { onTimeout: () => null })
    }
    const tag = await verifyTap(request, productOf)
    if (tag.kind !== 'tapped') {
      if (tag.kind === 'counterfeit') onRefused(tag.kind, tag.reason, tag.batchId)
      else onRefused(tag.kind)
      return tag
    }
    reading ??= verdicts.byTag(tag.tagHash, tag.formerTagHash)
    return assetOf(tag, reading, request).catch((error: unknown) => {
      throw error instanceof ServiceError ? new UnresolvedTap(error, tag) : error
    })
  }

  async function assetOf(
    tag: TappedTag,
    reading: ReturnType<Verdicts['byTag']>,
    { consume }: TapRequest,
  ): Promise<TapOutcome> {
    const { block, asset } = await reading
    if (asset === null) return { kind: 'unbound', tag, block }
    if (consume !== false && (await isFirst(tag, toProduct(asset)))) onVerified(tag, asset.verdict)
    const { tagHash, ...rest } = asset
    return { kind: 'resolved', tag: { ...tag, tagHash }, block, ...rest }
  }

  /** Returns whether the tap is resolved for the first time. */
  function isFirst(tag: TappedTag, product: TappedProduct): boolean | Promise<boolean> {
    return tag.isAnnounced ? tag.fresh : traced({ name: 'tap announcement' }, () => announce({ ...tag, ...product }))
  }
}

function toProduct({ verdict, tagHash }: { readonly verdict: Verdict; readonly tagHash: Hex }): TappedProduct {
  return { tokenId: BigInt(verdict.token_id), tagHash }
}

/** Counts the failed cryptograms of clients. */
export type ForgeryLimiter = Readonly<{
  /** Returns a value for a client that has used up its window. */
  exhausted: (client: string) => { readonly resetSeconds: number } | undefined
  take: (client: string) => unknown
}>

/**
 * Resolves a tap of a client, and counts its failed cryptogram. A client that sent too many causes no search; likely batches still
 * verify.
 */
export async function resolveTapFor(
  client: string,
  {
    resolveTap,
    forgeryLimiter,
  }: { readonly resolveTap: ResolveTap; readonly forgeryLimiter?: ForgeryLimiter | undefined },
  request: TapRequest,
): Promise<TapOutcome> {
  const outcome = await resolveTap({ ...request, searchAfterSeconds: forgeryLimiter?.exhausted(client)?.resetSeconds })
  if (outcome.kind === 'counterfeit') void forgeryLimiter?.take(client)
  return outcome
}
