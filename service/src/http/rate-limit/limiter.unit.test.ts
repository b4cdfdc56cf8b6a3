import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { createRateLimiter } from './limiter.ts'

describe('a rate limiter', () => {
  it('allows exactly its limit in a window, and says what is left and until when', () => {
    let now = 1_000_000
    const limiter = createRateLimiter({ limit: 2, windowSeconds: 60, now: () => now })
    const policy = { name: '"default"', text: '"default";q=2;w=60' }
    assert.deepEqual(limiter.take('a'), { limit: 2, remaining: 1, resetSeconds: 60, allowed: true, policy })
    now += 30_500
    assert.deepEqual(limiter.take('a'), { limit: 2, remaining: 0, resetSeconds: 30, allowed: true, policy })
    assert.deepEqual(limiter.take('a'), { limit: 2, remaining: 0, resetSeconds: 30, allowed: false, policy })
    assert.equal(limiter.take('b').allowed, true)
    now += 29_500
    assert.deepEqual(limiter.take('a'), { limit: 2, remaining: 1, resetSeconds: 60, allowed: true, policy })
  })

  it('allows a list whole or not at all, and consumes nothing for one that does not fit', () => {
    const limiter = createRateLimiter({ limit: 5, now: () => 0 })
    const outcomes = [3, 3, 6, 2, 1].map((count) => {
      const { allowed, remaining } = limiter.take('a', count)
      return [allowed, remaining]
    })
    assert.deepEqual(outcomes, [
      [true, 2],
      [false, 2],
      [false, 2],
      [true, 0],
      [false, 0],
    ])
  })

  it('never allows more than twice its limit within one window length, whenever the requests come', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(5_000), { maxLength: 300 }), fc.integer({ min: 1, max: 10 }), (gaps, limit) => {
        let now = 0
        const limiter = createRateLimiter({ limit, windowSeconds: 10, now: () => now })
        const allowed: number[] = []
        for (const gap of gaps) {
          now += gap
          if (limiter.take('a').allowed) allowed.push(now)
        }
        return allowed.every((from) => allowed.filter((at) => at >= from && at < from + 10_000).length <= 2 * limit)
      }),
    )
  })

  it('begins a new window when the clock was set back', () => {
    let now = 10_000_000
    const limiter = createRateLimiter({ limit: 1, now: () => now })
    limiter.take('a')
    now -= 3_600_000
    assert.equal(limiter.take('a').resetSeconds, 60)
  })

  it('forgets the oldest window when its table is full, never the newest', () => {
    const limiter = createRateLimiter({ limit: 1, maxClients: 3, now: () => 0 })
    for (const client of ['a', 'b', 'c', 'd']) limiter.take(client)
    assert.equal(limiter.take('d').allowed, false)
    assert.equal(limiter.take('c').allowed, false)
    assert.equal(limiter.take('a').allowed, true)
  })
})
