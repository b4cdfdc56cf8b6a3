/** The catalogue of the demonstration: its products on the chain, their tags in the store, and what `npm start` shows of them. */
import type { Hex } from '@touchstone/verdict'
import { chainId, type Parts } from '../parts.ts'
import { canonicalMetadata } from '../store/metadata.ts'
import { fillCatalogue } from './catalogue.ts'

/** A product of the demonstration; `uid` of its software tag, null where it carries none. */
export type DemoItem = {
  readonly tokenId: bigint
  readonly state: string
  readonly name: string
  readonly gtin: string
  readonly serial: string
  readonly uid: Uint8Array | null
}

/** The batch of the demonstration's software tags. */
export const demoBatch = 'demo'

/** The UID of the demo tag of a product, by its place in the catalogue: 04, then «DEMO» in ASCII. */
export function demoUid(index: number): Uint8Array {
  return Uint8Array.of(0x04, 0x44, 0x45, 0x4d, 0x4f, index >> 8, index & 0xff)
}

/** Mints, binds and registers what is missing; a second start finds everything and changes nothing. */
export async function openDemoCatalogue({
  parts,
  rpcUrl,
  progress,
}: {
  readonly parts: Parts
  readonly rpcUrl: string
  readonly progress: (line: string) => void
}): Promise<DemoItem[]> {
  const { fleet, tagHash, metadata, items: named, tags, writer, verdicts, contract } = parts
  if (tagHash === undefined) throw new Error('The demonstration needs TAG_PEPPER.')
  if (fleet.record(demoBatch) === undefined) {
    const created = await fleet.create({ id: demoBatch, demo: true })
    if (!created.ok) throw new Error(created.error)
  }
  const items = await fillCatalogue({
    rpcUrl,
    contract: contract.toLowerCase() as Hex,
    chainId,
    writer,
    tagHashFor: (index) => tagHash(demoUid(index)),
    metadata: {
      async put(text) {
        const canonical = canonicalMetadata(text)
        if (!canonical.ok) throw new Error(canonical.message)
        await metadata.put(canonical)
        return canonical.hash
      },
    },
    progress,
  })
  return Promise.all(
    items.map(async ({ index, tokenId, gtin, serial, bound }) => {
      await named.register({ tokenId, gtin, serial })
      if (bound) await tags.importTag({ uid: demoUid(index), epoch: 0, batchId: demoBatch, tokenId })
      const answer = await verdicts.answer(tokenId)
      const { state = 'NONE', untrusted } = answer?.verdict ?? {}
      return {
        tokenId,
        state,
        name: untrusted?.name ?? '(no metadata)',
        gtin,
        serial,
        uid: bound ? demoUid(index) : null,
      }
    }),
  )
}
