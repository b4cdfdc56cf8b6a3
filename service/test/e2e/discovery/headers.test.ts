/** Headers and forms that every route shares: the request's id, the budget in both spellings, problem details (spec §4.1, §7, §8). */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { startWorld, type World } from '../../support/world.ts'

describe('headers of every answer', () => {
  let world: World
  before(async () => {
    world = await startWorld({ env: { RATE_LIMIT_ASSET: '30', RATE_LIMIT_TAP: '5', ONLY: 'verification,graphql' } })
    await world.mint()
  })
  after(() => world.end())

  it('X-Request-Id is the client’s own or a new one, on every host and path', async () => {
    const hosts = [world.url, world.urls.graphql]
    for (const path of ['/api/asset/1', '/api/asset/x', '/nothing', '/', '/api/verify', '/health', '/graphql'])
      for (const host of hosts) {
        const given = `test_${path.length}.x-1`
        const named = await fetch(host + path, { headers: { 'X-Request-Id': given }, redirect: 'manual' })
        assert.equal(named.headers.get('x-request-id'), given, host + path)
        const fresh = await fetch(host + path, { headers: { 'X-Request-Id': 'a b' }, redirect: 'manual' })
        assert.match(fresh.headers.get('x-request-id') ?? '', /^[a-z0-9]+-[a-z0-9]+$/)
        await Promise.all([named.body?.cancel(), fresh.body?.cancel()])
      }
  })

  it('RateLimit and RateLimit-Policy equal X-RateLimit-*, for each quota under its name', async () => {
    for (const [path, name, limit] of [
      ['/api/asset/1', 'default', 30],
      ['/api/verify', 'taps', 5],
    ] as const) {
      const { headers } = await world.get(path)
      assert.equal(headers.get('ratelimit-policy'), `"${name}";q=${limit};w=60`)
      const [remaining, reset] = [headers.get('x-ratelimit-remaining'), headers.get('x-ratelimit-reset')]
      assert.equal(headers.get('ratelimit'), `"${name}";r=${remaining};t=${reset}`)
      for (const exposed of ['RateLimit', 'RateLimit-Policy', 'X-Request-Id', 'ETag', 'Retry-After'])
        assert.ok(headers.get('access-control-expose-headers')?.split(', ').includes(exposed), exposed)
    }
  })

  it('problem details are sent only if Accept names them, beside the fixed body', async () => {
    const ask = (accept: string) => world.get('/api/asset/0x1', { headers: { Accept: accept } })
    const [plain, problem] = [await ask('*/*'), await ask('application/problem+json')]
    assert.equal(plain.headers.get('content-type'), 'application/json')
    assert.equal(problem.headers.get('content-type'), 'application/problem+json')
    const body = (await plain.json()) as object
    assert.deepEqual(await problem.json(), {
      type: `${world.url}/docs/error-codes#invalid_token_id`,
      title: 'Invalid token id',
      status: 400,
      detail: 'The token id must be a decimal integer from 0 to 2^256-1, in digits only, such as 42.',
      ...body,
    })
    const right = await world.get('/api/asset/1', { headers: { Accept: 'application/problem+json' } })
    assert.deepEqual([right.status, right.headers.get('content-type')], [200, 'application/json'])
  })
})
