/** A software tag of a demo batch, personalised as a chip of that batch would be (spec §4.4). Never for a batch in production. */
import type { BatchRecord } from './batch.ts'
import { embeddedKey } from './aes.ts'
import { fileKeyOf, metaKeyOf } from './derivations.ts'
import { createSoftwareTag, type SoftwareTag } from './software-tag.ts'
import type { TagTemplate } from './template.ts'

/** `counter` is how often the chip was read so far. Throws a `RangeError` for a batch that is not a demo batch. */
export async function createDemoTag(options: {
  batch: BatchRecord
  uid: Uint8Array
  template: TagTemplate
  counter?: number
  random?: (length: number) => Uint8Array
}): Promise<SoftwareTag> {
  const { batch, uid, template, ...rest } = options
  if (!batch.demo) throw new RangeError('Only tags of demo batches can be emulated.')
  const fileMaster = embeddedKey(batch.fileMaster)
  const metaKey = batch.metaKey ?? (await metaKeyOf(batch.derivation, batch.fileMaster))
  if (metaKey === null) throw new RangeError(`The batch ${batch.id} has no metaRead key.`)
  const fileKey = (await fileKeyOf({ ...batch, fileMaster }, uid)) ?? batch.fileMaster
  return createSoftwareTag({ uid, metaKey, fileKey, ndef: template.ndef, settings: template.settings, ...rest })
}
