import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createBatcher } from './batch.ts'
import { currentSpan, type Span, withSpan } from './span.ts'

/** Returns a batcher whose batches end by hand. */
function held(
  options: {
    maxItems?: number
    concurrency?: number
    overlapAfterMs?: number
    weightOf?: (item: number) => number
  } = {},
) {
  const batches: { items: readonly number[]; end: (fault?: Error) => void }[] = []
  const add = createBatcher<number, number>({
    maxItems: 100,
    ...options,
    run: (items) =>
      new Promise((resolve, reject) =>
        batches.push({ items, end: (fault) => (fault ? reject(fault) : resolve(items.map((item) => -item))) }),
      ),
  })
  const turn = () => new Promise((resolve) => setImmediate(resolve))
  return { add, batches, turn }
}

describe('a batcher', () => {
  it('starts a lonely item at once, and joins what comes while it runs', async () => {
    const { add, batches, turn } = held()
    const first = add(1)
    await turn()
    const others = [add(2), add(3)]
    await turn()
    assert.deepEqual(
      batches.map(({ items }) => items),
      [[1]],
    )
    batches[0]?.end()
    assert.equal(await first, -1)
    await turn()
    assert.deepEqual(batches[1]?.items, [2, 3])
    batches[1]?.end()
    assert.deepEqual(await Promise.all(others), [-2, -3])
  })

  it('has the next batch on its way before callers of the last one go on', async () => {
    const events: string[] = []
    const add = createBatcher<number, number>({
      maxItems: 1,
      // A pool hands out its connection in the next tick.
      run: (items) =>
        new Promise((resolve) =>
          process.nextTick(() => {
            events.push(`sent ${items.join()}`)
            setImmediate(resolve, items)
          }),
        ),
    })
    await Promise.all([1, 2, 3].map((item) => add(item).then(() => events.push(`answered ${item}`))))
    assert.deepEqual(events, ['sent 1', 'sent 2', 'answered 1', 'sent 3', 'answered 2', 'answered 3'])
  })

  it('joins the items of one turn', async () => {
    const { add, batches, turn } = held()
    void add(1)
    void add(2)
    await turn()
    assert.deepEqual(batches[0]?.items, [1, 2])
  })

  it('keeps to its limits of items and of batches', async () => {
    const { add, batches, turn } = held({ maxItems: 2, concurrency: 2 })
    for (const item of [1, 2, 3, 4, 5]) void add(item)
    await turn()
    assert.deepEqual(
      batches.map(({ items }) => items),
      [
        [1, 2],
        [3, 4],
      ],
    )
    batches[1]?.end()
    await turn()
    assert.deepEqual(batches[2]?.items, [5])
  })

  it('fills a batch while another runs, until that has run for long enough', async ({ mock }) => {
    mock.timers.enable({ apis: ['setTimeout'] })
    const { add, batches, turn } = held({ maxItems: 2, concurrency: 2, overlapAfterMs: 10 })
    const started = () => batches.map(({ items }) => items)
    for (const item of [1, 2, 3]) void add(item)
    await turn()
    void add(4)
    await turn()
    mock.timers.tick(9)
    assert.deepEqual(started(), [[1, 2]])
    mock.timers.tick(1)
    assert.deepEqual(started().slice(1), [[3, 4]])
    void add(5)
    mock.timers.tick(10)
    assert.equal(batches.length, 2, 'no more batches than the limit')
    batches[0]?.end()
    await turn()
    assert.deepEqual(started().slice(2), [[5]], 'the newest has run for long enough')
    for (const batch of batches) batch.end()
    await turn()
    void add(6)
    await turn()
    assert.deepEqual(started().slice(3), [[6]], 'a lonely item starts at once')
  })

  it('counts the weight of items, and lets a heavy one go alone', async () => {
    const { add, batches, turn } = held({ maxItems: 4, concurrency: 9, weightOf: (item) => item })
    for (const item of [1, 3, 9, 2]) void add(item)
    await turn()
    assert.deepEqual(
      batches.map(({ items }) => items),
      [[1, 3], [9], [2]],
    )
  })

  it('rejects the items of a batch that fails, and runs the next one', async () => {
    const { add, batches, turn } = held()
    const failing = assert.rejects(add(1), /broken/)
    await turn()
    const next = add(2)
    batches[0]?.end(new Error('broken'))
    await failing
    await turn()
    batches[1]?.end()
    assert.equal(await next, -2)
  })

  it('runs a batch as a part of the first span, and links the others to it', async () => {
    const links: string[] = []
    const names = new Map<Span | undefined, string>()
    const spanOf = (name: string): Span => {
      const link = (other: Span) => void links.push(`${name} → ${names.get(other)}`)
      const span = { child: () => span, set: () => {}, link, fail: () => {}, end: () => {} }
      names.set(span, name)
      return span
    }
    const seen: (string | undefined)[] = []
    const add = createBatcher<number, number>({
      maxItems: 2,
      run: async (items) => {
        seen.push(names.get(currentSpan()))
        return items
      },
    })
    const [a, b, c] = [spanOf('a'), spanOf('b'), spanOf('c')]
    await Promise.all([
      withSpan(a, () => add(1)),
      withSpan(b, () => add(2)),
      add(3),
      withSpan(c, () => add(4)),
      withSpan(a, () => withSpan(undefined, () => add(5))),
    ])
    assert.deepEqual(seen, ['a', 'c', undefined])
    assert.deepEqual(links, ['b → a'])
  })
})
