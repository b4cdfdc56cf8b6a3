/** The extensions of errors that clients receive. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { CostError, maxPlanCost } from '../db/cost.ts'
import { createLog } from '../lib/log.ts'
import { createFormatError, faultError, graphqlError } from './errors.ts'

describe('an error that a client receives', () => {
  const lines: string[] = []
  const format = createFormatError(createLog((line) => lines.push(line)))
  const extensionsOf = (error: unknown) => ({ ...format(faultError(error), 'r1').extensions })

  it('has the id of its request where it is internal, whether it was thrown as such or is masked', () => {
    const internal = { code: 'INTERNAL', requestId: 'r1' }
    assert.deepEqual(extensionsOf(graphqlError('INTERNAL', 'The events could not be read.')), internal)
    assert.deepEqual(extensionsOf(new Error('a secret')), internal)
    assert.match(lines.join(), /"requestId":"r1"/)
    assert.doesNotMatch(format(faultError(new Error('a secret')), 'r1').message, /secret/)
  })

  it('has the cost that it was refused for, and the position to go on from', () => {
    assert.deepEqual(extensionsOf(new CostError(5_000)), { code: 'TOO_COMPLEX', cost: 5_000, maxCost: maxPlanCost })
    const gone = graphqlError('EVENTS_GONE', 'The events are gone.', { oldest: '7-a' })
    assert.deepEqual(extensionsOf(gone), { code: 'EVENTS_GONE', oldest: '7-a' })
  })
})
