import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createLog, withErrorCount } from './log.ts'

describe('a log that counts errors', () => {
  it('counts the lines of level error of all its parts, and writes them as before', () => {
    const lines: string[] = []
    let errors = 0
    const log = withErrorCount(
      createLog((line) => lines.push(line)),
      () => (errors += 1),
    )
    log.warn('provider fault')
    log.error('request failed')
    log.child('graphql').child('sockets').error('socket failed', { code: 'INTERNAL' })
    assert.equal(errors, 2)
    const [, , last] = lines.map((line) => JSON.parse(line) as Record<string, unknown>)
    assert.deepEqual([last?.['part'], last?.['event'], last?.['code']], ['sockets', 'socket failed', 'INTERNAL'])
  })
})
