import assert from 'node:assert/strict'
import { it } from 'node:test'
import { isOfLostNode } from './nodes.ts'

it('an error of a lost node is known by its code and its text', () => {
  // Every text was seen while nodes of a cluster were killed under load.
  for (const message of [
    'postmaster was shut down, exiting',
    'server closed the connection unexpectedly\n\tThis probably means the server terminated abnormally',
    'terminating connection due to unexpected postmaster exit',
    'failure on connection marked as essential: 127.0.0.1:5433',
  ])
    assert.ok(isOfLostNode({ code: 'XX000', message }), message)
  assert.ok(isOfLostNode({ code: '58030', message: 'failed to COPY to shard 102008 on 127.0.0.1:5433' }))
  assert.equal(isOfLostNode({ code: 'XX000', message: 'could not open relation with OID 16384' }), false)
  assert.equal(isOfLostNode({ code: '58030', message: 'could not read file "base/5/1259"' }), false)
  assert.equal(isOfLostNode({ message: 'server closed the connection unexpectedly' }), false)
})
