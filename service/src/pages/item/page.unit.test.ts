import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { lifecycleStates, verdictOf, type StateCode } from '@touchstone/verdict'
import { headlineOf } from '../../../test/support/pages/headline.ts'
import { html } from '../html.ts'
import { itemPage } from './page.ts'
import type { ItemView, TimelineEntry } from './view.ts'
import { languages } from '../languages.ts'

const owner = `0x${'0a'.repeat(20)}` as const
const english = { language: 'en', chosen: false, assets: '/assets/x' } as const

const tapped = { kind: 'tapped', counter: 17, openedAt: null, windowSeconds: 300 } as const

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
    tap: tapped,
    verdict,
    product: { name: 'Satchel' },
    metadata: 'match',
    details: null,
    theme: null,
    item: null,
    information: null,
    signed: false,
    reportTicket: null,
    certificateTicket: null,
    wallets: [],
    claimTicket: null,
    transfers: null,
    passkeys: false,
    ownerReports: null,
    reports: state === 5 ? ['LOST', 'RECALL'] : [],
    tampered: false,
    owner: 'unclaimed',
    checkedAt: 1_795_168_212,
    link: 'https://verify.example/token/42',
    path: '/token/42',
    verdictLink: 'https://verify.example/api/asset/42',
    verdictPath: '/api/asset/42',
    history: [],
    changes: null,
    changedAt: 1_795_168_212 - 40 * 86_400,
    passport: '{}',
    publicRpcUrl: null,
    explorerUrl: null,
    ...changes,
  }
}

const theme = {
  id: 'orvelle',
  name: 'Maison Orvelle',
  stylesheet: '/x.css',
  mark: html`<svg></svg>`,
  links: {},
  hasTypeface: false,
}

const caveat =
  /<p class="caveat">Its history could not be read now\. Whether it was given back or claimed lately is not known; load this page again\.<\/p>/

