import assert from 'node:assert/strict'
import { describe, it, mock } from 'node:test'
import { DeadlineError, msUntil, withDeadline } from './deadline.ts'

const never = new Promise<never>(() => {})

/** Runs `test` with timers that only `tick` moves. */
async function withMockTimers(test: (tick: (ms: number) => void) => Promise<void>): Promise<void> {
  mock.timers.enable({ apis: ['setTimeout', 'setImmediate'] })
  try {
    await test((ms) => {
      mock.timers.tick(ms)
      mock.timers.tick(0) // the immediate behind the timer
    })
  } finally {
    mock.timers.reset()
  }
}

describe('a deadline', () => {
  it('passes on a result and a rejection that come in time', async () => {
    assert.equal(await withDeadline(Promise.resolve(7), 1_000), 7)
    await assert.rejects(withDeadline(Promise.reject(new Error('no')), 1_000), /^Error: no$/)
  })

  it('rejects with DeadlineError when the work is late', () =>
    withMockTimers(async (tick) => {
      const result = withDeadline(never, 50)
      tick(50)
      await assert.rejects(result, (error) => error instanceof DeadlineError && /within 50 ms/.test(error.message))
    }))

  it('returns the fallback, or throws the error, of its caller', () =>
    withMockTimers(async (tick) => {
      const fallback = withDeadline(never, 50, { onTimeout: () => null })
      const failure = withDeadline(never, 50, {
        onTimeout: () => {
          throw new RangeError('late')
        },
      })
      tick(50)
      assert.equal(await fallback, null)
      await assert.rejects(failure, RangeError)
    }))

  it('ignores a rejection after the deadline', () =>
    withMockTimers(async (tick) => {
      const { promise, reject } = Promise.withResolvers<never>()
      const result = withDeadline(promise, 50, { onTimeout: () => 'late' })
      tick(50)
      reject(new Error('ignored'))
      assert.equal(await result, 'late')
    }))

  it('keeps no timer behind a result', async () => {
    const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
    const before = timers()
    await withDeadline(Promise.resolve(), 60_000)
    assert.equal(timers(), before)
  })

  it('is none when it is infinite', () =>
    withMockTimers(async (tick) => {
      const { promise, resolve } = Promise.withResolvers<string>()
      const result = withDeadline(promise, Infinity)
      tick(10_000)
      resolve('in the end')
      assert.equal(await result, 'in the end')
    }))
})

describe('the time until a moment', () => {
  it('is never negative', () => {
    assert.equal(msUntil(performance.now() - 1), 0)
    assert.ok(msUntil(performance.now() + 60_000) > 50_000)
  })
})
