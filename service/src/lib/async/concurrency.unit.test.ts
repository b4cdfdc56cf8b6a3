import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  createAdaptiveBatches,
  createAdaptiveLimit,
  createKeyedQueue,
  createQueue,
  eachConcurrently,
  mapConcurrently,
} from './concurrency.ts'

const turn = () => new Promise<void>((resolve) => setImmediate(resolve))

describe('a concurrent map', () => {
  it('returns the results in the order of the items and keeps to its limit', async () => {
    let running = 0
    let most = 0
    const results = await mapConcurrently([3, 1, 2, 0], 2, async (item, index) => {
      most = Math.max(most, (running += 1))
      for (let turns = 0; turns < item; turns += 1) await turn()
      running -= 1
      return `${index}:${item}`
    })
    assert.deepEqual(results, ['0:3', '1:1', '2:2', '3:0'])
    assert.equal(most, 2)
  })

  it('of no items is empty', async () => {
    assert.deepEqual(await mapConcurrently([], 4, () => Promise.reject(new Error('not called'))), [])
  })

  it('starts nothing after the first failure', async () => {
    const started: number[] = []
    const result = mapConcurrently([0, 1, 2, 3, 4], 2, async (item) => {
      started.push(item)
      await turn()
      if (item === 1) throw new Error('item 1')
    })
    await assert.rejects(result, /item 1/)
    for (let turns = 0; turns < 10; turns += 1) await turn()
    assert.ok(started.length <= 3)
  })
})

describe('batches that adapt', () => {
  const clock = { ms: 0 }
  const finalError = new Error('final')
  /** Sends ten items where the other side takes `most` at once. Returns the sizes of the batches. */
  function batchesOf() {
    const sendAll = createAdaptiveBatches<number>({ isFinal: (error) => error === finalError, now: () => clock.ms })
    return async (most: number, failure = new Error('too many')) => {
      const sizes: number[] = []
      const results = sendAll([0, 1, 2, 3, 4, 5, 6, 7, 8, 9], (batch) => {
        sizes.push(batch.length)
        return batch.length > most ? Promise.reject(failure) : Promise.resolve(batch.map((item) => item * 2))
      })
      return { sizes, found: await results.catch((error: unknown) => error) }
    }
  }
  const doubled = [0, 2, 4, 6, 8, 10, 12, 14, 16, 18]

  it('go whole where they pass, else in halves, and keep the size that passed for ten minutes', async () => {
    const send = batchesOf()
    assert.deepEqual(await send(10), { sizes: [10], found: doubled })
    assert.deepEqual(await send(3), { sizes: [10, 5, 3, 2, 3, 2], found: doubled })
    assert.deepEqual(await send(3), { sizes: [3, 3, 3, 1], found: doubled })
    clock.ms += 600_001
    assert.deepEqual(await send(10), { sizes: [10], found: doubled })
  })

  it('go one by one for a minute only', async () => {
    const send = batchesOf()
    await send(1)
    assert.equal((await send(10)).sizes.length, 10)
    clock.ms += 60_001
    assert.deepEqual(await send(10), { sizes: [10], found: doubled })
  })

  it('fail once a single item does, or where the error is final', async () => {
    const failure = new Error('away')
    assert.deepEqual(await batchesOf()(0, failure), { sizes: [10, 5, 3, 2, 1], found: failure })
    assert.deepEqual(await batchesOf()(9, finalError), { sizes: [10], found: finalError })
  })
})

describe('work for each item', () => {
  it('is done for all, and its failures are returned', async () => {
    const done: number[] = []
    const failures = await eachConcurrently([0, 1, 2, 3], 1, async (item) => {
      await turn()
      if (item % 2 === 0) throw new Error(`item ${item}`)
      done.push(item)
    })
    assert.deepEqual(
      [done, failures.map(String)],
      [
        [1, 3],
        ['Error: item 0', 'Error: item 2'],
      ],
    )
  })
})

describe('a keyed queue', () => {
  it('runs one work at a time per key, in order, even after a failure', async () => {
    const inTurn = createKeyedQueue<string>()
    const log: string[] = []
    const step = (name: string, turns: number) => async () => {
      log.push(`${name} begins`)
      for (let count = 0; count < turns; count += 1) await turn()
      log.push(`${name} ends`)
      if (name === 'a1') throw new Error('a1 failed')
      return name
    }
    const [a1, a2, b1] = await Promise.allSettled([
      inTurn('a', step('a1', 3)),
      inTurn('a', step('a2', 1)),
      inTurn('b', step('b1', 1)),
    ])
    assert.deepEqual([a1.status, a2.status, b1.status], ['rejected', 'fulfilled', 'fulfilled'])
    assert.deepEqual(log, ['a1 begins', 'b1 begins', 'b1 ends', 'a1 ends', 'a2 begins', 'a2 ends'])
    assert.equal(await inTurn('a', async () => 'again'), 'again')
  })
})

describe('a keyed queue of several at a time', () => {
  it('begins works in their order, and no more than so many of a key run', async () => {
    const inTurn = createKeyedQueue<string>(2)
    const begun: string[] = []
    let [running, most] = [0, 0]
    const step = (name: string) => async () => {
      begun.push(name)
      most = Math.max(most, (running += 1))
      await turn()
      running -= 1
      if (name === 'a1') throw new Error('a1 failed')
    }
    await Promise.allSettled(['a0', 'a1', 'a2', 'a3', 'a4'].map((name) => inTurn('a', step(name))))
    assert.deepEqual([begun, most], [['a0', 'a1', 'a2', 'a3', 'a4'], 2])
  })
})

describe('a queue', () => {
  it('runs one work at a time, in order', async () => {
    const inTurn = createQueue()
    const log: string[] = []
    const step = (name: string) => async () => {
      log.push(`${name} begins`)
      await turn()
      log.push(`${name} ends`)
    }
    await Promise.all([inTurn(step('a')), inTurn(step('b'))])
    assert.deepEqual(log, ['a begins', 'a ends', 'b begins', 'b ends'])
  })
})

describe('an adaptive limit', () => {
  it('halves when it was too much, and rises again with what is done', async () => {
    const limit = createAdaptiveLimit(8)
    let running = 0
    const most = async (works: number) => {
      let seen = 0
      const work = async () => {
        seen = Math.max(seen, (running += 1))
        await Promise.resolve()
        running -= 1
      }
      await Promise.all(Array.from({ length: works }, () => limit.run(work)))
      return seen
    }
    assert.equal(await most(20), 8)
    limit.tooMuch()
    assert.equal(await most(4), 4)
    for (let time = 0; time < 9; time += 1) limit.tooMuch()
    assert.equal(await most(1), 1)
    await most(100)
    assert.equal(await most(20), 8)
    await assert.rejects(
      limit.run(() => Promise.reject(new Error('no'))),
      /no/,
    )
    assert.equal(running, 0)
  })
})
