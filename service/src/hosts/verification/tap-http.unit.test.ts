import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Hono } from 'hono'
import { createLog } from '../../lib/log.ts'
import type { TapOutcome } from '../../tap/resolve-tap.ts'
import { createRequestHelpers, type Env } from './request.ts'
import { tapRoute } from './tap-guard.ts'
import { getTapTokens, isPrefetch } from './tap-http.ts'

const headersOf = (headers: Readonly<Record<string, string>>) => (name: string) => headers[name]

describe('a request that must not consume a tap', () => {
  it('is a prefetch or a preview by any of the headers of browsers', () => {
    for (const headers of [
      { 'sec-purpose': 'prefetch;prerender' },
      { purpose: 'prefetch' },
      { 'x-purpose': 'preview' },
      { 'x-moz': 'prefetch' },
    ])
      assert.equal(isPrefetch(headersOf(headers as Record<string, string>)), true, JSON.stringify(headers))
    assert.equal(isPrefetch(headersOf({ 'sec-purpose': 'none' })), false)
  })

  it('comes from a robot that previews links in messages', () => {
    for (const agent of [
      'WhatsApp/2.23.20.0 A',
      'Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)',
      'Twitterbot/1.0',
      // iMessage
      'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_11_1) AppleWebKit/601.2.4 (KHTML, like Gecko) Version/9.0.1 Safari/601.2.4 facebookexternalhit/1.1 Facebot Twitterbot/1.0',
      'Mozilla/5.0 (compatible; Discordbot/2.0; +https://discordapp.com)',
      'TelegramBot (like TwitterBot)',
      'meta-externalfetcher/1.1 (+https://developers.facebook.com/docs/sharing/webmasters/crawler)',
      'Snap URL Preview Service; bot; snapchat; https://developers.snap.com/robots',
      'Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; Bluesky Cardyb/1.1; +mailto:support@bsky.app) Chrome/130.0.0.0 Safari/537.36',
    ])
      assert.equal(isPrefetch(headersOf({ 'user-agent': agent })), true, agent)
  })

  it('is none of a person, also in the browser of an app', () => {
    for (const agent of [
      'Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Mobile/15E148 Safari/604.1',
      'Mozilla/5.0 (Linux; Android 15; Pixel 9) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Mobile Safari/537.36',
      'Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148 [FBAN/FBIOS;FBAV/480.0]',
      'Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 Mobile/15E148 Instagram 350.0',
      'Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148 Snapchat/13.0.0',
      'curl/8.9.1',
      '',
    ])
      assert.equal(isPrefetch(headersOf({ 'user-agent': agent })), false, agent)
  })
})

describe('the challenge of a tap', () => {
  it('is taken from the header of an app before the cookie of a browser', () => {
    const cookie = '__Host-tap-challenge=from-cookie'
    assert.equal(getTapTokens(headersOf({ cookie })).challengeToken, 'from-cookie')
    assert.equal(getTapTokens(headersOf({ cookie, 'x-tap-challenge': 'from-app' })).challengeToken, 'from-app')
  })
})

describe('a tap that counts, and whose answer fails', () => {
  const bindToken = { token: 'a'.repeat(43), seconds: 300 }
  const outcome = { kind: 'unbound', tag: { bindToken } } as TapOutcome
  const app = new Hono<Env>()
  tapRoute(
    app,
    createRequestHelpers({ clientKey: () => '', log: createLog(() => {}) }),
    { path: '/tap/', methods: 'GET, HEAD', resolveTap: async () => outcome },
    async ({ resolve }) => {
      await resolve()
      throw new Error('the store does not answer')
    },
    ({ status }, headers) => new Response(null, { status, headers }),
  )

  it('stays good for its client by the cookie, which HEAD does not get', async () => {
    const [got, head] = [await app.request('/tap/1'), await app.request('/tap/1', { method: 'HEAD' })]
    assert.deepEqual([got.status, head.status, head.headers.getSetCookie()], [500, 500, []])
    assert.match(got.headers.getSetCookie().join(), /^__Host-tap-a{12}=a{43}; Max-Age=300; /)
  })
})
