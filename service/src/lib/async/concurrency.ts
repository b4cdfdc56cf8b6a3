/** Limits on how much work runs at the same time. */

/**
 * Maps items with at most `limit` calls of `work` in flight. Returns the results in the order of the items.
 * The first failure rejects and starts no further item; calls in flight are not awaited.
 */
export async function mapConcurrently<T, R>(
  items: readonly T[],
  limit: number,
  work: (item: T, index: number) => Promise<R>,
): Promise<R[]> {
  const results: R[] = []
  let next = 0
  async function runNext(): Promise<void> {
    while (next < items.length) {
      const index = next++
      try {
        results[index] = await work(items[index] as T, index)
      } catch (error) {
        next = items.length
        throw error
      }
    }
  }
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, runNext))
  return results
}

/** Runs `work` after every earlier work of the same key has settled. */
export type KeyedQueue<Key> = <T>(key: Key, work: () => Promise<T>) => Promise<T>

/** Creates a queue that runs one work at a time per key. The failure of one work does not affect the next. */
export function createKeyedQueue<Key>(): KeyedQueue<Key> {
  const tails = new Map<Key, Promise<unknown>>()
  return (key, work) => {
    const result = (tails.get(key) ?? Promise.resolve()).then(work)
    const tail: Promise<unknown> = result
      .catch(() => {})
      .finally(() => {
        if (tails.get(key) === tail) tails.delete(key)
      })
    tails.set(key, tail)
    return result
  }
}

/** Creates a queue that runs one work at a time. */
export function createQueue(): <T>(work: () => Promise<T>) => Promise<T> {
  const inTurn = createKeyedQueue<null>()
  return (work) => inTurn(null, work)
}
