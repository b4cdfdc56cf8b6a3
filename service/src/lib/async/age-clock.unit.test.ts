import assert from 'node:assert/strict'
import { beforeEach, describe, it, type TestContext } from 'node:test'
import { createAgeClock } from './age-clock.ts'

describe('the clock of ages', () => {
  let wall = 0
  let ticks = 0
  beforeEach((context) => {
    ;[wall, ticks] = [1_795_227_313_000, 5_000]
    const { mock } = context as TestContext
    mock.method(Date, 'now', () => wall)
    mock.method(performance, 'now', () => ticks)
  })
  const pass = (ms: number) => ((wall += ms), (ticks += ms))

  it('runs with both clocks, and ignores what they drift apart', () => {
    const now = createAgeClock()
    const began = now()
    for (let n = 0; n < 1_000; n += 1) {
      pass(100)
      wall += n % 2 === 0 ? 1 : -1
      now()
    }
    assert.equal(now() - began, 100_000)
  })

  it('counts the time of a suspended machine once', () => {
    const now = createAgeClock()
    const began = now()
    wall += 28_800_000
    assert.equal(now() - began, 28_800_000)
    pass(1_000)
    assert.equal(now() - began, 28_801_000)
  })

  it('goes on where the wall clock is set back, and counts the way ahead again', () => {
    const now = createAgeClock()
    const began = now()
    wall -= 3_600_000
    assert.equal(now() - began, 0)
    pass(1_000)
    assert.equal(now() - began, 1_000)
    wall += 3_600_000
    assert.equal(now() - began, 3_601_000)
  })
})
