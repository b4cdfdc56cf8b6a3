import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { chainUnavailable } from '../../lib/errors.ts'
import { RpcError } from '../rpc/answer.ts'
import { ReadFailure, retryAfterMs } from '../rpc/failover.ts'
import { createRetryingSource, type RetryingSource } from './retrying-source.ts'

describe('the source of the indexer', () => {
  const limited = () => chainUnavailable(new ReadFailure('limited', [new RpcError('busy', 'status 429')]))
  const faulty = () => chainUnavailable(new ReadFailure('faulty', [new RpcError('fault', 'status 500')]))
  /** The breaker is open, so that no provider was asked. */
  const unasked = () => chainUnavailable(new ReadFailure('every provider is behind or its breaker open'))

  /** Reads a head before which these failures come, and counts the reads. */
  async function readAfter(...failures: Error[]) {
    let reads = 0
    const head = async () => {
      reads += 1
      const failure = failures.shift()
      if (failure !== undefined) throw failure
      return 'head'
    }
    const source = createRetryingSource({ head } as unknown as RetryingSource, new AbortController().signal)
    return [await source.head().catch((error: Error) => error.message), reads]
  }

  it('repeats a read that a limit of the rate refused, also while the breaker that the limit opened is open', async () => {
    assert.deepEqual(await readAfter(limited()), ['head', 2])
    assert.deepEqual(await readAfter(limited(), unasked(), unasked()), ['head', 4])
  })

  it('pauses for as long as every provider asks for', async () => {
    const asking = (...pauses: number[]) =>
      chainUnavailable(
        new ReadFailure(
          'limited',
          pauses.map((ms) => new RpcError('busy', 'status 429', undefined, ms)),
        ),
      )
    const pauseBefore = async (failure: Error) => {
      const begun = performance.now()
      assert.deepEqual(await readAfter(failure), ['head', 2])
      return performance.now() - begun
    }
    assert.ok((await pauseBefore(asking(700, 600))) >= 599)
    assert.equal(retryAfterMs(asking(30_000, 0)), 0)
    assert.equal(retryAfterMs(unasked()), 0)
  })

  it('does not repeat another failure', async () => {
    assert.deepEqual(await readAfter(faulty()), [faulty().message, 1])
    assert.deepEqual(await readAfter(limited(), faulty()), [faulty().message, 2])
  })
})
