import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { singleFlight } from './single-flight.ts'

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
