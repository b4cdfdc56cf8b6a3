import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createLog, lineWriter, withErrorCount } from './log.ts'

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

it('drops the lines of a log that are not read or cannot be written, and writes how many there were', () => {
  const written: string[] = []
  let fault: Error | null = null
  const stream = {
    writableLength: 0,
    write(text: string, done: unknown): boolean {
      if (fault === null) written.push(text)
      if (typeof done === 'function') done(fault)
      return true
    },
  }
  const log = createLog(lineWriter(stream))
  log.info('one')
  stream.writableLength = 9_000_000
  for (let n = 0; n < 3; n++) log.info('lost')
  stream.writableLength = 0
  log.info('two')
  fault = new Error('ENOSPC')
  for (let n = 0; n < 4; n++) log.info('lost')
  fault = null
  log.info('three')
  log.info('four')
  const lines = written.map((text) => JSON.parse(text) as Record<string, unknown>)
  assert.deepEqual(
    lines.map(({ event, lines: count }) => count ?? event),
    ['one', 3, 'two', 4, 'three', 'four'],
  )
  assert.ok(written.every((text) => text.endsWith('}\n')))
})
