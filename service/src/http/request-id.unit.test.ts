import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { requestIdFor } from './request-id.ts'

describe('the id of a request', () => {
  it('is the client’s own when that is short and plain', () => {
    for (const given of ['a', '0af7651916cd43dd8448eb211c80319c', 'trace_1.2-3', 'x'.repeat(64)])
      assert.equal(requestIdFor(given), given)
  })

  it('is a new one for everything else, which stands in no header and no log', () => {
    for (const given of [undefined, '', 'x'.repeat(65), 'a b', 'a\nb', '<script>', 'ä', '$(id)', 'a, b'])
      assert.match(requestIdFor(given), /^[a-z0-9]+-[a-z0-9]+$/)
  })

  it('never comes twice', () => {
    const ids = Array.from({ length: 10_000 }, () => requestIdFor(undefined))
    assert.equal(new Set(ids).size, ids.length)
  })
})
