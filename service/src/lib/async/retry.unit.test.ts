import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { backoff, retry } from './retry.ts'

/** Work that fails `times` times. */
function failing(times: number) {
  let runs = 0
  return {
    runs: () => runs,
    work: async () => {
      runs += 1
      if (runs <= times) throw new Error(`failure ${runs}`)
      return 'done'
    },
  }
}

const isRetryable = () => true

describe('a retry', () => {
  it('runs the work again after each pause until it succeeds', async () => {
    const { work, runs } = failing(2)
    const seen: unknown[] = []
    const onRetry = (error: unknown, pauseMs: number) => seen.push([(error as Error).message, pauseMs])
    assert.equal(await retry(work, { pausesMs: [1, 2, 3], isRetryable, onRetry }), 'done')
    assert.equal(runs(), 3)
    assert.deepEqual(seen, [
      ['failure 1', 1],
      ['failure 2', 2],
    ])
  })

  it('throws the last error when no pause is left', async () => {
    const { work, runs } = failing(9)
    await assert.rejects(retry(work, { pausesMs: [1, 1], isRetryable }), /failure 3/)
    assert.equal(runs(), 3)
  })

  it('throws an error that is not retryable at once', async () => {
    const { work, runs } = failing(9)
    await assert.rejects(retry(work, { pausesMs: [1], isRetryable: () => false }), /failure 1/)
    assert.equal(runs(), 1)
  })

  it('ends when its signal aborts during a pause', async () => {
    const over = new AbortController()
    const { work, runs } = failing(9)
    const options = {
      pausesMs: backoff(600_000, 600_000),
      isRetryable,
      signal: over.signal,
      onRetry: () => over.abort(),
    }
    await assert.rejects(retry(work, options), /failure 1/)
    assert.equal(runs(), 1)
  })
})

describe('a backoff', () => {
  it('doubles up to its limit', () => {
    const pauses = backoff(50, 300)
    assert.deepEqual(
      Array.from({ length: 5 }, () => pauses.next().value),
      [50, 100, 200, 300, 300],
    )
  })

  it('grows by another factor', () => {
    const pauses = backoff(100, 300, 1.5)
    assert.deepEqual(
      Array.from({ length: 5 }, () => pauses.next().value),
      [100, 150, 225, 300, 300],
    )
  })
})
