import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createBreaker } from './circuit-breaker.ts'

function brokenAt(): { breaker: ReturnType<typeof createBreaker>; clock: { ms: number } } {
  const clock = { ms: 1000 }
  const breaker = createBreaker({ faults: 5, openMs: 5000, now: () => clock.ms })
  for (let fault = 0; fault < 5; fault++) breaker.fault()
  return { breaker, clock }
}

describe('a breaker', () => {
  it('opens after five faults in a row, not before', () => {
    const breaker = createBreaker({ faults: 5, openMs: 5000, now: () => 0 })
    for (let fault = 0; fault < 4; fault++) breaker.fault()
    assert.deepEqual([breaker.state(), breaker.admit()], ['closed', true])
    breaker.fault()
    assert.deepEqual([breaker.state(), breaker.admit()], ['open', false])
  })

  it('counts only faults in a row', () => {
    const breaker = createBreaker({ faults: 5, openMs: 5000, now: () => 0 })
    for (let fault = 0; fault < 20; fault++) {
      if (fault % 4 === 0) breaker.answered()
      breaker.fault()
    }
    assert.equal(breaker.state(), 'closed')
  })

  it('lets one attempt through after five seconds', () => {
    const { breaker, clock } = brokenAt()
    clock.ms += 4999
    assert.equal(breaker.admit(), false)
    clock.ms += 1
    assert.equal(breaker.state(), 'ready')
    assert.deepEqual([breaker.admit(), breaker.admit(), breaker.state()], [true, false, 'open'])
  })

  it('closes when that attempt is answered', () => {
    const { breaker, clock } = brokenAt()
    clock.ms += 5000
    breaker.admit()
    breaker.answered()
    assert.deepEqual([breaker.state(), breaker.admit(), breaker.admit()], ['closed', true, true])
  })

  it('stays open for five more seconds when that attempt fails', () => {
    const { breaker, clock } = brokenAt()
    clock.ms += 5000
    breaker.admit()
    breaker.fault()
    clock.ms += 4999
    assert.equal(breaker.admit(), false)
    clock.ms += 1
    assert.equal(breaker.admit(), true)
  })
})
