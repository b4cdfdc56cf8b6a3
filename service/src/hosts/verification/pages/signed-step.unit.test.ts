import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Hono } from 'hono'
import { createLog } from '../../../lib/log.ts'
import { createRequestHelpers, type Env } from '../request.ts'
import { stepRoute } from './signed-step.ts'

describe('a step whose body stops half-way', () => {
  it('is 408, and the page says that nothing was sent', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const app = new Hono<Env>()
    const helpers = createRequestHelpers({ clientKey: () => '', log: createLog(() => {}, 'silent') })
    stepRoute(app, helpers, '/claim', { limiter: undefined, refusals: {}, take: () => assert.fail('a step was taken') })
    const { promise: isRead, resolve: read } = Promise.withResolvers<void>()
    const answer = app.request('/claim', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: new ReadableStream({ pull: () => read() }, { highWaterMark: 0 }),
      duplex: 'half',
    } as RequestInit)
    await isRead
    t.mock.timers.tick(5_000)
    const response = await answer
    assert.deepEqual([response.status, await response.json()], [408, { reason: 'refused' }])
  })
})
