import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ServiceError } from '../errors.ts'
import { patiently } from './patience.ts'

const gone = () => new ServiceError('CHAIN_UNAVAILABLE', 'The chain could not be read.')

/** Fails so many times, then answers. */
function failing(times: number, error: () => Error) {
  let tries = 0
  return Object.assign(() => (++tries <= times ? Promise.reject(error()) : Promise.resolve('answer')), {
    tries: () => tries,
  })
}

describe('patience with the chain', () => {
  const said: string[] = []
  const io = { err: (line: string) => void said.push(line), signal: new AbortController().signal }

  it('asks again and says so', async () => {
    assert.equal(await patiently(io, failing(2, gone), [1, 2, 3]), 'answer')
    assert.deepEqual(
      said,
      [1, 2].map((ms) => `  The chain does not answer; trying again in ${ms / 1_000} s …`),
    )
  })

  it('ends after the last pause with the fault itself', async () => {
    const work = failing(9, gone)
    await assert.rejects(patiently(io, work, [1, 1]), /The chain could not be read/)
    assert.equal(work.tries(), 3)
  })

  it('is for the chain only, and for whoever still waits', async () => {
    const other = failing(1, () => new Error('something else'))
    await assert.rejects(patiently(io, other, [1]), /something else/)
    assert.equal(other.tries(), 1)
    const left = failing(1, gone)
    await assert.rejects(patiently({ ...io, signal: AbortSignal.abort() }, left, [1]))
    assert.equal(left.tries(), 1)
  })
})
