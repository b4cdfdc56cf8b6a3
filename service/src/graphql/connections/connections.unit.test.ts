import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createLog } from '../../lib/log.ts'
import { createConnections } from './connections.ts'

const open = () => createConnections({ keys: { active: async () => [] }, log: createLog(() => {}, 'silent') })

describe('the connections of a host', () => {
  it('have room for 10,000 together, whether their keys were shown or not', async () => {
    const connections = open()
    const all = Array.from({ length: 10_000 }, () => ({ close: () => {} }))
    const [connection = assert.fail()] = all
    for (const [index, one] of all.entries()) {
      assert.ok(connections.hasRoom(), `${index} are open`)
      connections.add(one)
      if (index % 200 === 0) assert.equal(connections.claim(one, `key ${index}`), null)
    }
    assert.equal(connections.hasRoom(), false)
    connections.remove(connection)
    assert.ok(connections.hasRoom())
    for (const one of all) connections.remove(one)
    await connections.close()
  })

  it('have no room once the host stops, also before the last one has ended', async () => {
    const connections = open()
    const reasons: string[] = []
    const connection = { close: (because: string) => void reasons.push(because) }
    connections.add(connection)
    const closed = connections.close()
    assert.deepEqual([reasons, connections.hasRoom()], [['stopping'], false])
    connections.remove(connection)
    await closed
    assert.deepEqual([connections.count(), connections.hasRoom()], [0, false])
  })
})
