import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { poll, sleep } from './sleep.ts'

describe('a pause', () => {
  it('ends when its signal aborts, without an error', async () => {
    const over = new AbortController()
    const paused = sleep(600_000, { signal: over.signal })
    over.abort()
    await paused
    await sleep(600_000, { signal: over.signal })
  })
})

describe('polling', () => {
  it('returns the first answer', async () => {
    let asked = 0
    const answer = () => ((asked += 1) === 3 ? 'ready' : undefined)
    assert.equal(await poll(answer, { everyMs: 1, timeoutMs: 60_000 }), 'ready')
    assert.equal(asked, 3)
  })

  it('takes 0 and an empty text for answers', async () => {
    assert.equal(await poll(() => 0, { everyMs: 1, timeoutMs: 0 }), 0)
    assert.equal(await poll(async () => '', { everyMs: 1, timeoutMs: 0 }), '')
  })

  it('ends at its timeout, after a last call', async () => {
    const began = performance.now()
    const askedAt: number[] = []
    const never = () => askedAt.push(performance.now() - began) === 0
    assert.equal(await poll(never, { everyMs: 600_000, timeoutMs: 25 }), undefined)
    assert.equal(askedAt.length, 2)
    // Timers count whole milliseconds.
    assert.ok((askedAt[1] ?? 0) >= 24, `the last call was at ${askedAt[1]} ms`)
  })

  it('pauses for no negative time after a call that outlasts the timeout', async () => {
    const warned: string[] = []
    const note = ({ message }: Error) => warned.push(message)
    process.on('warning', note)
    const outlasts = () => {
      for (const began = performance.now(); performance.now() - began < 10;);
    }
    await poll(outlasts, { everyMs: 1, timeoutMs: 1 })
    process.off('warning', note)
    assert.deepEqual(warned, [])
  })

  it('rejects with the error of a call', async () => {
    const fails = () => Promise.reject(new Error('no'))
    await assert.rejects(poll(fails, { everyMs: 1, timeoutMs: 1 }), /no/)
  })
})
