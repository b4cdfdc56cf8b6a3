import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Verdict } from '@touchstone/verdict'
import type { Verdicts } from '../assets/verdicts.ts'
import type { TappedProduct } from './replay-ledger.ts'
import { createResolveTap, getTapTokens, isPrefetch } from './resolve-tap.ts'
import type { TappedTag } from './verify-tap.ts'

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
    ])
      assert.equal(isPrefetch(headersOf({ 'user-agent': agent })), true, agent)
  })

  it('is none of a person, also in the browser of an app', () => {
    for (const agent of [
      'Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Mobile/15E148 Safari/604.1',
      'Mozilla/5.0 (Linux; Android 15; Pixel 9) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Mobile Safari/537.36',
      'Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148 [FBAN/FBIOS;FBAV/480.0]',
      'Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 Mobile/15E148 Instagram 350.0',
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

const tag: TappedTag = {
  kind: 'tapped',
  uid: '04DE5F1EACC040',
  tapCounter: 1,
  epoch: 0,
  batchId: 'a',
  tagHash: '0x01',
  formerTagHash: '0x02',
  ageSeconds: 0,
  fresh: true,
  isFirstClient: true,
  isAnnounced: false,
}
/** The chain has the tag by its former commitment. */
const answer = {
  block: { number: 7n, hash: '0x07', timestamp: 7n },
  asset: { verdict: { token_id: '5' } as Verdict, flags: 0, timestamp: 1, metadataHash: null, tagHash: '0x02' },
} as const
const product = { tokenId: 5n, tagHash: '0x02' }

describe('the product of a tap', () => {
  it('has the commitment by which the chain has the tag', async () => {
    const resolveTap = createResolveTap({
      verifyTap: async (_request, productOf) => {
        assert.deepEqual(await productOf?.(tag), product)
        return { ...tag, isAnnounced: true }
      },
      verdicts: {
        byTag: async (...hashes) => {
          assert.deepEqual(hashes, [tag.tagHash, tag.formerTagHash])
          return answer
        },
      },
      announce: () => assert.fail('it was announced when it was accepted'),
      onVerified: () => {},
      onRefused: () => assert.fail('it is genuine'),
    })
    const outcome = await resolveTap({ picc: '', cmac: '' })
    assert.ok(outcome.kind === 'resolved' && !('tagHash' in outcome) && outcome.tag.tagHash === tag.tagHash)
  })
})

describe('a tap whose chain does not answer', () => {
  it('is consumed without its product, then resolved and announced when the chain answers', async () => {
    const reading = Promise.withResolvers<Awaited<ReturnType<Verdicts['byTag']>>>()
    const announced: TappedProduct[] = []
    const verified: string[] = []
    const resolveTap = createResolveTap({
      verifyTap: async (_request, productOf) => {
        assert.equal(await productOf?.(tag), null)
        reading.resolve(answer)
        return tag
      },
      verdicts: { byTag: () => reading.promise },
      announce: async ({ tokenId, tagHash }) => announced.push({ tokenId, tagHash }) === 1,
      onVerified: (_tag, { token_id: tokenId }) => void verified.push(tokenId),
      onRefused: () => assert.fail('it is genuine'),
    })
    assert.equal((await resolveTap({ picc: '', cmac: '' })).kind, 'resolved')
    assert.deepEqual([announced, verified], [[product], ['5']])
  })

  it('is a replay when it is one', async () => {
    const refused: string[] = []
    const resolveTap = createResolveTap({
      verifyTap: async (_request, productOf) => ((await productOf?.(tag)) === null ? { kind: 'replayed' } : tag),
      verdicts: { byTag: () => Promise.reject(new Error('no provider answers')) },
      announce: () => assert.fail('nothing is announced'),
      onVerified: () => assert.fail('nothing is verified'),
      onRefused: (kind) => void refused.push(kind),
    })
    assert.deepEqual(await resolveTap({ picc: '', cmac: '' }), { kind: 'replayed' })
    assert.deepEqual(refused, ['replayed'])
  })
})
