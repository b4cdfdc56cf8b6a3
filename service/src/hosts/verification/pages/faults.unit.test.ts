/** Pages for which the chain cannot be read. They say what became of the tap, and promise nothing for one that was not kept. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Hono } from 'hono'
import { createRateLimiter, type RateLimiter } from '../../../http/rate-limit/limiter.ts'
import { chainUnavailable } from '../../../lib/errors.ts'
import { createLog } from '../../../lib/log.ts'
import { languages, textsOf } from '../../../pages/languages.ts'
import { createResolveTap, type ResolveTap } from '../../../tap/resolve-tap.ts'
import type { TappedTag } from '../../../tap/verify-tap.ts'
import { createRequestHelpers, type Env } from '../request.ts'
import { type PageRoutes, pageRoutes } from './routes.ts'

const log = createLog(() => {}, 'silent')
const down = () => Promise.reject(chainUnavailable('down'))
const ticket = { parse: async () => ({ tokenId: 7n, epoch: 0, tapCounter: 3 }), issue: () => '' }
const tap = `picc=${'a1'.repeat(16)}&cmac=${'b2'.repeat(8)}`
const item = '/01/09520003000001/21/S7-1182'

function hostOf(resolveTap: ResolveTap, tapLimiter?: RateLimiter): Hono<Env> {
  const site = {
    baseUrl: 'https://verify.example',
    contract: `0x${'5f'.repeat(20)}`,
    items: { itemOfToken: down, tokenOfItem: async () => 7n, hasGtin: async () => true },
    verdicts: { answer: down, answers: down, byTag: down },
    reader: { read: down },
    issuer: { signerFor: () => ({ forms: ['application/vc+jwt'] }) },
    pages: {
      windowSeconds: 300,
      publicRpcUrl: null,
      explorerUrl: null,
      ownership: new Set(),
      themes: [],
      examples: [],
    },
    reportTickets: ticket,
    certificateTickets: ticket,
    differences: { add: () => Promise.reject(new Error('the store does not answer')) },
    resolveTap,
    tapLimiter,
    log,
  }
  const app = new Hono<Env>()
  pageRoutes(app, createRequestHelpers({ clientKey: () => '', log }), site as unknown as PageRoutes)
  return app
}

/** Reads the cells of chip and record, and the steps, from the source of a page. */
function shown(page: string) {
  const textOf = (source = '') =>
    source
      .replaceAll(/<[^>]+>/g, ' ')
      .replaceAll(/\s+/g, ' ')
      .trim()
  return {
    facts: [...page.matchAll(/<dd>(.*?)<\/dd>/gs)].map(([, fact]) => textOf(fact)),
    steps: [...page.matchAll(/<li><span>(.*?)<\/span><\/li>/gs)].map(([, step]) => textOf(step)),
  }
}

const genuine: ResolveTap = createResolveTap({
  verifyTap: async () => ({ kind: 'tapped' }) as TappedTag,
  verdicts: { byTag: down },
  announce: async () => true,
  onVerified: () => {},
  onRefused: () => {},
})
const resolved: ResolveTap = async () =>
  ({ kind: 'resolved', tag: {}, verdict: { token_id: '7' } }) as Awaited<ReturnType<ResolveTap>>
const ended =
  (kind: 'replayed' | 'malformed'): ResolveTap =>
  async () =>
    kind === 'malformed' ? { kind, error: 'cmac is missing' } : { kind }
const broken: ResolveTap = () => Promise.reject(chainUnavailable('before the tap was read'))
const unasked: ResolveTap = () => assert.fail('the tap was looked at')

describe('a page without the chain', () => {
  const unread = 'Record not read out of reach'
  const cases: readonly [name: string, resolveTap: ResolveTap, path: string, facts: string[]][] = [
    ['keeps a tap that was resolved', resolved, `${item}?${tap}`, ['Chip read result is kept', unread]],
    ['keeps a genuine tap', genuine, `/token/7?${tap}`, ['Chip read result is kept', unread]],
    [
      'says of a used link that it was used',
      ended('replayed'),
      `/token/7?${tap}`,
      ['Chip not checked link used before', unread],
    ],
    [
      'says of a part of a link that it is one',
      ended('malformed'),
      '/token/7?picc=a1',
      ['Chip not checked tap incomplete', unread],
    ],
    ['says that nothing was tapped', broken, '/token/7', ['Chip not checked opened without a tap', unread]],
    [
      'does not look at a tap that a link for machines holds',
      unasked,
      `${item}?linkType=gs1:sustainabilityInfo&${tap}`,
      ['Chip not checked', unread],
    ],
    [
      'says of a tap whose check failed that it was not checked',
      broken,
      `/token/7?${tap}`,
      ['Chip not checked', unread],
    ],
  ]
  for (const [name, resolveTap, path, facts] of cases)
    it(name, async () => {
      const answer = await hostOf(resolveTap).request(path, { headers: { accept: 'text/html' } })
      assert.equal(answer.status, 502)
      const page = shown(await answer.text())
      assert.deepEqual(page.facts, facts)
      const isPromised = page.steps.some((step) => /stays good|Nothing is lost/.test(step))
      assert.equal(isPromised, facts[0]?.endsWith('is kept') === true)
      assert.ok(page.steps.includes('Do not pay while there is no answer.'))
    })

  it('says nothing of the tap to a visitor who asks for a certificate of it', async () => {
    const answer = await hostOf(broken).request('/certificate', {
      method: 'POST',
      body: new URLSearchParams({ ticket: '1' }),
    })
    assert.equal(answer.status, 502)
    const page = shown(await answer.text())
    assert.deepEqual(page.facts, [])
    assert.ok(!page.steps.some((step) => /stays good/.test(step)))
  })

  it('promises the same in every language', () => {
    for (const language of languages) {
      const { chain, kept } = textsOf[language].situations
      assert.deepEqual([chain.new.word, chain.new.say, chain.new.title], [kept.new.word, kept.new.say, kept.new.title])
      assert.equal(kept.new.steps.at(-1), chain.new.steps.at(-1))
      assert.ok(kept.new.steps[0]?.startsWith(chain.new.steps[0] ?? ''), language)
    }
  })
})

describe('the answer to a form', () => {
  const exhausted = createRateLimiter({ limit: 0, windowSeconds: 60 })
  for (const [path, limiter, status] of [
    ['/certificate', undefined, 502],
    ['/certificate', exhausted, 429],
    ['/report', undefined, 500],
    ['/report', exhausted, 429],
  ] as const)
    it(`has no link to ${path}, which takes forms only, after ${status}`, async () => {
      const sent = { method: 'POST', body: new URLSearchParams({ ticket: '1' }) }
      const answer = await hostOf(unasked, limiter).request(path, sent)
      assert.equal(answer.status, status)
      assert.doesNotMatch(await answer.text(), /data-retry|href=""|data-tap/)
    })

  it('differs from a page, which has a link to itself', async () => {
    const answer = await hostOf(broken).request('/token/7')
    assert.match(await answer.text(), /<a class="btn" href="" data-retry>/)
  })
})
