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

it('drops the lines of a log that are not read, and writes how many there were', () => {
  const written: string[] = []
  const stream = { writableLength: 0, write: (text: string) => written.push(text) > 0 }
  const write = lineWriter(stream)
  const log = createLog(write)
  log.info('one')
  stream.writableLength = 9_000_000
  for (let n = 0; n < 3; n++) log.info('lost')
  stream.writableLength = 0
  log.info('two')
  log.info('three')
  const lines = written.map((text) => JSON.parse(text) as Record<string, unknown>)
  assert.deepEqual(
    lines.map(({ event, lines: count }) => (count === undefined ? event : [event, count])),
    ['one', ['lines were dropped, because they were not read in time', 3], 'two', 'three'],
  )
  assert.ok(written.every((text) => text.endsWith('}\n')))
})
