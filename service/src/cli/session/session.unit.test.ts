import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ServiceError } from '../../lib/errors.ts'
import { retryChain } from './session.ts'

const unavailable = () => new ServiceError('CHAIN_UNAVAILABLE', 'The chain could not be read.')

/** Makes a work that fails `times` times, then succeeds. */
function failing(times: number, error: () => Error) {
  let tries = 0
  return Object.assign(() => (++tries <= times ? Promise.reject(error()) : Promise.resolve('answer')), {
    tries: () => tries,
  })
}

describe('retries of the chain', () => {
  const printed: string[] = []
  const io = { err: (line: string) => void printed.push(line), signal: new AbortController().signal }

  it('are announced', async () => {
    assert.equal(await retryChain(io, failing(2, unavailable), [1, 2, 3]), 'answer')
    assert.deepEqual(
      printed,
      [1, 2].map((ms) => `  The chain does not answer; trying again in ${ms / 1_000} s …`),
    )
  })

  it('end after the last pause with the error itself', async () => {
    const work = failing(9, unavailable)
    await assert.rejects(retryChain(io, work, [1, 1]), /The chain could not be read/)
    assert.equal(work.tries(), 3)
  })

  it('happen for chain errors only, and not after the caller has left', async () => {
    const other = failing(1, () => new Error('something else'))
    await assert.rejects(retryChain(io, other, [1]), /something else/)
    assert.equal(other.tries(), 1)
    const left = failing(1, unavailable)
    await assert.rejects(retryChain({ ...io, signal: AbortSignal.abort() }, left, [1]))
    assert.equal(left.tries(), 1)
  })
})
