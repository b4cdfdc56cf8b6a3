/**
 * The assets that are known to be true at the head (spec §4.1). What makes an entry true is the follower's business: it
 * says what to drop, and an entry that is dropped for whatever reason is dead in the same moment. Bounded: the entry that
 * was not asked for longest falls out first; tokens that do not exist have a small table of their own, for one head only,
 * so that asking for them one by one cannot push out what others need.
 */
import type { AssetRecord, Hex } from '@touchstone/verdict'
import type { Found } from './read-calls.ts'

/** What the chain holds of one token. `live` turns false as soon as it may no longer be shown at a newer head. */
export type CachedAsset = {
  readonly tokenId: bigint
  readonly record: AssetRecord
  readonly metadataHash: Hex | null
  readonly live: boolean
}

export type AssetCache = Readonly<{
  get: (tokenId: bigint) => CachedAsset | undefined
  /** Without counting as a use. */
  peek: (tokenId: bigint) => CachedAsset | undefined
  /** `head` is the number of the block that the entry is known to be true at. */
  put: (tokenId: bigint, found: Found, head: bigint) => CachedAsset
  drop: (tokenId: bigint) => void
  /** Drops what was put in at heads above this number. */
  dropAbove: (head: bigint) => void
  /** Drops what is true for one head only. */
  nextHead: () => void
  flush: () => void
  /** The next so many entries of a round through all of them; fewer at the end of a round. */
  round: (count: number) => readonly bigint[]
  size: () => number
}>

type Entry = { -readonly [Name in keyof CachedAsset]: CachedAsset[Name] } & { readonly head: bigint }

/** An asset that nobody may show at another block than the one it was read at. */
export function deadAsset(tokenId: bigint, { record, metadataHash }: Found): CachedAsset {
  return { tokenId, record, metadataHash, live: false }
}

/** `entries` is the number of assets, `missing` that of tokens that do not exist. */
export function createAssetCache({
  entries,
  missing = 1024,
}: Readonly<{ entries: number; missing?: number }>): AssetCache {
  const assets = new Map<bigint, Entry>()
  const absent = new Map<bigint, Entry>()
  let pending: bigint[] = []

  function get(tokenId: bigint): CachedAsset | undefined {
    const entry = assets.get(tokenId)
    if (entry === undefined) return absent.get(tokenId)
    // A Map keeps the order of insertion: in front stands what was not asked for longest.
    assets.delete(tokenId)
    assets.set(tokenId, entry)
    return entry
  }

  function put(tokenId: bigint, { record, metadataHash }: Found, head: bigint): CachedAsset {
    drop(tokenId)
    const table = record.state === 0 ? absent : assets
    const bound = table === absent ? missing : entries
    if (bound <= 0) return deadAsset(tokenId, { record, metadataHash })
    const entry: Entry = { tokenId, record, metadataHash, live: true, head }
    table.set(tokenId, entry)
    if (table.size > bound) {
      const [oldest] = table.values()
      if (oldest !== undefined) remove(table, oldest)
    }
    return entry
  }

  function drop(tokenId: bigint): void {
    const entry = assets.get(tokenId)
    if (entry !== undefined) remove(assets, entry)
    const none = absent.get(tokenId)
    if (none !== undefined) remove(absent, none)
  }

  function nextHead(): void {
    for (const entry of absent.values()) entry.live = false
    absent.clear()
  }

  return {
    get,
    peek: (tokenId) => assets.get(tokenId) ?? absent.get(tokenId),
    put,
    drop,
    dropAbove(head) {
      for (const table of [assets, absent]) {
        for (const entry of table.values()) if (entry.head > head) remove(table, entry)
      }
    },
    nextHead,
    flush() {
      for (const entry of assets.values()) entry.live = false
      assets.clear()
      nextHead()
    },
    round(count) {
      if (pending.length === 0) pending = [...assets.keys()]
      return pending.splice(-count).filter((tokenId) => assets.has(tokenId))
    },
    size: () => assets.size + absent.size,
  }
}

function remove(table: Map<bigint, Entry>, entry: Entry): void {
  entry.live = false
  table.delete(entry.tokenId)
}
