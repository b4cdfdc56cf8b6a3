import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { chainUnavailable } from '../../lib/errors.ts'
import { RpcError } from '../rpc/answer.ts'
import { ReadFailure } from '../rpc/failover.ts'
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

  it('does not repeat another failure', async () => {
    assert.deepEqual(await readAfter(faulty()), [faulty().message, 1])
    assert.deepEqual(await readAfter(limited(), faulty()), [faulty().message, 2])
  })
})
