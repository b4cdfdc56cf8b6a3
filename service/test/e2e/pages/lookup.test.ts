/** Look-ups for people who work with many items: brand and serial, and lists (decisions/0039). */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { after, before, describe, it } from 'node:test'
import { parse } from 'csv-parse/sync'
import { createRateLimiter } from '../../../src/http/rate-limit/limiter.ts'
import { gtinCheckDigit } from '../../../src/domain/gs1/gtin.ts'
import { hostOf } from '../../support/pages/host.ts'
import { audit, headingOf, noBrowser, startBrowser } from '../../support/pages/browser.ts'
import { headlineOf } from '../../support/pages/headline.ts'
import { startPageWorld } from '../../support/pages/pages.ts'

const satchel = { gtin: '09520003000001', serial: 'S7-1182' }

const world = await startPageWorld()
after(() => world.end())

describe('an address that a browser comes back to', () => {
  const browser = { Accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8' }
  const ask = (path: string, init: RequestInit = {}) => world.get(path, { ...init, redirect: 'manual' })

  it('leads on from the answer of a form to the start page, in its language; programs get JSON', async () => {
    for (const path of ['/report', '/certificate']) {
      const back = await ask(`${path}?lang=de`, { headers: browser })
      assert.deepEqual([back.status, back.headers.get('location')], [303, '/?lang=de'], path)
      assert.equal((await ask(path, { headers: browser })).headers.get('location'), '/')
      for (const init of [{}, { headers: { Accept: 'application/json' } }, { method: 'PUT', headers: browser }]) {
        const refused = await ask(path, init)
        assert.deepEqual([refused.status, refused.headers.get('allow')], [405, 'POST'], path)
        assert.deepEqual(await refused.json(), { error: 'This route answers POST.' })
      }
    }
  })

  it('leads from /tap/ to /tap with the tap, which is not used up on the way', async () => {
    const query = await world.tap('activated')
    const moved = await ask(`/tap/?${query}`)
    const { location, 'cache-control': cache, 'referrer-policy': referrer } = Object.fromEntries(moved.headers)
    assert.deepEqual([moved.status, location, cache, referrer], [308, `/tap?${query}`, 'no-store', 'no-referrer'])
    const shown = await (await world.get(`/tap/?${query}`)).text()
    assert.equal(headlineOf(shown), 'Genuine chip')
    assert.match(shown, /link opened for the first time/)
    assert.equal((await ask('/tap/')).headers.get('location'), '/tap')
    assert.equal((await ask(`/tap/?${'a'.repeat(2_001)}`)).status, 404)
  })
})

describe('a look-up of one text', () => {
  const find = async (text: string) => {
    const query = new URLSearchParams({ find: text })
    const answer = await world.get(`/?${String(query)}`, { redirect: 'manual', headers: { 'Accept-Language': 'en' } })
    return { status: answer.status, to: answer.headers.get('location'), page: await answer.text() }
  }

  it('leads to the item, or to the kind of product', async () => {
    const item = `/01/${satchel.gtin}/21/${satchel.serial}`
    for (const [text, path] of [
      [satchel.serial, item],
      [`(01)${satchel.gtin}(21)${satchel.serial}`, item],
      [`\x1d01${satchel.gtin}21${satchel.serial}`, item],
      [`${world.url}${item}?picc=00&cmac=00`, item],
      ['9520003000001', `/01/${satchel.gtin}`],
      [`${world.url}/token/7`, '/token/7'],
      ['S7-١١٨٢', item],
    ] as const)
      assert.deepEqual([(await find(text)).status, (await find(text)).to], [303, path], text)
  })

  it('lists the items where several fit, and chooses none', async () => {
    const [first, second] = [await world.mint({ name: 'One' }), await world.mint({ name: 'Two' })]
    for (const [tokenId, gtin] of [
      [first, '09520001000010'],
      [second, '09520002000002'],
    ] as const)
      assert.ok((await world.components.items.register({ tokenId, gtin, serial: 'SAME-1' })).ok)
    const { status, page } = await find('SAME-1')
    assert.equal(status, 200)
    for (const part of ['More than one item fits', '/01/09520001000010/21/SAME-1', '/01/09520002000002/21/SAME-1'])
      assert.ok(page.includes(part), part)
  })

  it('shows hostile text and the link of another host as text', async () => {
    const { status, page } = await find('https://evil.example/<script>alert(1)</script>?picc=12')
    assert.equal(status, 400)
    assert.ok(page.includes('https://evil.example/&lt;script&gt;alert(1)&lt;/script&gt;<'))
    assert.ok(!page.includes('href="https://evil.example'))
  })

  it('finds an item by brand and serial among those that the brand’s account minted', async () => {
    const ask = async (brand: string, serial: string) => {
      const answer = await world.get(`/?${String(new URLSearchParams({ brand, serial }))}`, { redirect: 'manual' })
      return [answer.status, answer.headers.get('location')]
    }
    assert.deepEqual(await ask('orvelle', satchel.serial), [303, `/01/${satchel.gtin}/21/${satchel.serial}`])
    assert.deepEqual(await ask('norrvik', satchel.serial), [404, null])
    assert.deepEqual(await ask('nobrand', satchel.serial), [400, null])
    assert.deepEqual(await ask('orvelle', 'two words'), [400, null])
  })

  it('finds it behind many items of others with its serial, and with a long history', async () => {
    const serial = 'MANY-1'
    const { items, database } = world.components
    const register = async (tokenId: bigint, gtin: string) =>
      assert.ok((await items.register({ tokenId, gtin, serial })).ok)
    const others = await world.mintMany(Array.from({ length: 42 }, (_, index) => ({ name: `Other ${index}` })))
    const own = await world.mint({ name: 'Own' })
    // Half of the others have product numbers of another brand, half were minted by another account.
    for (const [index, tokenId] of others.entries())
      await register(
        tokenId,
        gtinOf(`${index % 2 === 0 ? '09520001' : '09520003'}${String(index + 100).padStart(5, '0')}`),
      )
    await register(own, gtinOf('0952000399999'))
    const search = `/?${String(new URLSearchParams({ brand: 'orvelle', serial }))}`
    const ask = async () => {
      const answer = await world.get(search, { redirect: 'manual', headers: { 'Accept-Language': 'en' } })
      return { status: answer.status, to: answer.headers.get('location'), page: await answer.text() }
    }
    const several = await ask()
    assert.equal(several.status, 200)
    assert.ok(several.page.includes('More than one item fits'))
    await database.query(
      `update history set actor = decode(repeat('ab', 20), 'hex') where token_id = any($1::text[]::numeric[])`,
      [others.map(String)],
    )
    await database.query(
      `insert into history (block_number, log_index, token_id, kind, flags, block_hash, tx_hash, ts)
       select block_number, log_index + 1000 + n, token_id, 5, n % 2, block_hash, tx_hash, ts
       from history, generate_series(1, 1001) n where token_id = $1::text::numeric and kind = 1`,
      [String(own)],
    )
    const { status, to } = await ask()
    assert.deepEqual([status, to], [303, `/01/${gtinOf('0952000399999')}/21/${serial}`])
  })

  it('says that a history cannot be read where the index lacks the mint of an item', async () => {
    const { items, database } = world.components
    const gtin = gtinOf('0952000388888')
    const tokenId = await world.mint({ name: 'Lost' })
    assert.ok((await items.register({ tokenId, gtin, serial: 'LOST-1' })).ok)
    await world.get('/?brand=orvelle&serial=LOST-1', { redirect: 'manual' }) // waits for the index
    await database.query('delete from history where token_id = $1::text::numeric', [String(tokenId)])
    const { status } = await world.get('/?brand=orvelle&serial=LOST-1', { redirect: 'manual' })
    assert.equal(status, 503)
  })
})

/** Adds the check digit to the first thirteen digits of a GTIN. */
const gtinOf = (digits: string) => digits + gtinCheckDigit(digits)

type Row = Record<string, string>
const rowsOf = (csv: string) => parse(csv, { columns: true, bom: true }) as Row[]

describe('a list of many', () => {
  const post = (body: string | FormData, headers: Record<string, string> = {}, url = world.url) =>
    fetch(`${url}/bulk?lang=en`, {
      method: 'POST',
      body,
      headers: { ...(typeof body === 'string' && { 'Content-Type': 'text/csv' }), ...headers },
    })
  const csv = { Accept: 'text/csv' }

  it('answers each line at one block, by the verdicts of the service', async () => {
    const lines = [
      String(world.tokenOf('claimed')),
      `${world.url}${await world.pathOf('stolen')}`,
      `${satchel.gtin.slice(1)},${satchel.serial}`,
      satchel.serial,
      '',
      'https://evil.example/token/1',
      '9520003000001',
      'NOT-HERE-1',
      'two words',
      '4711',
      `(01)${satchel.gtin}(10)NO-1`,
      `/01/${satchel.gtin}/10/B%2F1`,
      `(01)${gtinOf('0952000977777')}(10)B-1`,
      `${satchel.gtin},`,
      `${satchel.gtin},${satchel.serial},x`,
    ]
    const answer = await post(lines.join('\r\n'), csv)
    assert.equal(answer.status, 200)
    const rows = rowsOf(await answer.text())
    assert.deepEqual(
      rows.map(({ line, result, state }) => `${line} ${result} ${state}`.trim()),
      [
        '1 found CLAIMED',
        '2 found FLAGGED',
        `3 found ${rows[3]?.['state']}`,
        `4 found ${rows[3]?.['state']}`,
        '6 foreign',
        '7 class',
        '8 none',
        '9 unreadable',
        '10 none',
        '11 class',
        '12 class',
        '13 none',
        '14 class',
        '15 unreadable',
      ],
    )
    assert.deepEqual(
      [5, 9, 10, 12].map((index) => rows[index]?.['link']),
      ['', '/10/NO-1', '/10/B%2F1', ''].map((path) => `${world.url}/01/${satchel.gtin}${path}`),
    )
    assert.equal(new Set(rows.map((row) => row['block_hash'])).size, 1)
    assert.ok(rows.every((row) => row['proves_presence'] === 'no'))
    assert.equal(rows[1]?.['reports'], 'STOLEN')
    for (const { token_id: tokenId, state } of rows.slice(0, 4)) {
      const verdict = (await (await world.get(`/api/asset/${tokenId}`)).json()) as { state: string }
      assert.equal(state, verdict.state)
    }
  })

  it('reads columns by their names, and says so where they name different items', async () => {
    const [claimed, path] = [String(world.tokenOf('claimed')), await world.pathOf('stolen')]
    const list = [
      'Serial;note;GTIN;Token ID;link',
      `${satchel.serial};x;${satchel.gtin};;`,
      `;;;${claimed};`,
      `;;;${claimed};${world.url}${path}`,
      `${satchel.serial};;${satchel.gtin.replace(/1$/, '2')};;`,
      `;x;;;`,
    ]
    const { gtin, serial } = satchel
    const alone = `;;${gtin};;\n${serial};;;;\n4711;;;;\n;;;${serial};\n;;${serial};;\ntwo words;;;;\n;;4711;;`
    const rows = rowsOf(await (await post([...list, alone].join('\n'), csv)).text())
    assert.equal(
      rows.map(({ line, result }) => `${line} ${result}`).join(),
      '2 found,3 found,4 several,4 several,5 unreadable,6 unreadable,7 class,8 found,9 none,10 unreadable,11 unreadable,12 unreadable,13 unreadable',
    )
  })

  it('writes no cell that a spreadsheet would run', async () => {
    const tokenId = await world.mint({ name: '=HYPERLINK("http://evil.example")' })
    const text = await (await post(`=1+1\n${tokenId}`, csv)).text()
    const rows = rowsOf(text)
    assert.deepEqual(
      [rows[0]?.['typed'], rows[1]?.['name_not_checked']],
      [`'=1+1`, `'=HYPERLINK("http://evil.example")`],
    )
  })

  it('does not look up a list that is too long, not text, or sent by another site', async () => {
    const statusOf = async (body: string | FormData, headers = {}) => (await post(body, { ...csv, ...headers })).status
    assert.equal(await statusOf('1\n'.repeat(200)), 200)
    assert.equal(await statusOf('1\n'.repeat(201)), 413)
    assert.equal(await statusOf('1'.repeat(65_537)), 413)
    assert.equal(await statusOf(' \n,\n'), 400)
    assert.equal(await statusOf('1', { 'Sec-Fetch-Site': 'cross-site' }), 400)
    assert.equal(await statusOf('1', { 'Content-Type': 'application/json' }), 400)
    assert.equal(await statusOf('1', { 'Content-Type': 'multipart/form-data; boundary=x' }), 400)
    const latin = new FormData()
    latin.set('file', new Blob([new Uint8Array([0x53, 0xfc, 0x0a])], { type: 'text/csv' }), 'a.csv')
    assert.equal(await statusOf(latin), 400)
    assert.equal((await fetch(`${world.url}/bulk`, { method: 'PUT' })).status, 405)
  })

  it('counts each line in the budget, and consumes one request for a list that does not fit', async () => {
    const limiter = createRateLimiter({ limit: 5, windowSeconds: 60 })
    const host = hostOf(world, { limiter })
    const send = async (body: string) => {
      const answer = await host.request('/bulk?lang=en', {
        method: 'POST',
        body,
        headers: { ...csv, 'Content-Type': 'text/csv' },
      })
      return [answer.status, answer.headers.get('x-ratelimit-remaining'), answer.headers.has('retry-after')]
    }
    assert.deepEqual(await send('1\n2\n3\n4\n5\n6'), [413, '4', false])
    assert.deepEqual(await send('1\n2\n3'), [200, '1', false])
    assert.deepEqual(await send('1\n2'), [429, '0', true])
  })

  it('guesses nothing while the chain is away', async () => {
    assert.equal((await post('1', csv, world.downUrl)).status, 502)
    const page = await (await post('1', {}, world.downUrl)).text()
    assert.match(page, /we do not guess/)
    assert.ok(!page.includes('rows-of-list'))
  })
})

describe('the page of a list', { skip: noBrowser }, () => {
  let browser: Awaited<ReturnType<typeof startBrowser>>
  before(async () => {
    browser = await startBrowser([world.url])
  })
  after(() => browser?.close())

  it('works without script: paste, file, rows, download; keeps hostile names in their frame; fits a telephone', async () => {
    const viewport = { width: 390, height: 740 }
    await using page = await browser.open(`${world.url}/bulk?lang=en`, { javaScriptEnabled: false, viewport })
    assert.equal(await headingOf(page), 'Check many items at once')
    await page.getByLabel('One item on each line').fill(`${world.tokenOf('hostile')}\n<b>bold</b>\n${'W'.repeat(90)}`)
    const buffer = Buffer.from(`\uFEFFtoken_id\n${world.tokenOf('stolen')}\n`)
    await page.getByLabel('Or a CSV file').setInputFiles({ name: 'list.csv', mimeType: 'text/csv', buffer })
    await page.getByRole('button', { name: 'Look up all' }).click()
    await page.getByRole('heading', { name: /Lines/ }).waitFor()
    assert.match(await page.locator('main').innerText(), /They prove nothing about the items in front of you/)
    assert.ok((await page.locator('.framed bdi').count()) > 0)
    assert.equal(await page.locator('bdi *').count(), 0)
    assert.ok(await page.getByText('<b>bold</b>').first().isVisible())
    assert.equal(await page.locator('tr.tone-go').count(), 0)
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('link', { name: 'Download as CSV' }).click(),
    ])
    const rows = rowsOf(await readFile(await download.path(), 'utf8'))
    assert.deepEqual(
      rows.map(({ line, result }) => `${line} ${result}`),
      ['1 found', '2 none', '3 unreadable', '5 found'],
    )
    assert.equal(rows.length, await page.locator('tbody tr').count())
    assert.equal(download.suggestedFilename(), 'touchstone-list.csv')
  })

  it('breaks no rule of axe-core with results, and does not scroll sideways at 390 px', async () => {
    const viewport = { width: 390, height: 740 }
    for (const lang of ['en', 'de', 'ar']) {
      await using page = await browser.open(`${world.url}/bulk?lang=${lang}`, { viewport })
      await page
        .locator('#list')
        .fill(`${world.tokenOf('hostile')}\n${world.tokenOf('stolen')}\n9520003000001\nX\n${'W'.repeat(90)}`)
      await page.locator('main button').click()
      await page.locator('tbody tr').first().waitFor()
      assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 390, lang)
      for (const scheme of ['light', 'dark'] as const) assert.deepEqual((await audit(page, scheme)).broken, [], lang)
      await page.setViewportSize({ width: 1280, height: 800 })
      assert.deepEqual((await audit(page, 'light')).broken, [], lang)
    }
  })
})
