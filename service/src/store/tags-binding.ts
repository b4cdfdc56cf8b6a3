/** Whether a tag may be bound to an asset, asked before the chain, which would remember for ever what the registry refuses (spec §3, BOUND). */
import type { RegisteredTag, TagStore } from './tags.ts'
import type { StoredBatch } from './tags-batches.ts'

/** `uid` has 7 bytes; `gtin` and `serial` go together. */
export type Binding = Readonly<{
  tokenId: bigint
  uid: Uint8Array
  batchId: string
  item: Readonly<{ gtin: string; serial: string }> | null
}>

/** `epoch` is the batch's, under which the tag is registered; `about` says which part of the binding was refused. */
export type BindingAnswer =
  | { readonly ok: true; readonly epoch: number }
  | { readonly ok: false; readonly about: 'batch' | 'tag' | 'item'; readonly message: string }

type Tags = Pick<TagStore, 'tagOfUid' | 'tagOfItem'> & { readonly batches: () => Promise<readonly StoredBatch[]> }

export async function mayBind(tags: Tags, { tokenId, uid, batchId, item }: Binding): Promise<BindingAnswer> {
  const batch = (await tags.batches()).find(({ id }) => id === batchId)
  if (batch === undefined) return { ok: false, about: 'batch', message: `There is no batch named ${batchId}.` }
  const known = await tags.tagOfUid(uid)
  const elsewhere = known === undefined ? null : registeredElsewhere(known, tokenId, batch)
  if (elsewhere !== null) return { ok: false, about: 'tag', message: elsewhere }
  const onItem = item === null ? undefined : await tags.tagOfItem(item.gtin, item.serial)
  if (onItem !== undefined && Buffer.compare(onItem.uid, uid) !== 0)
    return { ok: false, about: 'item', message: 'Another tag is registered with this gtin and serial.' }
  return { ok: true, epoch: batch.epoch }
}

function registeredElsewhere(known: RegisteredTag, tokenId: bigint, batch: StoredBatch): string | null {
  if (known.tokenId !== null && known.tokenId !== tokenId) return `This tag is registered with asset ${known.tokenId}.`
  const isNewer = known.epoch > batch.epoch || (known.epoch === batch.epoch && known.batchId !== batch.id)
  return isNewer ? `This tag is registered in batch ${known.batchId}.` : null
}
