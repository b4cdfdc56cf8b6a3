import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { lifecycleStates, verdictOf, type StateCode } from '@touchstone/verdict'
import { itemPage } from './item.ts'
import type { ItemView, TimelineEntry } from './item.ts'
import { languages } from './languages.ts'

const owner = `0x${'0a'.repeat(20)}` as const
const english = { language: 'en', chosen: false, assets: '/assets/x' } as const

function view(state: StateCode, changes: Partial<ItemView> = {}): ItemView {
  const verdict = verdictOf({
    record: { owner, timestamp: 1n, state, flags: 0, reserved: 0 },
    tokenId: 42n,
    block: { number: 7n, hash: `0x${'ab'.repeat(32)}` },
    contract: `0x${'5f'.repeat(20)}`,
    chainId: 84532,
  })
  assert.ok(verdict)
  return {
    tap: { kind: 'tapped', counter: 17, windowSeconds: 300 },
    verdict,
    product: { name: 'Satchel' },
    metadata: 'match',
    item: null,
    signed: false,
    reports: state === 5 ? ['LOST', 'RECALL'] : [],
    tampered: false,
    owner: 'unclaimed',
    checkedAt: 1_795_168_212,
    link: 'https://verify.example/token/42',
    path: '/token/42',
    verdictLink: 'https://verify.example/api/asset/42',
    verdictPath: '/api/asset/42',
    history: [],
    passport: '{}',
    publicRpcUrl: null,
    explorerUrl: null,
    ...changes,
  }
}

const headingOf = (page: string) => /<h1[^>]*>([^<]*)<\/h1>/.exec(page)?.[1]

describe('itemPage', () => {
  for (const [state, heading] of [
    [1, 'Genuine chip, tapped now'],
    [2, 'Genuine chip, tapped now'],
    [3, 'Genuine chip, tapped now'],
    [4, 'Genuine chip, tapped now'],
    [5, 'This item is recalled'],
    [6, 'Genuine chip, but the item is at its end of life'],
  ] as const)
    it(`says «${heading}» of a tapped item in state ${lifecycleStates[state]}`, () => {
      const page = itemPage(english, view(state))
      assert.equal(headingOf(page), heading)
      assert.ok(page.includes(lifecycleStates[state]) && page.includes('(tap <code dir="ltr">17</code>)'))
      assert.ok(page.includes(`<title>${heading} · Touchstone</title>`))
    })

  it('puts the alarm of a flag before everything else, the most urgent report first', () => {
    const page = itemPage(english, view(5))
    assert.match(page, /<main[^>]*>\s*<div class="alarm" role="alert">/)
    assert.ok(page.indexOf('This item is recalled') < page.indexOf('This item is reported lost'))
  })

  it('never ticks anything off, and is never green, without a tap', () => {
    for (const kind of ['untapped', 'incomplete', 'replayed'] as const)
      for (const state of [1, 2, 3, 4, 5, 6] as const) {
        const page = itemPage(english, view(state, { tap: { kind } }))
        assert.ok(!page.includes('class="yes"') && !page.includes('class="result good"'), kind)
        assert.match(page, /not prove that the item in front of you is genuine/)
      }
  })

  it('stays below 50 kB in every language with the longest text and history, in front of a text that is all markup', () => {
    const text = '<'.repeat(4_000)
    const event: TimelineEntry = { kind: 'transferCancelled', at: 1, block: 1, transaction: `0x${'ab'.repeat(32)}` }
    const product = {
      name: '<'.repeat(200),
      brand: '"'.repeat(200),
      sku: '&'.repeat(200),
      origin: text.slice(0, 200),
      size: text.slice(0, 200),
      description: text,
    }
    const history = Array.from({ length: 256 }, () => event)
    for (const language of languages) {
      const context = { ...english, language }
      const longest = view(4, {
        product,
        link: `https://verify.example/01/09520123456788/21/${'%2F'.repeat(60)}`, // its QR code is larger than any
        history,
        passport: JSON.stringify(product),
        publicRpcUrl: 'https://rpc.example',
      })
      assert.ok(Buffer.byteLength(itemPage(context, longest)) < 50_000, language)
    }
    assert.ok(itemPage(english, view(4)).includes('id="passport"'))
  })

  it('links transactions and the maker’s picture, and sends them no referrer', () => {
    const event: TimelineEntry = { kind: 'minted', at: 1, block: 1, transaction: `0x${'ab'.repeat(32)}` }
    const page = itemPage(
      english,
      view(4, {
        history: [event],
        explorerUrl: 'https://explorer.example',
        product: { image: 'https://maker.example/a.png' },
      }),
    )
    assert.match(page, /href="https:\/\/explorer\.example\/tx\/0x(ab){32}" rel="noreferrer noopener"/)
    assert.match(page, /href="https:\/\/maker\.example\/a\.png" rel="noreferrer noopener nofollow"/)
    assert.ok(!itemPage(english, view(4, { product: { image: 'ipfs://x/a.png' } })).includes('href="ipfs'))
  })
})
