import assert from 'node:assert/strict'
import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import { describe, it } from 'node:test'
import { drainOf } from './control-client.ts'

describe('a long output', () => {
  it('goes on when its reader has taken it, and when the command is interrupted', async () => {
    for (const end of ['read', 'closed', 'interrupted'] as const) {
      const stream = new PassThrough({ highWaterMark: 4 })
      const interrupted = new AbortController()
      stream.write('longer than that')
      const drained = drainOf(stream, interrupted.signal)
      let isDrained = false
      void drained.then(() => (isDrained = true))
      await new Promise(setImmediate)
      assert.equal(isDrained, false)
      if (end === 'read') stream.resume()
      else if (end === 'closed') stream.destroy()
      else interrupted.abort()
      await drained
      assert.equal(stream.writableNeedDrain && !stream.destroyed, end === 'interrupted')
    }
  })

  it('does not wait for a reader after the command was interrupted', async () => {
    const stream = new PassThrough({ highWaterMark: 4 })
    stream.write('longer than that')
    await drainOf(stream, AbortSignal.abort())
    stream.destroy()
    if (!stream.closed) await once(stream, 'close')
  })
})
