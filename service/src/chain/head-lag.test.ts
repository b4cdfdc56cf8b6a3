import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createHeadLag } from './head-lag.ts'

describe('a provider is behind', () => {
  it('from 25 blocks on', () => {
    const lag = createHeadLag(() => 0)
    lag.saw(0, 1000n)
    lag.saw(1, 976n)
    assert.deepEqual([lag.isBehind(0), lag.isBehind(1)], [false, false])
    lag.saw(1, 975n)
    assert.deepEqual([lag.isBehind(0), lag.isBehind(1)], [false, true])
  })

  it('not because it was asked five seconds earlier', () => {
    const clock = { ms: 0 }
    const lag = createHeadLag(() => clock.ms)
    lag.saw(0, 1000n)
    clock.ms = 5000
    lag.saw(1, 1000n + 25n)
    assert.equal(lag.isBehind(0), false)
    lag.saw(1, 1000n + 50n)
    assert.equal(lag.isBehind(0), true)
  })

  it('not because of a head seen long ago', () => {
    const clock = { ms: 0 }
    const lag = createHeadLag(() => clock.ms)
    lag.saw(0, 1000n)
    clock.ms = 15_001
    lag.saw(1, 10n)
    assert.equal(lag.isBehind(1), false)
  })

  it('not if it is the only one, or was never asked', () => {
    const lag = createHeadLag(() => 0)
    lag.saw(0, 1000n)
    lag.saw(0, 3n)
    assert.deepEqual([lag.isBehind(0), lag.isBehind(1)], [false, false])
  })
})
