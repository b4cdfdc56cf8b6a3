/** Joins calls into batches. A call that comes while a batch runs waits for the next one, so that batches grow with the load. */
import { currentSpan, type Span, withSpan } from './span.ts'

type BatchOptions<T, R> = Readonly<{
  /** Returns a result for each item, in their order. */
  run: (items: readonly T[]) => Promise<readonly R[]>
  maxItems: number
  /** The room that an item takes of `maxItems`; one that takes more goes alone. Default: 1. */
  weightOf?: (item: T) => number
  /** Batches that run at the same time. Default: 1. */
  concurrency?: number
  /** A batch starts beside a running one when that one has run for so many milliseconds. Default: 0. */
  overlapAfterMs?: number
  /** Returns whether one item may have caused this error. Each item of such a batch runs again alone. Default: none. */
  isOfOneItem?: (error: unknown) => boolean
}>

/** Returns a function that hands one item to the next batch. A lonely item starts at once; a batch that fails rejects all of its items, unless `isOfOneItem`. */
export function createBatcher<T, R>(options: BatchOptions<T, R>): (item: T) => Promise<R> {
  const { run, maxItems, weightOf = () => 1, concurrency = 1, overlapAfterMs = 0, isOfOneItem = () => false } = options
  type Waiting = PromiseWithResolvers<R> & { readonly item: T; readonly span: Span | undefined }
  const waiting: Waiting[] = []
  let running = 0
  let isHeld = false
  let hold: NodeJS.Timeout | undefined

  function add(item: T): Promise<R> {
    const one: Waiting = { ...Promise.withResolvers<R>(), item, span: currentSpan() }
    waiting.push(one)
    // Items of one turn of the event loop go together.
    if (waiting.length === 1 && mayStart()) setImmediate(startBatches)
    return one.promise
  }

  function mayStart(): boolean {
    return running === 0 || (running < concurrency && !isHeld)
  }

  function startBatches(): void {
    while (waiting.length > 0 && mayStart()) {
      running += 1
      if (overlapAfterMs > 0) holdNext()
      void runBatch(takeBatch())
    }
  }

  function holdNext(): void {
    clearTimeout(hold)
    isHeld = true
    hold = setTimeout(() => {
      isHeld = false
      startBatches()
    }, overlapAfterMs)
  }

  function takeBatch(): Waiting[] {
    let weight = 0
    const end = waiting.findIndex(({ item }) => (weight += weightOf(item)) > maxItems)
    return waiting.splice(0, end === -1 ? waiting.length : Math.max(1, end))
  }

  async function runBatch(batch: readonly Waiting[]): Promise<void> {
    const settle = await outcomeOf(batch)
    running -= 1
    const isLast = waiting.length === 0
    startBatches()
    // The next batch is on its way before callers go on, so that it runs meanwhile.
    if (isLast) settle()
    else setImmediate(settle)
  }

  /** Runs a batch and returns what settles its items. */
  async function outcomeOf(batch: readonly Waiting[]): Promise<() => void> {
    const span = spanOfBatch(batch.map((one) => one.span))
    try {
      const results = await withSpan(span, () => run(batch.map(({ item }) => item)))
      if (results.length !== batch.length) throw new Error(`a batch of ${batch.length} has ${results.length} results`)
      return () => batch.forEach(({ resolve }, index) => resolve(results[index] as R))
    } catch (error) {
      if (batch.length === 1 || !isOfOneItem(error)) return () => batch.forEach(({ reject }) => reject(error))
      const outcomes = await Promise.all(batch.map((one) => outcomeOf([one])))
      return () => outcomes.forEach((settle) => settle())
    }
  }

  return add
}

/** A batch is a part of the first span that waits for it. The others link to that one. */
export function spanOfBatch(spans: readonly (Span | undefined)[]): Span | undefined {
  const first = spans.find((span) => span !== undefined)
  if (first !== undefined) for (const span of spans) if (span !== first) span?.link(first)
  return first
}
