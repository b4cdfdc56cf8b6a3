import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createRatePause } from './rate-pause.ts'

describe('the pause after a limit of the rate', () => {
  /** A pause on a clock of its own, with the chance that it takes. */
  function start(chance = 0) {
    const clock = { ms: 1_000 }
    const pause = createRatePause(
      () => clock.ms,
      () => chance,
    )
    const meet = (askedMs?: number) => {
      pause.limited(askedMs)
      const leftMs = pause.leftMs()
      clock.ms += leftMs
      return leftMs
    }
    return { pause, clock, meet }
  }

  it('doubles with each limit up to 3.2 seconds, and gets shorter with each answer', () => {
    const { pause, meet } = start()
    assert.deepEqual(
      Array.from({ length: 9 }, () => meet()),
      [50, 100, 200, 400, 800, 1_600, 3_200, 3_200, 3_200],
    )
    pause.passed()
    assert.equal(pause.leftMs(), 0)
    assert.equal(meet(), 400)
    for (let answers = 0; answers < 20; answers++) pause.passed()
    assert.equal(meet(), 50)
  })

  it('is as long as the other side asks, with up to a half added by chance', () => {
    assert.equal(start().meet(2_000), 2_000)
    assert.equal(start(0.5).meet(2_000), 2_500)
    assert.equal(start().meet(0), 50)
  })

  it('grows once for requests that were under way together', () => {
    const { pause, clock, meet } = start()
    for (let request = 0; request < 16; request++) pause.limited()
    assert.equal(pause.leftMs(), 50)
    pause.limited(700)
    assert.equal(pause.leftMs(), 700)
    clock.ms += 700
    assert.equal(meet(), 100)
  })

  it('is stuck after five limits without an answer', () => {
    const { pause, meet } = start()
    for (let limit = 1; limit <= 5; limit++) {
      assert.equal(pause.isStuck(), false)
      meet()
    }
    assert.equal(pause.isStuck(), true)
    pause.passed()
    assert.equal(pause.isStuck(), false)
  })
})
