/**
 * The assets that hold at the head (spec §4.1). The cache invalidator decides which entries to drop; an entry that is dropped for
 * any reason stops being current at once. Least recently used assets are evicted. Tokens that do not exist have a small table
 * of their own, for one head only, so that asking for them one by one cannot evict real assets.
 */
import { LRUCache } from 'lru-cache'
import type { AssetRecord, Hex } from '@touchstone/verdict'
import type { DecodedState } from './calls/abi.ts'

/** The state of one token. `current` turns false as soon as it may no longer be shown at a newer head. */
export type CachedAsset = {
  readonly tokenId: bigint
  readonly record: AssetRecord
  readonly metadataHash: Hex | null
  readonly current: boolean
}

export type AssetCache = ReturnType<typeof createAssetCache>

type Entry = Omit<CachedAsset, 'current'> & { current: boolean; readonly head: bigint }

/** Returns an asset that may be shown only at the block it was read at. */
export function toSnapshot(tokenId: bigint, { record, metadataHash }: DecodedState): CachedAsset {
  return { tokenId, record, metadataHash, current: false }
}

/** Tokens that do not exist, at most. */
const mostAbsent = 1_024

/** Keeps so many assets at most, at least one. */
export function createAssetCache(mostAssets: number) {
  const assets = createTable(mostAssets)
  const absent = createTable(mostAbsent)
  let pending: bigint[] = []

  function drop(tokenId: bigint): void {
    assets.delete(tokenId)
    absent.delete(tokenId)
  }

  return {
    get: (tokenId: bigint): CachedAsset | undefined => assets.get(tokenId) ?? absent.peek(tokenId),
    /** Does not count as a use. */
    peek: (tokenId: bigint): CachedAsset | undefined => assets.peek(tokenId) ?? absent.peek(tokenId),
    /** `head` is the number of the block at which the entry holds. */
    put(tokenId: bigint, decoded: DecodedState, head: bigint): CachedAsset {
      drop(tokenId)
      const { record, metadataHash } = decoded
      const entry: Entry = { tokenId, record, metadataHash, current: true, head }
      const table = record.state === 0 ? absent : assets
      table.set(tokenId, entry)
      return entry
    },
    drop,
    /** Drops the entries that were put in at heads above this number. */
    dropAbove(head: bigint): void {
      for (const table of [assets, absent])
        for (const entry of Array.from(table.values())) if (entry.head > head) table.delete(entry.tokenId)
    },
    /** Drops the entries that hold for one head only. */
    nextHead: () => absent.clear(),
    flush(): void {
      assets.clear()
      absent.clear()
    },
    /** Returns the next `count` entries of a round through all of them; fewer at the end of a round. */
    round(count: number): readonly bigint[] {
      if (pending.length === 0) pending = [...assets.rkeys()]
      return pending.splice(-count).filter((tokenId) => assets.has(tokenId))
    },
    size: () => assets.size + absent.size,
  }
}

function createTable(max: number): LRUCache<bigint, Entry> {
  return new LRUCache({ max, dispose: (entry) => void (entry.current = false) })
}
