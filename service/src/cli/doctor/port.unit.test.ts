import assert from 'node:assert/strict'
import { createServer, type AddressInfo } from 'node:net'
import { describe, it } from 'node:test'
import { bindError, isListening } from './port.ts'

describe('a port', () => {
  it('of a program that listens is taken, and free when the program has ended', async () => {
    const server = createServer().listen(0, '127.0.0.1')
    await new Promise((resolve) => server.once('listening', resolve))
    const { port } = server.address() as AddressInfo
    assert.deepEqual([await isListening('127.0.0.1', port), await bindError('127.0.0.1', port)], [true, 'EADDRINUSE'])
    await new Promise((resolve) => server.close(resolve))
    assert.deepEqual([await isListening('127.0.0.1', port), await bindError('127.0.0.1', port)], [false, null])
  })

  it('at an address of another machine cannot be bound', async () => {
    assert.equal(await bindError('192.0.2.1', 8080), 'EADDRNOTAVAIL')
  })
})
