/** A map that keeps the entries used last. */
export type Recent<Key, Value> = {
  readonly get: (key: Key) => Value | undefined
  readonly set: (key: Key, value: Value) => void
  readonly delete: (key: Key) => void
}

export function createRecent<Key, Value>(maxEntries: number): Recent<Key, Value> {
  const entries = new Map<Key, Value>() // the least recently used first
  return {
    get(key) {
      const value = entries.get(key)
      if (value === undefined) return undefined
      entries.delete(key)
      entries.set(key, value)
      return value
    },
    set(key, value) {
      entries.delete(key)
      entries.set(key, value)
      if (entries.size > maxEntries) for (const oldest of entries.keys()) return void entries.delete(oldest)
    },
    delete: (key) => void entries.delete(key),
  }
}
