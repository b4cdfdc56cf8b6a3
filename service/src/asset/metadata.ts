/**
 * Metadata texts in memory in front of the store. A text under its hash never changes, so a hit is true for ever; a miss is
 * not remembered, because the text may be stored at any moment. Hashes asked for in one turn go to the store together.
 */
import type { Hex } from '@touchstone/verdict'

/** What the store answers: the canonical texts of those hashes that it knows. */
export type MetadataTexts = { readonly getMany: (hashes: readonly Hex[]) => Promise<ReadonlyMap<Hex, string>> }

const mostAtOnce = 500

/** At most `maxLength` characters of texts are kept, least recently used first out. */
export function cachedMetadata(source: MetadataTexts, maxLength = 32_000_000) {
  const texts = new Map<Hex, string>()
  let length = 0
  let waiting: { hashes: Set<Hex>; found: Promise<ReadonlyMap<Hex, string>> } | undefined

  function keep(hash: Hex, text: string): void {
    if (texts.has(hash)) return
    texts.set(hash, text)
    length += text.length
    for (const [oldest, dropped] of texts) {
      if (length <= maxLength) break
      texts.delete(oldest)
      length -= dropped.length
    }
  }

  /** Joins the question that goes out at the end of this turn. */
  function ask(hash: Hex): Promise<ReadonlyMap<Hex, string>> {
    if (waiting === undefined || waiting.hashes.size >= mostAtOnce) {
      const hashes = new Set<Hex>()
      const found = new Promise<void>((resolve) => setImmediate(resolve)).then(() => {
        if (waiting?.hashes === hashes) waiting = undefined
        return source.getMany([...hashes])
      })
      waiting = { hashes, found }
    }
    waiting.hashes.add(hash)
    return waiting.found
  }

  return {
    /** The text of a hash, or undefined when the store has none. It throws what the store throws. */
    async get(hash: Hex): Promise<string | undefined> {
      const known = texts.get(hash)
      if (known !== undefined) {
        texts.delete(hash)
        texts.set(hash, known)
        return known
      }
      const text = (await ask(hash)).get(hash)
      if (text !== undefined) keep(hash, text)
      return text
    },
  }
}