describe('itemPage', () => {
  for (const [state, heading, tone] of [
    [1, 'Genuine chip, not released', 'hold'],
    [2, 'Genuine chip, not released', 'hold'],
    [3, 'Genuine chip', 'go'],
    [4, 'Genuine chip, owned', 'own'],
    [5, 'Recalled', 'stop'],
    [6, 'Genuine chip, retired', 'hold'],
  ] as const)
    it(`says «${heading}» of a tapped item in state ${lifecycleStates[state]}, in its colour`, () => {
      const page = itemPage(english, view(state))
      assert.equal(headlineOf(page), heading)
      assert.ok(page.includes(`class="verdict tone-${tone}"`))
      assert.ok(page.includes('tap <code dir="ltr">17</code>, link opened for the first time'))
      assert.ok(page.includes(`<title>${heading} · Touchstone</title>`))
    })

  it('says when the link was opened first, never when the chip was tapped, and what a link that was sent is worth', () => {
    const openedAt = 1_795_167_900
    const sent = /Did somebody send you this link\? Then tap the item yourself\./
    for (const state of [2, 3, 4] as const) {
      assert.match(itemPage(english, view(state)), sent)
      const again = itemPage(english, view(state, { tap: { ...tapped, openedAt } }))
      assert.match(
        again,
        /17<\/code>, link first opened at <time datetime="2026-11-20T09:45:00Z" data-clock>09:45 AM UTC</,
      )
    }
    for (const kind of ['untapped', 'replayed', 'incomplete'] as const)
      assert.doesNotMatch(itemPage(english, view(3, { tap: { kind } })), sent)
    for (const language of languages)
      for (const tap of [tapped, { ...tapped, openedAt }])
        assert.doesNotMatch(
          itemPage({ ...english, language }, view(3, { tap })),
          /just now|soeben|à l’instant|ahora mismo|، الآن/,
        )
  })

  it('does not speak of an owner where the record has none', () => {
    for (const report of ['STOLEN', 'LOST'] as const) {
      const page = itemPage(english, view(5, { reports: [report], owner: 'unclaimed' }))
      assert.doesNotMatch(page, /owner of this item has|reach the owner|is looking for/)
      assert.match(page, report === 'STOLEN' ? /a theft of this item was reported/ : /this item was reported lost/)
    }
  })

  it('asks for another tap where a used or incomplete one led to a report', () => {
    for (const kind of ['replayed', 'incomplete'] as const) {
      const page = itemPage(english, view(5, { reports: ['STOLEN'], tap: { kind } }))
      assert.match(page, /This tap does not count: tap again/)
      assert.doesNotMatch(page, /You have tapped nothing/)
    }
    const untapped = itemPage(english, view(5, { reports: ['STOLEN'], tap: { kind: 'untapped' } }))
    assert.match(untapped, /You have tapped nothing/)
  })

  it('asks for no tap of an item without a chip, and says that nothing can be checked', () => {
    const page = itemPage(english, view(1, { tap: { kind: 'untapped' } }))
    assert.equal(headlineOf(page), 'Record only')
    assert.match(page, /No chip belongs to this record, so nothing can be checked\. Do not pay on it\./)
    assert.match(page, /this item cannot be claimed yet/)
    assert.doesNotMatch(page, /You have tapped nothing|class="taphow"/)
    assert.match(itemPage(english, view(2, { tap: { kind: 'untapped' } })), /class="taphow"/)
  })

  it('names a brand of the operator’s list in the verdict, and no other', () => {
    const product = { name: 'Satchel No. 7', brand: 'Maison Orvelle' }
    const verdictOfPage = (page: string) => /<section\s+class="verdict[^]*?<\/section>/.exec(page)?.[0] ?? ''
    const listed = verdictOfPage(itemPage(english, view(3, { theme, product })))
    assert.equal(headlineOf(listed), 'Genuine')
    assert.match(listed, /<span class="maker-name">Maison Orvelle<\/span>/)
    const unlisted = verdictOfPage(itemPage(english, view(3, { product })))
    assert.ok(!unlisted.includes('Orvelle'))
    assert.match(unlisted, /The maker has no checked name here/)
  })

  it('frames and labels the maker’s name before it, so that it cannot pose as the verdict', () => {
    const page = itemPage(english, view(2, { product: { name: 'VERIFIED' } }))
    const at = page.indexOf('VERIFIED')
    assert.match(page.slice(0, at), /<p class="named">\s*<span class="tab">Named by its maker, not checked<\/span\s*>/)
    for (const found of page.matchAll(/VERIFIED/g)) {
      const before = page.slice(0, found.index)
      assert.ok(before.lastIndexOf('class="tab"') > before.lastIndexOf('</section>'))
    }
    assert.ok(!/<title>[^<]*VERIFIED/.test(page) && !/<h1[^>]*>(?:(?!<\/h1>)[^])*VERIFIED/.test(page))
  })

  it('asks for the comparison where the chip proved itself and the record names features', () => {
    const features = [{ title: 'Slanted stitch', text: 'Nine to the inch.' }]
    const page = itemPage(english, view(3, { details: { kind: 'bag', language: 'it', features } }))
    assert.match(page, /<a href="#compare">Compare this bag yourself\.<\/a>/)
    assert.ok(page.indexOf('Does it look like this?') < page.indexOf('Supplied by <b>the maker</b>, not checked'))
    assert.match(page, /<bdi dir="auto" +lang="it">Slanted stitch<\/bdi>/)
    assert.match(page, /id="looks-no"[^]*Do not pay, and do not accept it\./)
    for (const other of [
      view(3),
      view(5, { details: { features } }),
      view(3, { tap: { kind: 'replayed' }, details: { features } }),
    ])
      assert.ok(!itemPage(english, other).includes('id="compare"'))
  })

  it('shows the picture of a listed brand beside the verdict, and any other in the frame of the maker', () => {
    const [webp, avif, jpeg] = ['ab', 'cd', 'ef'].map((byte) => byte.repeat(32)) as [string, string, string]
    const picture = { webp, avif, jpeg, width: 640, height: 480, alt: 'GENUINE' }
    const drawing = { webp: '12'.repeat(32), width: 600, height: 400 }
    const details = { picture, drawing }
    const stage = /<figure class="stage">[^]*?<\/figure/
    const listed = itemPage(english, view(3, { theme, details }))
    const [shown = ''] = stage.exec(listed) ?? []
    assert.ok(listed.indexOf('class="stage"') < listed.indexOf('class="verdict'))
    assert.match(shown, /srcset="\/assets\/pictures\/(?:cd){32}" type="image\/avif"/)
    assert.match(shown, /srcset="\/assets\/pictures\/(?:ab){32}" type="image\/webp"/)
    assert.match(shown, /class="art photo"\s+src="\/assets\/pictures\/(?:ef){32}"\s+width="640"\s+height="480"/)
    assert.match(shown, /alt="Picture of this item, supplied by Maison Orvelle, not checked: GENUINE"/)
    for (const changes of [{ tap: { kind: 'replayed' } }, { tap: { kind: 'untapped' } }] as const) {
      const [grey = ''] = stage.exec(itemPage(english, view(3, { theme, details, ...changes }))) ?? []
      assert.match(grey, /class="art drawing"\s+src="\/assets\/pictures\/(?:12){32}"/)
    }
    for (const other of [view(3, { details }), view(3, { details, tap: { kind: 'untapped' } })]) {
      const page = itemPage(english, other)
      assert.ok(!stage.test(page))
      assert.match(
        page,
        /<div class="maker">\s*<p class="tab">Supplied by <b>the maker<\/b>, not checked<\/p>[^]*<picture/,
      )
      assert.ok(page.indexOf('class="maker"') < page.indexOf('<picture'))
    }
    const counterfeit = itemPage(english, view(3, { theme, details, metadata: 'mismatch', product: {} }))
    assert.ok(!stage.test(counterfeit))
  })

  it('shows the gravest report first, and the others below it', () => {
    const page = itemPage(english, view(5))
    assert.match(page, /<section\s+class="verdict tone-stop"\s+role="alert"/)
    assert.ok(page.includes('There is another report: Reported lost.'))
  })

  it('dates a report only where the history says since when it stands', () => {
    const [flaggedAt, changedAt] = [1_767_225_600, 1_769_904_000]
    const event = (kind: TimelineEntry['kind'], at: number) => ({ kind, at, block: 1, transaction: '0x' })
    const record = /<dt class="vh">Record<\/dt>\s*<dd>(.*?)<\/dd>/s
    const shown = (history: TimelineEntry[]) => {
      const page = itemPage(english, view(5, { reports: ['STOLEN', 'INVESTIGATION'], history }))
      return record.exec(page)?.[1]?.replace(/<[^>]+>/g, ' ') ?? ''
    }
    assert.match(shown([event('flagged', flaggedAt)]), /^Reported stolen\s+since\s+January 1, 2026/)
    const later = shown([event('flagged', flaggedAt), event('flagsChanged', changedAt)])
    assert.match(later, /^Reported stolen\s+read/)
  })

  it('says of a recycled item with a report that its record is closed, in red, and that no report is lifted', () => {
    const history = [{ kind: 'recycled', at: 1_769_904_000, block: 1, transaction: '0x' } as const]
    const recycled = view(6, { reports: ['RECALL'], owner: 'closed', history })
    const page = itemPage(english, { ...recycled, verdict: { ...recycled.verdict, flagged: true } })
    assert.equal(headlineOf(page), 'Retired, with a report')
    assert.match(page, /<section\s+class="verdict tone-stop"/)
    assert.match(page, /<dd>Recalled<small>read/)
    assert.doesNotMatch(page, /can lift the report|Ask .* to lift the report/)
    const tap = { kind: 'untapped' } as const
    const untapped = itemPage(english, { ...recycled, tap, verdict: { ...recycled.verdict, flagged: true } })
    assert.equal(headlineOf(untapped), 'Retired, with a report')
    assert.match(untapped, /You have tapped nothing/)
  })

  it('says of a closed record that its item may have been recycled, which the record does not say', () => {
    const history = [{ kind: 'recycled', at: 1_769_904_000, block: 1, transaction: '0x' } as const]
    const recycled = view(6, { owner: 'closed', history })
    for (const flagged of [false, true]) {
      const reports = flagged ? (['RECALL'] as const) : []
      const page = itemPage(english, { ...recycled, reports, verdict: { ...recycled.verdict, flagged } })
      assert.match(page, /The record of what carried this chip is closed for good/)
      assert.match(page, /It may have been recycled\./)
      assert.doesNotMatch(page, /was recycled|>Recycled/)
    }
  })

  it('warns a buyer of a closed record as of the theft or the loss that it carries', () => {
    for (const [report, heading, step] of [
      ['STOLEN', 'Reported stolen', 'the police, or the maker.'],
      ['STOLEN_CONFIRMED', 'Stolen, confirmed', 'the police.'],
      ['LOST', 'Reported lost', 'the maker or a lost property office.'],
    ] as const) {
      const recycled = view(6, { reports: [report], owner: 'closed', history: null })
      const page = itemPage(english, { ...recycled, verdict: { ...recycled.verdict, flagged: true } })
      assert.equal(headlineOf(page), heading)
      assert.match(page, /<section\s+class="verdict tone-stop"/)
      const [buyer = '', owner = ''] = page.split('<section class="next card"').slice(1)
      assert.match(buyer, /^\s+data-role="new second">/)
      assert.ok(buyer.includes(step), report)
      assert.match(owner, /^\s+data-role="mine">/)
      assert.match(owner, /Nobody can claim it or pass it on any more\./)
      assert.match(page, /<p class="say"\s+data-role="mine"\s*>[^<]*The report can no longer be lifted\./)
      assert.doesNotMatch(page, /can lift the report|Ask .* to lift the report|was recycled/)
    }
  })

  it('is never green or blue, and shows nothing in colour, without a tap', () => {
    for (const kind of ['untapped', 'incomplete', 'replayed'] as const)
      for (const state of [1, 2, 3, 4, 5, 6] as const) {
        const page = itemPage(english, view(state, { tap: { kind } }))
        assert.ok(
          !/tone-(?:go|own)|class="ic y"|data-field="proven"|The chip is genuine/.test(page),
          `${kind} ${state}`,
        )
        assert.match(page, /Chip not checked/)
      }
  })

  it('is red for an opened seal, without a tick at the record', () => {
    for (const state of [1, 2, 3, 4] as const) {
      const page = itemPage(english, view(state, { tampered: true }))
      const [verdict = ''] = /<section\s+class="verdict[^]*?<\/section>/.exec(page) ?? []
      assert.equal(headlineOf(page), 'Seal opened')
      assert.ok(!/tone-(?:go|own|hold)/.test(page), lifecycleStates[state])
      assert.equal(verdict.match(/class="ic y"/g)?.length, 1, 'the chip alone has a tick')
    }
  })

  it('offers no claim of an item whose seal was opened', () => {
    const offers = /data-step="claim"|orvelle\.example\/claim/
    const links = { claim: 'https://orvelle.example/claim' }
    const claimable = { claimTicket: '1.2.3', theme: { ...theme, links } }
    assert.match(itemPage(english, view(3, claimable)), offers)
    assert.doesNotMatch(itemPage(english, view(3, { ...claimable, tampered: true })), offers)
  })

  it('has the window of a tap for its script, also one of zero seconds', () => {
    const tap = { ...tapped, counter: 3, windowSeconds: 0 }
    assert.match(itemPage(english, view(3, { tap })), /<body data-tap="tapped" data-window="0" data-path=/)
  })

  it('says claim and many taps where they count', () => {
    const claimed: TimelineEntry = { kind: 'claimed', at: 1_795_168_212 - 86_400, block: 1, transaction: '0x' }
    assert.equal(headlineOf(itemPage(english, view(4, { history: [claimed] }))), 'Genuine chip, just claimed')
    const tap = { ...tapped, counter: 51 }
    const handled = itemPage(english, view(3, { tap }))
    assert.equal(headlineOf(handled), 'Genuine chip, often tapped')
    assert.match(handled, /tapped 51 times/)
  })

  it('says of an item that was given back that it had an owner, and dates the last claim', () => {
    const [first, last] = [1_795_168_212 - 40 * 86_400, 1_795_168_212 - 86_400]
    const event = (kind: TimelineEntry['kind'], at: number) => ({ kind, at, block: 1, transaction: '0x' })
    const history = [event('activated', first), event('claimed', first), event('resold', first)]
    const returned = itemPage(english, view(3, { history }))
    assert.equal(headlineOf(returned), 'Genuine chip, returned')
    assert.match(returned, /It had an owner before, and was given back\./)
    assert.match(returned, /No one owns this item on record\./)
    assert.doesNotMatch(returned, /never claimed|ever owned|no owner yet|claimed this item yet/)
    const [unread, shop] = [itemPage(english, view(3, { history: null })), itemPage(english, view(3, { history: [] }))]
    for (const page of [unread, shop]) {
      assert.match(page, /has no owner on record/)
      assert.doesNotMatch(page, /never claimed|ever owned|owner yet|nobody has claimed/i)
    }
    const claimed = itemPage(english, view(4, { history: [...history, event('claimed', last)], owner: 'claimed' }))
    assert.equal(headlineOf(claimed), 'Genuine chip, just claimed')
    assert.match(claimed, /claimed this item only on <time datetime="2026-11-19/)
    assert.doesNotMatch(claimed, /first owner/)
  })

  it('is amber for a buyer, with a caveat, where neither the history nor the changes of state could be read', () => {
    const unread = { history: null, changes: null, changedAt: 1_795_168_212 - 86_400 }
    const cases: readonly [state: StateCode, headings: Record<string, string>, tones: string[]][] = [
      [3, { new: 'Genuine chip', second: 'Genuine chip, not claimed', mine: 'Genuine chip' }, ['hold', 'hold', 'go']],
      [
        4,
        { second: 'Genuine chip, owned', new: 'Genuine chip, not new', mine: 'Genuine chip, claimed' },
        ['hold', 'hold', 'go'],
      ],
    ]
    for (const [state, headings, tones] of cases) {
      const page = itemPage(english, view(state, unread))
      const words = [...page.matchAll(/<span\s+class="word tone-(\w+)[^"]*"\s+data-role="(\w+)"\s*>([^<]*)</g)]
      assert.deepEqual(Object.fromEntries(words.map(([, , role, word]) => [role, word?.trim()])), headings)
      assert.deepEqual(
        words.map(([, tone]) => tone),
        tones,
      )
      assert.match(page, /<section\s+class="verdict tone-hold"/)
      assert.match(page, /data-field="proven"/)
      assert.match(page, caveat)
    }
    const tap = { ...tapped, counter: 51 }
    assert.match(itemPage(english, view(3, { ...unread, tap })), caveat)
  })

  it('has the colours of its situation where the changes of state were read alone, or are too old to matter', () => {
    const toneOf = (page: string) => /<section\s+class="verdict tone-(\w+)/.exec(page)?.[1]
    const event = (kind: TimelineEntry['kind'], at: number | null) => ({ kind, at, block: 1, transaction: '0x' })
    const [old, recent] = [1_795_168_212 - 40 * 86_400, 1_795_168_212 - 86_400]
    const unread = { history: null, changes: null, changedAt: recent }
    const cases: readonly [ItemView, heading: string, tone: string, isDoubtful?: boolean][] = [
      [view(3, { history: null, changes: [event('activated', old)] }), 'Genuine chip', 'go'],
      [view(3, { history: null, changes: [event('resold', old)] }), 'Genuine chip, returned', 'hold'],
      [view(4, { history: null, changes: [event('claimed', old)] }), 'Genuine chip, owned', 'own'],
      [view(4, { history: null, changes: [event('claimed', recent)] }), 'Genuine chip, just claimed', 'hold'],
      [view(4, { ...unread, changedAt: old }), 'Genuine chip, owned', 'own'],
      [view(4, { history: [event('claimed', null)], changedAt: recent }), 'Genuine chip, owned', 'hold', true],
      [view(2, unread), 'Genuine chip, not released', 'hold'],
      [view(3, { ...unread, tampered: true }), 'Seal opened', 'stop'],
      [view(3, { ...unread, product: {} }), 'Genuine chip, no description', 'hold'],
      [view(3, { ...unread, tap: { kind: 'untapped' } }), 'Record only', 'none'],
    ]
    for (const [shown, heading, tone, isDoubtful = false] of cases) {
      const page = itemPage(english, shown)
      assert.deepEqual([headlineOf(page), toneOf(page)], [heading, tone])
      assert.equal(caveat.test(page), isDoubtful, heading)
    }
  })

  it('is amber without a description, says when a text is withheld, and then compares nothing', () => {
    const shown = (state: StateCode) => itemPage(english, view(state, { metadata: 'mismatch', product: {} }))
    assert.equal(headlineOf(shown(3)), 'Genuine chip, no description')
    assert.match(shown(3), /The maker’s text was changed, so it is not shown\./)
    assert.doesNotMatch(shown(2), /href="#product"|words in the frame/)
  })

  it('says of a description that could not be read that it was not read, not that there is none', () => {
    const page = itemPage(english, view(3, { metadata: 'unread', product: {} }))
    assert.equal(headlineOf(page), 'Genuine chip, description not read')
    assert.match(page, /<section\s+class="verdict tone-hold/)
    const untapped = itemPage(english, view(3, { metadata: 'unread', product: {}, tap: { kind: 'untapped' } }))
    for (const shown of [page, untapped]) {
      assert.match(shown, /The product text could not be read now\./)
      assert.doesNotMatch(shown, /does not say what it belongs to|No product text|no description/)
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
