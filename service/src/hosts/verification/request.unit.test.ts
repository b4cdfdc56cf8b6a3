import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { chainUnavailable, ServiceError } from '../../lib/errors.ts'
import { createLog } from '../../lib/log.ts'
import { createRequestHelpers } from './request.ts'

describe('a fault of a request', () => {
  it('is an error in the log where it is unexpected, which an alert counts', () => {
    const lines: string[] = []
    const { faultOf } = createRequestHelpers({ clientKey: () => '', log: createLog((line) => lines.push(line)) })
    faultOf(new TypeError('not a function'))
    faultOf(new ServiceError('INTERNAL', 'The tap ledger gave no answer.'))
    faultOf(chainUnavailable('away'))
    const levels = lines.map((line) => (JSON.parse(line) as { readonly level: string }).level)
    assert.deepEqual(levels, ['error', 'error', 'warn'])
  })
})
