/** The fast path and the router answer the same request with the same bytes (spec §4.1), also where processes share the budget. */
import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { getRequestListener } from '@hono/node-server'
import fc from 'fast-check'
import { createBreaker } from '../../../src/lib/async/circuit-breaker.ts'
import { createRateLimiter, type RateLimiter } from '../../../src/http/rate-limit/limiter.ts'
import { identified } from '../../../src/http/request.ts'
import { createSharedLimits } from '../../../src/http/rate-limit/shared-limiter.ts'
import { createLog } from '../../../src/lib/log.ts'
import { openRedisWindows } from '../../../src/http/rate-limit/redis.ts'
import { verificationHost, verificationListener } from '../../../src/hosts/verification/host.ts'
import { skipRedis, startRedis } from '../../support/database/redis.ts'
import { raw, serve } from '../../support/http.ts'
import { useOpened } from '../../support/opened.ts'
import { startWorld, type World } from '../../support/world.ts'

type Reply = { status: number; headers: Record<string, unknown>; body: string }
type Opened = {
  limiter: (scope: string) => RateLimiter
  /** Returns the part of an answer that does not depend on the time. */
  steady: (reply: Reply) => Reply
  close: () => Promise<void>
}

const silent = createLog(() => {}, 'silent')

describe('the fast path', () => {
  sameAnswers(async () => ({
    limiter: () => createRateLimiter({ limit: 10, now: () => 0 }),
    steady: (reply) => reply,
    close: async () => {},
  }))
})

describe('the fast path on a budget that processes share', { skip: skipRedis }, () => {
  sameAnswers(async () => {
    const redis = await startRedis()
    const store = openRedisWindows(redis.url)
    await store.ready(10_000)
    const limits = createSharedLimits({
      store,
      breaker: createBreaker({ faults: 3, openMs: 1_000, now: () => performance.now() }),
      keyOf: (scope, client) => `${scope}:${client}`,
      deadlineMs: 10_000,
      log: silent,
    })
    return {
      limiter: (scope) => limits.limiter({ scope, limit: 10, windowSeconds: 60 }),
      steady: ({ status, headers, body }) => ({
        status,
        headers: withoutClock(headers),
        body: body.replace(/in \d+ s\./, 'in 60 s.'),
      }),
      close: async () => {
        store.close()
        await redis.kill()
      },
    }
  })
})

/** The window runs by the clock of Redis, and two requests do not come at the same moment. */
function withoutClock(headers: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => {
      const tellsTime = name === 'x-ratelimit-reset' || name === 'retry-after'
      return [name, tellsTime ? '60' : name === 'ratelimit' ? String(value).replace(/t=\d+$/, 't=60') : value]
    }),
  )
}

function sameAnswers(open: () => Promise<Opened>): void {
  const opened = useOpened(open)
  const world = useOpened(startWorld)
  const host = (scope: string, ready: World['components']['verdicts']['ready']) => ({
    ...world.components,
    baseUrl: world.url,
    verdicts: { ...world.components.verdicts, ready },
    limiter: opened.limiter(scope),
    clientKey: (_peer: string | undefined, client: string | undefined) => client ?? 'unnamed',
    log: silent,
  })
  let fastAnswers = 0
  const counted = (key: string) => {
    const answer = world.components.verdicts.ready(key)
    if (answer !== undefined) fastAnswers += 1
    return answer
  }
  const fast = useOpened(() => serve(verificationListener(host('fast', counted))))
  const router = useOpened(() => {
    const app = verificationHost(host('router', () => undefined))
    const listener = getRequestListener((incoming, env) => app.fetch(incoming, env), { overrideGlobalObjects: false })
    return serve(identified((incoming, outgoing) => void listener(incoming, outgoing)))
  })
  before(async () => {
    await world.mint()
    await world.mint({ name: 'Ünïcode 🧥', description: 'two\nlines' })
  })

  it('answers byte for byte what the router answers, for generated requests', async () => {
    const etags = await Promise.all(
      ['1', '2'].map(async (id) => String((await ask(router.url, 'GET', `/api/asset/${id}`)).headers['etag'])),
    )
    const segments = fc.oneof(
      fc.constantFrom('1', '2', '0002', '%31', '3', '0', '99', '1?a=b', '2/', '1/x', '%zz', '-1', ''),
      fc.nat(3).map(String),
    )
    const conditions = fc.option(fc.constantFrom('*', 'W/"x"', etags[0] ?? '', `W/${etags[1]}`, `"a", ${etags[0]}`), {
      nil: undefined,
    })
    let asked = 0
    const methods = fc.constantFrom('GET', 'GET', 'GET', 'HEAD', 'OPTIONS', 'POST')
    await fc.assert(
      fc.asyncProperty(segments, methods, conditions, async (segment, method, condition) => {
        const headers = {
          ...(condition === undefined ? {} : { 'If-None-Match': condition }),
          'X-Forwarded-For': `client-${(asked += 1)}`,
          'X-Request-Id': `request-${asked}`,
        }
        const path = `/api/asset/${segment}`
        const [one, other] = await Promise.all([fast, router].map(({ url }) => ask(url, method, path, headers)))
        assert.deepEqual(opened.steady(one as Reply), opened.steady(other as Reply))
      }),
      { numRuns: 300 },
    )
    assert.ok(fastAnswers > 20, `the fast path answered ${fastAnswers} times only`)
  })

  it('rejects like the router once the quota is used up', async () => {
    const drain = async (url: string) => {
      for (;;) {
        const reply = await ask(url, 'GET', '/api/asset/1', { 'X-Request-Id': 'the-same' })
        if (reply.status === 429) return opened.steady(reply)
      }
    }
    const [fromFast, fromRouter] = await Promise.all([drain(fast.url), drain(router.url)])
    assert.deepEqual(fromFast, fromRouter)
    assert.deepEqual([fromFast.headers['retry-after'], fromFast.headers['x-ratelimit-remaining']], ['60', '0'])
  })
}

async function ask(url: string, method: string, path: string, asked: Record<string, string> = {}): Promise<Reply> {
  const { status, headers, text } = await raw(url, path, { method, headers: asked })
  const { date: _date, ...rest } = headers
  return { status, headers: rest, body: text }
}
