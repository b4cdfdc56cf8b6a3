/**
 * The pages in a real browser (spec §4.5, §4.6): the tap in the address, reloads, languages, the recheck, and everything without script.
 */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { describe, it } from 'node:test'
import type { Verdict } from '@touchstone/verdict'
import type { Page } from 'playwright-core'
import { publishedAddresses } from '../../../src/domain/published-accounts.ts'
import { headingOf, noBrowser, shows, type PageBrowser } from '../../support/pages/browser.ts'
import { forgeTicket } from '../../support/pages/certificate.ts'
import { headlineOf } from '../../support/pages/headline.ts'
import { openPages } from '../../support/pages/opened.ts'
import type { PageWorld } from '../../support/pages/pages.ts'
import { until } from '../../support/wait.ts'

/** Headlines of the demonstration's products, which were claimed when the world began. */
const genuine = 'Genuine chip'
const claimed = 'Genuine, just claimed'
const bound = 'Genuine chip, not released'

let world: PageWorld
let browser: PageBrowser
openPages((opened) => ({ world, browser } = opened))

describe('a page in Chromium', { skip: noBrowser }, () => {
  it('shows the verdict of a tap, drops the tap from the address, and shows the same after a reload', async () => {
    await using page = await browser.open(await world.tapped('activated'))
    assert.equal(await headingOf(page), genuine)
    assert.equal(new URL(page.url()).search, '')
    await page.reload()
    await shows(page, genuine)
    assert.equal(new URL(page.url()).search, '')
    await page.goto(`${world.url}/`)
    await page.goBack()
    await shows(page, genuine)
  })

  it('opens the link of an API as the page of the item, under the address of the item', async () => {
    await using page = await browser.open(`${world.url}/api/verify?${await world.tap('activated')}`)
    assert.equal(await headingOf(page), genuine)
    assert.equal(page.url(), world.url + (await world.pathOf('activated')))
    await page.reload()
    await shows(page, genuine)
  })

  it('says of the copied link of a tap, after its time, that it was already used', async () => {
    const link = await world.tapped('bound')
    await using first = await browser.open(link)
    assert.equal(await headingOf(first), bound)
    await world.components.database.query("update tap set first_seen = first_seen - interval '1 hour'")
    await using copied = await browser.open(link)
    assert.equal(await headingOf(copied), 'Tap again')
    await copied.reload()
    await shows(copied, 'Record only')
    await first.reload()
    await shows(first, 'Tap again')
  })

  it('keeps the tap when the language is switched, and opens the untapped page where there is no script', async () => {
    const link = await world.tapped('claimed')
    await using page = await browser.open(link)
    await page.locator('.lang summary').click()
    await page.getByRole('link', { name: 'العربية' }).click()
    await shows(page, 'أصلية، بمالك حديث')
    await page.waitForURL(({ search }) => search === '?lang=ar') // the script runs after the page shows
    assert.deepEqual(await page.evaluate('[document.documentElement.lang, document.documentElement.dir]'), [
      'ar',
      'rtl',
    ])
    await page.reload()
    await shows(page, 'أصلية، بمالك حديث')
    await using plain = await browser.open(link, { javaScriptEnabled: false })
    await plain.locator('.lang summary').click()
    await plain.getByRole('link', { name: 'Deutsch' }).click()
    await shows(plain, 'Nur der Eintrag')
  })

  it('changes colour, headline and steps with what the visitor is doing, also without script', async () => {
    const link = await world.tapped('claimed')
    for (const javaScriptEnabled of [true, false]) {
      await using page = await browser.open(link, { javaScriptEnabled })
      for (const [role, headline, colour, step] of [
        ['Buying it new', 'Genuine, not new', 'hold', 'Ask the shop why it has an owner.'],
        ['Buying it second-hand', claimed, 'hold', 'Ask for the first receipt'],
        ['It is mine', 'Genuine, claimed', 'go', 'Test below whether your wallet is its owner on record'],
      ] as const) {
        await page.getByLabel(role).check()
        await shows(page, headline)
        assert.ok(await page.locator(`.word.tone-${colour}:visible`).isVisible())
        assert.match(await page.locator('.next:visible').innerText(), new RegExp(step))
      }
    }
  })

  it('tries the same tap again where it could not be looked at', async () => {
    const tap = await world.tap('chair')
    await using page = await browser.open(`${world.limitedUrl}${await world.pathOf('chair')}?${tap}`)
    await shows(page, 'Too many requests')
    assert.equal(new URL(page.url()).search, '')
    const [request] = await Promise.all([
      page.waitForRequest((one) => one.url().includes('picc=')),
      page.getByRole('link', { name: 'Try again' }).click(),
    ])
    assert.ok(request.url().endsWith(tap))
  })

  it('is complete without script: verdict, product, history, commands, code, search', async () => {
    await using page = await browser.open(await world.tapped('claimed'), { javaScriptEnabled: false })
    assert.equal(await headingOf(page), claimed)
    const text = (await page.locator('main').textContent()) ?? ''
    for (const part of ['Satchel No. 7', 'Claimed by an owner', 'cast call', ' verify http', world.contract])
      assert.ok(text.toLowerCase().includes(part.toLowerCase()), part)
    assert.ok(text.includes('S7-1182'))
    assert.ok(await page.getByRole('img', { name: /QR code/ }).isVisible())
    assert.equal(await page.locator('button:visible, form:visible').count(), 3) // the form for a certificate, its two buttons
    await page.goto(`${world.url}/`)
    const form = page.getByRole('form', { name: 'By product number' })
    for (const [name, text] of Object.entries({ gtin: '9520003000001', serial: 'S7-1182' }))
      await form.locator(`[name=${name}]`).fill(text)
    await form.getByRole('button', { name: 'Look up' }).click()
    await shows(page, 'Record only')
    assert.equal(new URL(page.url()).pathname, '/01/09520003000001/21/S7-1182')
  })

  it('rechecks the record with the client library, at the provider that the operator offers', async () => {
    await using page = await browser.open(`${world.url}${await world.pathOf('opened')}`)
    const outcome = page.locator('[data-recheck] .outcome')
    await page.locator('.proof > summary').click()
    const recheck = async (sentence: RegExp) => {
      await page.getByRole('button', { name: 'Recheck now' }).click()
      await page.locator('[data-recheck] .outcome:is(.yes, .no)').waitFor({ timeout: 240_000 })
      assert.match(await outcome.locator('p').innerText(), sentence)
    }
    await recheck(/^Every field agrees with the blockchain at block \d+\.$/)
    assert.ok((await outcome.locator('dl > div').count()) > 10)
    const answerWith = (change: (verdict: Verdict) => object) =>
      page.route('**/api/asset/*', async (route) => {
        const verdict = (await (await route.fetch()).json()) as Verdict
        await route.fulfill({ json: { ...verdict, ...change(verdict) } })
      })
    await answerWith(({ untrusted }) => ({ untrusted: { ...untrusted, name: 'Another name' } }))
    await recheck(/^This does not agree with the blockchain: metadata\.texts\./)
    await page.unroute('**/api/asset/*')
    await page.route('**/api/metadata/*', (route) => route.fulfill({ status: 503 }))
    await recheck(/^Nothing disagrees with the blockchain, but this could not be checked: metadata\.texts\./)
    await page.unroute('**/api/metadata/*')
    await world.write({ kind: 'flag', tokenId: world.tokenOf('opened'), bits: 4, reasonHash: `0x${'0'.repeat(64)}` })
    await recheck(/it has changed since this page was made/)
    await answerWith(() => ({ state: 'CLAIMED', state_code: 4, flagged: false }))
    await recheck(/^This does not agree with the blockchain: .*state.*flagged/)
    await page.route(world.chainUrl, async (route) => {
      const { id, method } = route.request().postDataJSON() as { id: number; method: string }
      const json = { jsonrpc: '2.0', id, result: method === 'eth_chainId' ? '0x14a34' : null }
      await route.fulfill({ json, headers: { 'access-control-allow-origin': '*' } })
    })
    await recheck(/^Nothing disagrees with the blockchain, but this could not be checked: block\./)
  })

  it('asks no provider that the operator does not offer', async () => {
    await using page = await browser.open(`${world.url}${await world.pathOf('claimed')}`, {
      allowed: /Content Security Policy|Refused to connect|Fetch API/,
    })
    await page.locator('.proof > summary').click()
    await page.getByLabel('Provider').fill(world.bareUrl)
    await page.getByRole('button', { name: 'Recheck now' }).click()
    await page.getByText('Nothing was checked').waitFor({ timeout: 240_000 })
  })

  it('tests an owner without sending the address anywhere', async () => {
    await using page = await browser.open(`${world.url}${await world.pathOf('claimed')}`)
    await page.getByText('Test that it is mine').click()
    const sent: string[] = []
    page.on('request', (request) => sent.push(`${request.url()} ${request.postData() ?? ''}`.toLowerCase()))
    const test = async (address: string, answer: string) => {
      await page.getByLabel('Wallet address').fill(address)
      await page.getByRole('button', { name: 'Test', exact: true }).click()
      await page.getByText(answer, { exact: true }).waitFor({ timeout: 240_000 })
    }
    const [operator = '', , owner = ''] = publishedAddresses
    await test(owner, 'Yes, this address holds the item.')
    await test(operator, 'No, this address does not hold the item.')
    await test(`\u200e ${owner}. `, 'Yes, this address holds the item.')
    await test(`${owner} or ${operator}`, 'A wallet address is 0x and 40 letters and digits.')
    await test('0x12', 'A wallet address is 0x and 40 letters and digits.')
    assert.ok(sent.some((request) => request.includes('/api/asset/')))
    assert.ok(!sent.some((request) => request.includes(owner.slice(2).toLowerCase())))
  })

  it('drops the answer of a test of an owner that comes after that of a later one', async () => {
    await using page = await browser.open(`${world.url}${await world.pathOf('claimed')}`)
    await page.getByText('Test that it is mine').click()
    const { promise: held, resolve: release } = Promise.withResolvers<void>()
    await page.route('**/api/asset/*', (route) => held.then(() => route.continue()), { times: 1 })
    const [operator = '', , owner = ''] = publishedAddresses
    const test = async (address: string) => {
      await page.getByLabel('Wallet address').fill(address)
      await page.getByRole('button', { name: 'Test', exact: true }).click()
    }
    const asked = page.waitForRequest('**/api/asset/*')
    await test(operator)
    const early = await asked
    await test(owner)
    const yes = page.getByText('Yes, this address holds the item.', { exact: true })
    await yes.waitFor({ timeout: 240_000 })
    release()
    await (await early.response())?.finished()
    // The page has dealt with the answer two frames after it came.
    await page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))')
    assert.ok(await yes.isVisible())
  })

  it('takes a report that the item looks different: once for each tap, from its own form, without the visitor', async () => {
    const { differences } = world.components
    const ticketOf = async () => {
      const page = await (await fetch(await world.tapped('satchel'))).text()
      return /name="ticket" value="([^"]+)"/.exec(page)?.[1] ?? ''
    }
    const ticket = await ticketOf()
    const send = (fields: Record<string, string>, headers: Record<string, string> = {}, lang = 'en') =>
      world.get(`/report?lang=${lang}`, { method: 'POST', body: new URLSearchParams(fields), headers })
    const tokenId = world.tokenOf('satchel')
    const open = () => differences.list({ tokenId, limit: 10 })

    for (const refused of [
      await send({ for: 'new' }),
      await send({ ticket: forgeTicket(ticket) }),
      await send({ ticket }, { 'Sec-Fetch-Site': 'cross-site' }),
      await send({ ticket, note: 'x'.repeat(9_000) }),
      await world.get('/report', { method: 'POST', body: JSON.stringify({ ticket }) }),
    ]) {
      assert.equal(refused.status, 400)
      assert.equal(headlineOf(await refused.text()), 'Tap once more')
    }
    assert.equal((await world.get('/report')).status, 405)
    assert.deepEqual(await open(), [])

    const note = `Stitches are straight.\u001b[2J\u202e ${'<b>'.repeat(60)}`
    const answer = await send({ ticket, for: 'second', note }, { 'Sec-Fetch-Site': 'same-origin' }, 'de')
    assert.equal(answer.status, 200)
    assert.equal(answer.headers.get('cache-control'), 'no-store')
    const thanks = await answer.text()
    assert.equal(headlineOf(thanks), 'Danke. Es ist gemeldet')
    assert.match(thanks, /Bezahlen Sie nicht\. Bewahren Sie das Angebot/)
    assert.ok(!thanks.includes('Stitches'))
    assert.equal((await send({ ticket, for: 'mine', note: 'again' })).status, 200)
    const [report, ...others] = await open()
    assert.deepEqual(others, [])
    const { at: _at, id, ...stored } = report ?? { at: '', id: '' }
    assert.deepEqual(stored, {
      tokenId: String(tokenId),
      tapCounter: Number(ticket.split('.')[2]),
      role: 'second',
      note: `Stitches are straight. ${'<b>'.repeat(60)}`,
    })
    assert.equal((await send({ ticket: await ticketOf() })).status, 200)
    assert.deepEqual(
      (await open()).map(({ role, note: text }) => [role, text]),
      [
        ['new', ''],
        ['second', stored.note],
      ],
    )
    assert.equal(await differences.close((await open()).map((one) => one.id)), 2)
    assert.equal(await differences.close([id]), 0)
  })

  it('says that a report is not kept where the item has 50 open ones', async () => {
    const { differences } = world.components
    const tokenId = world.tokenOf('satchel')
    const send = async () => {
      const page = await (await fetch(await world.tapped('satchel'))).text()
      const ticket = /name="ticket" value="([^"]+)"/.exec(page)?.[1] ?? ''
      return () => world.get('/report', { method: 'POST', body: new URLSearchParams({ ticket, for: 'mine' }) })
    }
    const headline = async (answer: Response) => [answer.status, headlineOf(await answer.text())]
    const first = await send()
    assert.deepEqual(await headline(await first()), [200, 'Thank you. It is reported'])
    for (let tapCounter = 1_001; tapCounter < 1_050; tapCounter += 1)
      await differences.add({ tokenId, epoch: 0, tapCounter, role: 'new', note: '' })
    const refused = await (await send())()
    assert.match(await refused.clone().text(), /go back to the seller with the receipt/)
    assert.deepEqual(await headline(refused), [409, 'Your report was not kept'])
    assert.ok(world.lines.some((line) => line.includes('"difference report not kept"')))
    assert.deepEqual(await headline(await first()), [200, 'Thank you. It is reported'])
    assert.equal(await differences.close((await differences.list({ tokenId, limit: 99 })).map(({ id }) => id)), 50)
  })

  it('sends the report without script, with what the visitor is doing', async () => {
    await using page = await browser.open(await world.tapped('jacket'), { javaScriptEnabled: false })
    assert.equal(await page.getByRole('button', { name: 'Report it' }).isVisible(), false)
    await page.getByLabel('It is mine').check()
    await page.getByLabel('No, it does not').check()
    await page.getByLabel('What differs?').fill('The zip is plastic.')
    await page.getByRole('button', { name: 'Report it' }).click()
    await shows(page, 'Thank you. It is reported')
    assert.match(await page.locator('main').innerText(), /go back to the seller with the receipt/)
    const tokenId = world.tokenOf('jacket')
    const [report] = await world.components.differences.list({ tokenId, limit: 1 })
    assert.deepEqual([report?.role, report?.note], ['mine', 'The zip is plastic.'])
  })

  it('loads at most 60 kB and six files besides pictures of 60 kB each, and nothing moves when they arrive', async () => {
    await using page = await browser.open('about:blank', { viewport: { width: 390, height: 844 } })
    const loaded: Promise<{ readonly url: string; readonly bytes: number }>[] = []
    page.on('requestfinished', (request) => {
      const bytes = request.sizes().then((sizes) => sizes.responseBodySize + sizes.responseHeadersSize)
      loaded.push(bytes.then((size) => ({ url: request.url(), bytes: size })))
    })
    for (const name of ['satchel', 'jacket'] as const) {
      loaded.length = 0
      await page.goto(await world.tapped(name), { waitUntil: 'networkidle' })
      // A busy machine is quiet for half a second before it asks for pictures.
      await until(async () => (await Promise.all(loaded)).some(({ url }) => url.includes('/assets/pictures/')))
      await page.waitForLoadState('networkidle')
      const all = await Promise.all(loaded)
      const pictures = all.filter(({ url }) => url.includes('/assets/pictures/'))
      const rest = all.filter((one) => !pictures.includes(one))
      assert.ok(pictures.length > 0 && pictures.every(({ bytes }) => bytes <= 60_000), name)
      assert.ok(rest.length <= 6, rest.map(({ url }) => url).join())
      const sum = rest.reduce((total, { bytes }) => total + bytes, 0)
      assert.ok(sum <= 60_000, `${name}: ${sum} bytes`)
      const shift: number = await page.evaluate(`new Promise((resolve) => {
        let sum = 0
        new PerformanceObserver((list) => { for (const { value } of list.getEntries()) sum += value })
          .observe({ type: 'layout-shift', buffered: true })
        requestAnimationFrame(() => requestAnimationFrame(() => resolve(sum)))
      })`)
      assert.equal(shift, 0, name)
    }
  })

  it('keeps a long brand name and large text inside a narrow screen', async () => {
    await using page = await browser.open(await world.tapped('satchel'), { viewport: { width: 360, height: 740 } })
    const edges = () =>
      page.evaluate<number[]>(
        `[document.documentElement.scrollWidth, document.querySelector('.lang').getBoundingClientRect().right]`,
      )
    const isInside = async () => {
      const [page = 0, languages = 0] = await edges()
      assert.ok(page <= 360 && languages <= 360, `${page} ${languages}`)
    }
    await page.evaluate(`document.documentElement.style.fontSize = '200%'`)
    await isInside()
    for (const name of ['Manufacture Horlogère de Genève et Fils', 'W'.repeat(60)])
      for (const size of ['100%', '200%']) {
        await page.evaluate(`(document.documentElement.style.fontSize = '${size}',
          document.querySelector('.brand span').textContent = '${name}')`)
        await isInside()
      }
  })

  it('shows the maker’s name as text where nothing is proven and no brand is listed, and no mark leaves its line', async () => {
    const nameOf = (page: Page) =>
      page.evaluate<string[]>(`(({ fontSize, fontWeight, overflowY }) => [fontSize, fontWeight, overflowY])(
        getComputedStyle(document.querySelector('.thing')))`)
    await using record = await browser.open(`${world.url}${await world.pathOf('activated')}`)
    assert.deepEqual(await nameOf(record), ['16px', '400', 'clip'])
    await using proven = await browser.open(await world.tapped('activated'))
    assert.deepEqual(await nameOf(proven), ['22px', '650', 'clip'])
  })

  it('copies the link without the tap and hands the passport out as a file', async () => {
    await using page = await browser.open(await world.tapped('claimed'), {
      permissions: ['clipboard-read', 'clipboard-write'],
      acceptDownloads: true,
    })
    const copy = page.getByRole('button', { name: 'Copy link' })
    await copy.dblclick()
    await page.getByRole('button', { name: 'Copied' }).waitFor()
    await copy.waitFor()
    assert.equal(await page.evaluate('navigator.clipboard.readText()'), `${world.url}${await world.pathOf('claimed')}`)
    await page.evaluate("navigator.clipboard.writeText = () => Promise.reject(new Error('not allowed'))")
    await copy.click()
    await page.getByRole('button', { name: 'Not copied' }).waitFor()
    await copy.waitFor()
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Download passport' }).click(),
    ])
    const passport = JSON.parse(await readFile(await download.path(), 'utf8')) as { type: string[]; proof?: unknown }
    assert.deepEqual(
      [download.suggestedFilename(), passport.type[1], passport.proof],
      ['passport.jsonld', 'DigitalProductPassport', undefined],
    )
  })
})
