/** A process without file descriptors, and a listener that cannot accept a connection. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { Server as NetServer } from 'node:net'
import { describe, it } from 'node:test'
import { promisify } from 'node:util'
import { listen } from './listener.ts'

describe('a process that has no file descriptor left', () => {
  it('notes it, because the system refuses its connections without a word', async () => {
    const program = `
      import { openSync } from 'node:fs'
      import { watchFileDescriptors } from ${JSON.stringify(import.meta.resolve('./listener.ts'))}
      setTimeout(() => {}, 3_600_000)
      let isSpent = false
      watchFileDescriptors((code) => { process.stdout.write(code + isSpent); process.exit() }, 20)
      setTimeout(() => {
        try { for (;;) openSync('/dev/null') } catch { isSpent = true }
      }, 200)`
    const command = ['-c', 'ulimit -n 60; exec "$0" --input-type=module -e "$1"', process.execPath, program]
    const { stdout } = await promisify(execFile)('sh', command)
    assert.equal(stdout, 'EMFILEtrue')
  })

  it('goes on where the system has none for a new connection', async (t) => {
    const servers: NetServer[] = []
    const original = Reflect.get(NetServer.prototype, 'listen')
    t.mock.method(NetServer.prototype, 'listen', function (this: NetServer, ...given: Parameters<NetServer['listen']>) {
      servers.push(this)
      return original.apply(this, given)
    })
    const faults: string[] = []
    const listener = await listen({
      name: 'test host',
      host: '127.0.0.1',
      port: 0,
      onRequest: (_, response) => void response.end('well'),
      onFault: (error) => void faults.push((error as NodeJS.ErrnoException).code ?? ''),
    })
    for (let n = 0; n < 2; n += 1) servers[0]?.emit('error', Object.assign(new Error('accept'), { code: 'ENFILE' }))
    assert.deepEqual(faults, ['ENFILE', 'ENFILE'])
    assert.equal(await (await fetch(`http://127.0.0.1:${listener.port}`)).text(), 'well')
    await listener.close(0)
  })
})
