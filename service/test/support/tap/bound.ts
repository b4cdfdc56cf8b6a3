/** Products of a world with software tags that the chain binds to them. */
import type { Metadata } from '../../../src/assets/metadata.ts'
import type { BatchRecord } from '../../../src/tap/keys/batch.ts'
import type { World } from '../world.ts'
import { newUid, testTag } from './tags.ts'

type ChainWorld = Pick<World, 'components' | 'mint' | 'write'>

/** Makes a demo batch, whose keys are in memory. */
export async function demoBatchOf({ components }: Pick<World, 'components'>, id = 'test'): Promise<BatchRecord> {
  const made = await components.tagKeys.create({ id, demo: true })
  if (!made.ok) throw new Error(made.error)
  return made.value as BatchRecord
}

/** Binds a tag to a new product. Returns its commitment too. */
export async function bindTagTo(world: ChainWorld, uid: Uint8Array, metadata?: Metadata) {
  const tokenId = await world.mint(metadata)
  const tagHash = world.components.tagHash?.(uid)
  if (tagHash === undefined) throw new Error('The world has no TAG_PEPPER.')
  await world.write({ kind: 'bindTag', tokenId, tagHash })
  return { tokenId, tagHash }
}

/** A new product with a tag of the batch. */
export async function boundTag(world: ChainWorld, batch: BatchRecord, metadata?: Metadata) {
  const tag = await testTag(batch, { uid: newUid() })
  return { tag, ...(await bindTagTo(world, tag.uid, metadata)) }
}
