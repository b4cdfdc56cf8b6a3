/**
 * The rules for binding a tag to an asset (spec §3, BOUND): whether it may be sent, and what is registered then. They ask the registry of
 * tags.
 */
import type { Actor } from '../db/audit.ts'
import type { ItemKey } from '../domain/gs1/serial.ts'
import { batchBrands, type RegisteredBatch, type RegisteredTag, type TagStore } from './tag-registry.ts'

/** `uid` has 7 bytes. */
type Binding = Readonly<{
  tokenId: bigint
  uid: Uint8Array
  batchId: string
  item: ItemKey | null
  /** Brands of the key that asks; null: it binds chips of every batch. */
  brands?: readonly string[] | null
}>

/**
 * `epoch` is the batch's, under which the tag is registered. `about` says which part of the binding was refused, and `own` that the
 * message names nothing but the asset's own values.
 */
type BindingAnswer = { readonly ok: true; readonly epoch: number } | BindingRefusal<'batch' | 'tag' | 'item'>

type BindingRefusal<About> = Readonly<{ ok: false; about: About; own: boolean; message: string }>

/** The values of a binding that the contract does not hold. A repeat under the same idempotency key has the same ones. */
export function bindingTerms({ batchId, item }: Pick<Binding, 'batchId' | 'item'>): string {
  return JSON.stringify([batchId, item?.gtin ?? null, item?.serial ?? null])
}

/**
 * Checks whether a tag may be bound to an asset. It runs before the transaction, because a binding on chain is for ever (spec §3, BOUND).
 * `formerBinding` reads the binding under a former commitment, which the contract cannot recognise as the same tag.
 */
export async function mayBind(
  tags: Pick<TagStore, 'tagOfUid' | 'tagOfToken' | 'tokenOfItem' | 'batch'>,
  formerBinding: (uid: Uint8Array) => Promise<bigint | null>,
  { tokenId, uid, batchId, item, brands = null }: Binding,
): Promise<BindingAnswer> {
  const known = await tags.tagOfUid(uid)
  const other = otherRegistration(known, { tokenId, batchId, item })
  if (other !== null) return other
  const batch = await tags.batch(batchId)
  const isRepeat: boolean = isRegisteredWith(known, tokenId)
  const isNarrowed = brands !== null && !isRepeat
  // A key does not learn of the batches of other brands.
  if (batch === undefined || (isNarrowed && isOfOthers(batch, brands)))
    return refusedBinding('batch', brands === null ? `There is no batch named ${batchId}.` : noneOpen(batchId), true)
  if (batch.status === 'revoked')
    return refusedBinding('batch', `Batch ${batchId} is revoked; its tags need another batch.`, true)
  if (isNarrowed && known !== undefined) {
    const own = await tags.batch(known.batchId)
    if (own !== undefined && isOfOthers(own, brands)) return refusedBinding('tag', 'This tag is of other brands.')
  }
  const elsewhere = known === undefined ? null : registeredElsewhere(known, tokenId, batch)
  if (elsewhere !== null) return refusedBinding('tag', elsewhere)
  const itemToken = item === null ? null : await tags.tokenOfItem(item)
  const onItem = itemToken === null ? undefined : await tags.tagOfToken(itemToken)
  if (onItem !== undefined && Buffer.compare(onItem.uid, uid) !== 0)
    return refusedBinding('item', 'Another tag is registered with this gtin and serial.')
  if (itemToken !== null && itemToken !== tokenId)
    return refusedBinding('item', `Asset ${itemToken} is registered with this gtin and serial.`)
  const former = await formerBinding(uid)
  if (former !== null && former !== tokenId)
    return refusedBinding('tag', `This tag is bound to asset ${former} on chain.`)
  return { ok: true, epoch: batch.epoch }
}

function noneOpen(batchId: string): string {
  return `No batch named ${batchId} is open to the brands of this key. The operator opens one: touchstone tag batch brands`
}

function isOfOthers({ settings }: RegisteredBatch, brands: readonly string[]): boolean {
  return batchBrands(settings)?.every((brand) => !brands.includes(brand)) === true
}

/**
 * Registers a tag after it was bound. One that is registered with the asset stays as it is: only `tag import` and `tag write` change a
 * registration. It looks again, because the transaction took its time. `whyNot` may refuse to register.
 */
export async function registerBound(
  tags: Pick<TagStore, 'tagOfUid' | 'importTag'>,
  { tokenId, uid, batchId, item, epoch }: Binding & { readonly epoch: number },
  by: Actor,
  whyNot: () => Promise<string | null> = async () => null,
): Promise<'unchanged' | 'registered' | { readonly refusal: string }> {
  const known = await tags.tagOfUid(uid)
  const other = otherRegistration(known, { tokenId, batchId, item })
  if (other !== null) return { refusal: other.message }
  if (isRegisteredWith(known, tokenId) && (item === null || known.gtin !== null)) return 'unchanged'
  const refusal = await whyNot()
  if (refusal !== null) return { refusal }
  const registered = await tags.importTag({ uid, epoch, batchId, tokenId, ...item }, by)
  return registered.outcome === 'registered'
    ? 'registered'
    : { refusal: `The tag is bound on chain, but the registry of tags refused it (${registered.because}).` }
}

/** Returns why a tag that is registered with the asset cannot be bound with these values. An item may come later than its tag. */
function otherRegistration(
  known: RegisteredTag | undefined,
  { tokenId, batchId, item }: Omit<Binding, 'uid'>,
): BindingRefusal<'batch' | 'item'> | null {
  if (!isRegisteredWith(known, tokenId)) return null
  const { gtin, serial } = known
  if (known.batchId !== batchId)
    return refusedBinding('batch', `This tag is registered with asset ${tokenId} in batch ${known.batchId}.`, true)
  if (item === null || gtin === null || (gtin === item.gtin && serial === item.serial)) return null
  const message = `This tag is registered with asset ${tokenId} as the item ${gtin} ${serial}.`
  return refusedBinding('item', message, true)
}

function isRegisteredWith(known: RegisteredTag | undefined, tokenId: bigint): known is RegisteredTag {
  return known?.isRegistered === true && known.tokenId === tokenId
}

/** A registered tag stays in its batch. One that is known by its taps alone may be of a batch with a newer epoch. */
function registeredElsewhere(known: RegisteredTag, tokenId: bigint, batch: RegisteredBatch): string | null {
  if (known.tokenId !== null && known.tokenId !== tokenId) return `This tag is registered with asset ${known.tokenId}.`
  const isOther = known.batchId !== batch.id && (known.isRegistered || known.epoch >= batch.epoch)
  return isOther ? `This tag is registered in batch ${known.batchId}.` : null
}

function refusedBinding<About>(about: About, message: string, own = false): BindingRefusal<About> {
  return { ok: false, about, own, message }
}
