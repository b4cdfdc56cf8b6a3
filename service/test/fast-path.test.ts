/** The fast path and the router answer the same request with the same bytes (spec §4.1). */
import assert from 'node:assert/strict'
import { createServer, request, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { getRequestListener } from '@hono/node-server'
import fc from 'fast-check'
import { createRateLimiter } from '../src/http/rate-limit.ts'
import { identified } from '../src/http/request-id.ts'
import { createLog } from '../src/log.ts'
import { verificationHost, verificationListener } from '../src/verification/host.ts'
import { startWorld, type World } from './_world.ts'

type Reply = { status: number; headers: Record<string, unknown>; body: string }

describe('the fast path', () => {
  let world: World
  let fast: { port: number; close: () => void }
  let router: { port: number; close: () => void }
  let fastAnswers = 0
  before(async () => {
    world = await startWorld()
    await world.mint()
    await world.mint({ name: 'Ünïcode 🧥', description: 'two\nlines' })
    const { verdicts } = world.parts
    const host = (ready: typeof verdicts.ready) => ({
      ...world.parts,
      baseUrl: world.url,
      verdicts: { ...verdicts, ready },
      limiter: createRateLimiter({ limit: 10, now: () => 0 }),
      clientKey: (_peer: string | undefined, client: string | undefined) => client ?? 'nobody',
      log: createLog(() => {}, 'silent'),
    })
    const counted = (key: string) => {
      const answer = verdicts.ready(key)
      if (answer !== undefined) fastAnswers += 1
      return answer
    }
    fast = await serve(verificationListener(host(counted)))
    const app = verificationHost(host(() => undefined))
    const listener = getRequestListener((incoming, env) => app.fetch(incoming, env), { overrideGlobalObjects: false })
    router = await serve(identified((incoming, outgoing) => void listener(incoming, outgoing)))
  })
  after(async () => {
    fast.close()
    router.close()
    await world.end()
  })

  it('answers byte for byte what the router answers, for generated requests', async () => {
    const etags = await Promise.all(
      ['1', '2'].map(async (id) => String((await ask(router.port, 'GET', `/api/asset/${id}`)).headers['etag'])),
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
        assert.deepEqual(await ask(fast.port, method, path, headers), await ask(router.port, method, path, headers))
      }),
      { numRuns: 300 },
    )
    assert.ok(fastAnswers > 20, `the fast path answered ${fastAnswers} times only`)
  })

  it('refuses like the router once the budget is used up', async () => {
    const drain = async (port: number) => {
      for (;;) {
        const reply = await ask(port, 'GET', '/api/asset/1', { 'X-Request-Id': 'the-same' })
        if (reply.status === 429) return reply
      }
    }
    const [fromFast, fromRouter] = await Promise.all([drain(fast.port), drain(router.port)])
    assert.deepEqual(fromFast, fromRouter)
    assert.deepEqual([fromFast.headers['retry-after'], fromFast.headers['x-ratelimit-remaining']], ['60', '0'])
  })
})

async function serve(listener: RequestListener): Promise<{ port: number; close: () => void }> {
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { port: (server.address() as AddressInfo).port, close: () => void server.close() }
}

function ask(port: number, method: string, path: string, headers: Record<string, string> = {}): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const outgoing = request({ port, host: '127.0.0.1', method, path, headers, agent: false }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', () => {
        const { date: _date, ...rest } = response.headers
        resolve({ status: response.statusCode ?? 0, headers: rest, body: Buffer.concat(chunks).toString() })
      })
    })
    outgoing.on('error', reject).end()
  })
}
