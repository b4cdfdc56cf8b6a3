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

/** Runs `work` for every item with at most `limit` calls in flight. Returns the failures, of which none stops another item. */
export async function eachConcurrently<T>(
  items: readonly T[],
  limit: number,
  work: (item: T) => Promise<unknown>,
): Promise<readonly unknown[]> {
  const failures: unknown[] = []
  await mapConcurrently(items, limit, (item) => work(item).catch((error: unknown) => failures.push(error)))
  return failures
}

/**
 * Limits how much work runs at one time, and adapts to what the other side takes. A call of `tooMuch` halves the limit, each work that is
 * done raises it a little, up to `most`.
 */
export function createAdaptiveLimit(most: number) {
  let limit = most
  let running = 0
  const waiting: (() => void)[] = []

  function startNext(): void {
    while (waiting.length > 0 && running < Math.floor(limit)) {
      running += 1
      waiting.shift()?.()
    }
  }

  return {
    tooMuch: () => void (limit = Math.max(1, limit / 2)),
    async run<T>(work: () => Promise<T>): Promise<T> {
      await new Promise<void>((resolve) => {
        waiting.push(resolve)
        startNext()
      })
      try {
        const done = await work()
        limit = Math.min(most, limit + 1 / limit)
        return done
      } finally {
        running -= 1
        startNext()
      }
    },
  }
}

/** A size of batches that passed after a larger one failed holds for so long. Two that pass alone only may have failed by chance. */
const sizeHoldsMs = 600_000
const oneHoldsMs = 60_000
/** Batches in flight at one time where one would be too large. */
const mostBatches = 4

/**
 * Returns a function that sends items in batches, and learns the size that the other side takes. A batch that fails is sent again in halves,
 * down to one item, unless `isFinal` returns that smaller ones would fail too. Results are in the order of the items. `mostHoldMs` returns
 * how long the size of a half that passed is kept at most, after this error of the whole batch.
 */
export function createAdaptiveBatches<T>({
  isFinal,
  now,
}: {
  readonly isFinal: (error: unknown, size: number) => boolean
  /** Monotonic milliseconds. */
  readonly now: () => number
}) {
  let known = { size: Infinity, until: Infinity }

  return async function sendAll<R>(
    items: readonly T[],
    send: (batch: readonly T[]) => Promise<readonly R[]>,
    mostHoldMs: (error: unknown) => number = () => Infinity,
  ): Promise<readonly R[]> {
    if (now() > known.until) known = { size: Infinity, until: Infinity }
    const { size } = known
    if (items.length > size) {
      const batches = Array.from({ length: Math.ceil(items.length / size) }, (_, at) =>
        items.slice(at * size, (at + 1) * size),
      )
      return (await mapConcurrently(batches, mostBatches, (batch) => sendAll(batch, send, mostHoldMs))).flat()
    }
    try {
      return await send(items)
    } catch (error) {
      if (items.length < 2 || isFinal(error, items.length)) throw error
      const half = Math.ceil(items.length / 2)
      const first = await sendAll(items.slice(0, half), send, mostHoldMs)
      const holdMs = Math.min(half === 1 ? oneHoldsMs : sizeHoldsMs, mostHoldMs(error))
      if (half < known.size && holdMs > 0) known = { size: half, until: now() + holdMs }
      return [...first, ...(await sendAll(items.slice(half), send, mostHoldMs))]
    }
  }
}

/** Runs `work` once few enough earlier works of the same key are left. */
type KeyedQueue<Key> = <T>(key: Key, work: () => Promise<T>) => Promise<T>

/** Creates a queue that begins works in their order, and runs `atOnce` at a time per key. The failure of one work does not affect the next. */
export function createKeyedQueue<Key>(atOnce = 1): KeyedQueue<Key> {
  const queues = new Map<Key, { running: number; readonly waiting: (() => void)[] }>()
  return async (key, work) => {
    const queue = queues.get(key) ?? { running: 0, waiting: [] }
    queues.set(key, queue)
    const isFull = queue.running >= atOnce
    if (!isFull) queue.running += 1
    await (isFull ? new Promise<void>((resolve) => queue.waiting.push(resolve)) : undefined)
    try {
      return await work()
    } finally {
      const next = queue.waiting.shift()
      if (next !== undefined) next()
      else if ((queue.running -= 1) === 0) queues.delete(key)
    }
  }
}

/** Runs `work` after every earlier work has settled. */
export type Queue = <T>(work: () => Promise<T>) => Promise<T>

/** Creates a queue that runs one work at a time. */
export function createQueue(): Queue {
  const inTurn = createKeyedQueue<null>()
  return (work) => inTurn(null, work)
}
