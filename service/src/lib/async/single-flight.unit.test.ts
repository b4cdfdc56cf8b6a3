import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createRefresh, singleFlight } from './single-flight.ts'

describe('a single flight', () => {
  it('runs once for callers that ask at the same time, and again afterwards', async () => {
    let runs = 0
    const read = singleFlight(async () => (runs += 1))
    assert.deepEqual(await Promise.all([read(), read(), read()]), [1, 1, 1])
    assert.equal(await read(), 2)
  })

  it('runs at the same time for different keys', async () => {
    const asked: string[] = []
    const find = singleFlight(
      async (name: string, _detail: number) => asked.push(name),
      (name) => name,
    )
    await Promise.all([find('a', 1), find('b', 2), find('a', 3)])
    assert.deepEqual(asked, ['a', 'b'])
  })

  it('shares a failure and forgets it', async () => {
    let runs = 0
    const read = singleFlight((): Promise<number> => {
      runs += 1
      if (runs === 1) throw new Error('at first')
      return Promise.resolve(runs)
    })
    const both = await Promise.allSettled([read(), read()])
    assert.deepEqual(
      both.map(({ status }) => status),
      ['rejected', 'rejected'],
    )
    assert.equal(await read(), 2)
  })

  it('shows the call that is in flight', async () => {
    const read = singleFlight(async (key: string) => key, String)
    assert.equal(read.inFlight('a'), undefined)
    const flight = read('a')
    assert.equal(read.inFlight('a'), flight)
    assert.equal(read.inFlight('b'), undefined)
    await flight
    assert.equal(read.inFlight('a'), undefined)
  })
})

describe('a refresh', () => {
  /** `answer` ends the reading that is under way. */
  function slowReading() {
    const state = { now: 0, begun: 0, readings: 0, answer: () => {} }
    const read = async () => {
      const began = state.now
      state.readings += 1
      await new Promise<void>((done) => (state.answer = done))
      state.begun = began
    }
    const refresh = createRefresh(
      read,
      () => state.begun,
      () => state.now,
    )
    return { state, refresh }
  }

  it('reads where the last reading began too long ago, once for all who ask', async () => {
    const { state, refresh } = slowReading()
    state.now = 9
    await refresh(10)
    assert.equal(state.readings, 0)
    state.now = 10
    const all = Promise.all([refresh(10), refresh(10)])
    state.answer()
    await all
    assert.equal(state.readings, 1)
  })

  it('takes the own reading of a caller, however long it took', async () => {
    const { state, refresh } = slowReading()
    state.now = 10
    const own = refresh(10)
    state.now = 99
    state.answer()
    await own
    assert.equal(state.readings, 1)
  })

  it('repeats a reading of another caller that is too old by its answer', async () => {
    const { state, refresh } = slowReading()
    state.now = 10
    const first = refresh(10)
    state.now = 15
    const joined = refresh(10)
    state.now = 20
    state.answer()
    await first
    assert.equal(state.readings, 2)
    state.answer()
    await joined
    assert.equal(state.begun, 20)
  })
})
