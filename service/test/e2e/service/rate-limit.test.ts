/** Limits over real HTTP (spec §4.1, §7, §8). */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { startWorld } from '../../support/world.ts'

describe('the limit of keyless reads', () => {
  it('holds exactly under 200 parallel requests, says when to come back, and counts errors too', async () => {
    const world = await startWorld({ env: { RATE_LIMIT_ASSET: '60' } })
    const id = await world.mint()
    await world.get('/api/asset/nonsense')
    const replies = await Promise.all(Array.from({ length: 200 }, () => world.get(`/api/asset/${id}`)))
    const counts = Object.groupBy(replies, ({ status }) => String(status))
    assert.deepEqual([counts['200']?.length, counts['429']?.length], [59, 141])
    const remaining = (counts['200'] ?? []).map(({ headers }) => Number(headers.get('x-ratelimit-remaining')))
    assert.deepEqual(
      remaining.toSorted((a, b) => a - b),
      Array.from({ length: 59 }, (_, index) => index),
    )
    for (const { headers } of replies) {
      assert.equal(headers.get('x-ratelimit-limit'), '60')
      assert.match(headers.get('x-ratelimit-reset') ?? '', /^([1-9]|[1-5]\d|60)$/)
    }
    const [refused] = counts['429'] ?? []
    assert.equal(refused?.headers.get('retry-after'), refused?.headers.get('x-ratelimit-reset'))
    assert.equal(refused?.headers.get('cache-control'), 'no-store')
    assert.equal(refused?.headers.get('access-control-allow-origin'), '*')
    const body = (await refused?.json()) as { version: string; error: { code: string } }
    assert.deepEqual([body.version, body.error.code], ['1', 'RATE_LIMITED'])
    await world.end()
  })

  it('is not escaped by a forged X-Forwarded-For, and counts clients apart behind a trusted proxy', async () => {
    const direct = await startWorld({ env: { RATE_LIMIT_ASSET: '2' } })
    const forged = (n: number) => direct.get('/api/asset/1', { headers: { 'X-Forwarded-For': `203.0.113.${n}` } })
    assert.deepEqual([(await forged(1)).status, (await forged(2)).status, (await forged(3)).status], [404, 404, 429])
    await direct.end()

    const proxied = await startWorld({ env: { RATE_LIMIT_ASSET: '1', TRUSTED_PROXIES: '127.0.0.1' } })
    const from = async (address: string) =>
      (await proxied.get('/api/asset/1', { headers: { 'X-Forwarded-For': address } })).status
    assert.deepEqual([await from('203.0.113.1'), await from('203.0.113.2'), await from('203.0.113.1')], [404, 404, 429])
    assert.deepEqual(
      [await from('2001:db8::1'), await from('2001:db8::ffff:2'), await from('2001:db8:0:1::1')],
      [404, 429, 404],
    )
    await proxied.end()
  })
})
