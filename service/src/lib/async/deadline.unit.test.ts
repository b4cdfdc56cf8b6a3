import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
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

  it('rejects with the reason of a signal and removes its listener', async () => {
    const over = new AbortController()
    const result = withDeadline(never, Infinity, { signal: over.signal })
    assert.equal(getEventListeners(over.signal, 'abort').length, 1)
    over.abort(new Error('closing'))
    await assert.rejects(result, /closing/)
    assert.equal(getEventListeners(over.signal, 'abort').length, 0)
    await assert.rejects(withDeadline(never, 1_000, { signal: over.signal }), /closing/)
  })

  it('keeps neither timer nor listener behind a result', async () => {
    const { signal } = new AbortController()
    const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
    const before = timers()
    await withDeadline(Promise.resolve(), 60_000, { signal })
    assert.equal(timers(), before)
    assert.equal(getEventListeners(signal, 'abort').length, 0)
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
