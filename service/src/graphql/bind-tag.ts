/** The mutation `bindTag` (spec §3, BOUND): ties a tag to a product for ever by its commitment on chain, and registers it here. */
import type { Hex } from '@touchstone/verdict'
import { mayBind } from '../store/tags-binding.ts'
import type { StoredBatch } from '../store/tags-batches.ts'
import type { TagStore } from '../store/tags.ts'
import type { GraphqlContext } from './context.ts'
import { isGiven, itemOf, operationKeyOf, productIdOf, say } from './mutation-inputs.ts'
import type { Gs1, InputError, Maybe } from './mutation-inputs.ts'
import { productPayload, refused, type CarryOut } from './mutation-writes.ts'

export type BindDeps = Readonly<{
  tags: Pick<TagStore, 'tagOfUid' | 'tagOfItem' | 'importTag'> & {
    readonly batches: () => Promise<readonly StoredBatch[]>
  }
  /** The commitment under which the chain knows a tag; left out without a pepper. */
  tagHash?: ((uid: Uint8Array) => Hex) | undefined
  /** A token was registered as an item: what the index shows of it changes. */
  itemChanged: (tokenId: bigint) => Promise<void>
  gs1: Gs1
}>

type BindTagInput = Readonly<{
  productId: string
  uid: string
  batchId: string
  gtin?: Maybe<string>
  serialNumber?: Maybe<string>
  idempotencyKey?: Maybe<string>
}>

const fieldOf = { batch: 'batchId', tag: 'uid', item: 'serialNumber' } as const
const notConfigured = 'TAG_PEPPER is not set, so that no tag can be bound.'

export function createBindTag({ tags, tagHash, itemChanged, gs1 }: BindDeps, { carryOut, carryOutSigned }: CarryOut) {
  return async ({ input }: { input: BindTagInput }, context: GraphqlContext) => {
    const errors: InputError[] = []
    const tokenId = productIdOf(input.productId, errors)
    const uid = uidOf(input.uid, errors)
    const item = itemOf(input, gs1, errors)
    if (isGiven(input.serialNumber) && !isGiven(input.gtin))
      say(errors, 'gtin', 'A serial number is unique within a GTIN only: give the gtin too.')
    const key = isGiven(input.idempotencyKey) ? operationKeyOf(input.idempotencyKey, errors) : null
    if (tagHash === undefined) say(errors, 'input', notConfigured)
    if (tokenId === null || uid === null || tagHash === undefined || errors.length > 0) return refused(errors)

    const { batchId } = input
    const allowed = await mayBind(tags, { tokenId, uid, batchId, item })
    if (!allowed.ok) return refused([{ field: fieldOf[allowed.about], message: allowed.message }])
    const commitment = tagHash(uid)
    const request = { kind: 'bindTag', tokenId, tagHash: commitment } as const
    // A tag is bound to a product once: without a key of the caller's the pair is the key, so that a repeat registers what was bound.
    const done =
      key === null
        ? await carryOutSigned(request, `bind:${tokenId}:${commitment}`, context)
        : await carryOut(request, key, context)
    if (!done.ok || !done.mined) return productPayload(tokenId, done, context)
    const registered = await tags.importTag({ uid, epoch: allowed.epoch, batchId, tokenId, ...item })
    if (registered.outcome === 'refused') {
      const message = `The tag is bound on chain, but the registry of tags refused it (${registered.because}).`
      return refused([{ field: 'uid', message }], done.txHash)
    }
    if (item !== null) await itemChanged(tokenId)
    return productPayload(tokenId, done, context)
  }
}

/** NXP's tags have 7 bytes, of which the first is 04. */
function uidOf(text: string, errors: InputError[]): Uint8Array | null {
  if (!/^04[0-9a-fA-F]{12}$/.test(text)) return say(errors, 'uid', 'A UID has 14 hex digits and begins with 04.')
  return new Uint8Array(Buffer.from(text, 'hex'))
}
