/** The mutation `bindTag` (spec §3, BOUND): commits a tag to a product on chain for ever, and registers it here. */
import type { Hex } from '@touchstone/verdict'
import { parseHex } from '../../lib/bytes.ts'
import { mayBind, type StoredBatch, type TagStore } from '../../tap/tag-registry.ts'
import { isGiven, type Input, type InputReader } from './inputs.ts'
import { mutation, productPayload, rejected, rejectedAt, type Writes } from './mutation.ts'

export type BindDeps = Readonly<{
  tags: Pick<TagStore, 'tagOfUid' | 'tagOfItem' | 'importTag'> & {
    readonly batches: () => Promise<readonly StoredBatch[]>
  }
  /** The commitment of a tag on chain. Undefined without a pepper. */
  tagHash?: ((uid: Uint8Array) => Hex) | undefined
  /** Updates the index after a token was registered as an item. */
  itemChanged: (tokenId: bigint) => Promise<void>
}>

type BindTagInput = Input<'productId' | 'uid' | 'batchId', 'gtin' | 'serialNumber' | 'idempotencyKey'>

const fieldOf = { batch: 'batchId', tag: 'uid', item: 'serialNumber' } as const

export function createBindTag({ tags, tagHash, itemChanged }: BindDeps, { executeWrite, executeSigned }: Writes) {
  function readBinding(input: BindTagInput, read: InputReader) {
    const tokenId = read.productId(input.productId)
    const uid = readUid(input.uid, read)
    const item = read.item(input)
    if (isGiven(input.serialNumber) && !isGiven(input.gtin))
      read.reject('gtin', 'A serial number is unique within a GTIN only: give the gtin too.')
    const key = isGiven(input.idempotencyKey) ? read.operationKey(input.idempotencyKey) : undefined
    const hash = tagHash ?? read.reject('input', 'TAG_PEPPER is not set, so that no tag can be bound.')
    return { tokenId, uid, batchId: input.batchId, item, key, hash }
  }

  return mutation(readBinding, async ({ tokenId, uid, batchId, item = null, key, hash }, context) => {
    const allowed = await mayBind(tags, { tokenId, uid, batchId, item })
    if (!allowed.ok) return rejectedAt(fieldOf[allowed.about], allowed.message)
    const commitment = hash(uid)
    const request = { kind: 'bindTag', tokenId, tagHash: commitment } as const
    // The pair is bound once, so that it is the key where the caller gives none: a repeat registers the tag that was bound.
    const result =
      key === undefined
        ? await executeSigned(request, `bind:${tokenId}:${commitment}`, context)
        : await executeWrite(request, key, context)
    if (!result.ok || !result.mined) return productPayload(tokenId, result, context)
    const registered = await tags.importTag({ uid, epoch: allowed.epoch, batchId, tokenId, ...item })
    if (registered.outcome === 'refused') {
      const message = `The tag is bound on chain, but the registry of tags refused it (${registered.because}).`
      return rejected([{ field: 'uid', message }], result.txHash)
    }
    if (item !== null) await itemChanged(tokenId)
    return productPayload(tokenId, result, context)
  })
}

/** NXP's tags have 7 bytes, of which the first is 04. */
function readUid(text: string, read: InputReader): Uint8Array | null {
  const uid = /^04[0-9a-fA-F]{12}$/.test(text) ? parseHex(text) : null
  return uid ?? read.reject('uid', 'A UID has 14 hex digits and begins with 04.')
}
