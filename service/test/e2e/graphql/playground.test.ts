/** The playground in a real browser (spec §4.9, §6): every example answers, without internet, and the key is kept nowhere. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { Page } from 'playwright-core'
import { commandsOf } from '../../support/processes/cli.ts'
import { axe, noBrowser, startBrowser, type PageBrowser } from '../../support/pages/browser.ts'
import { startPageWorld, type PageWorld } from '../../support/pages/pages.ts'
import { eventually, until } from '../../support/wait.ts'

const wrongKey = `ts_live_${'w'.repeat(43)}`

describe('the playground in Chromium', { skip: noBrowser }, () => {
  let world: PageWorld
  let browser: PageBrowser
  let url: string
  let key: string
  before(async () => {
    world = await startPageWorld()
    url = `${new URL(world.urls.graphql).origin}/playground`
    const made = await commandsOf(world)('key', 'create', 'playground', '--scope', 'read,write')
    key = /ts_live_[\w-]{43}/.exec(made.out)?.[0] ?? assert.fail(made.err)
    await indexed(new URL('graphql', url).href, key)
    browser = await startBrowser([url])
  })
  after(async () => {
    await browser?.close()
    await world?.end()
  })

  it('answers every query and mutation of its tabs once a key is typed', async () => {
    await using page = await browser.open(url)
    await typeKey(page, key)
    await page.getByText('The key is accepted.').waitFor()
    for (const [tab, found] of [
      ['Products', /"brand": "Calder & Wick"/],
      ['ProductWithTransfers', /"name": "Satchel No. 7"/],
      ['Transfers', /"totalCount": \d/],
      ['RegisterProduct', /"success": true/],
    ] as const) {
      await choose(page, tab)
      await run(page)
      assert.doesNotMatch(await answerWith(page, found), /"errors": \[\s*\{/, tab)
    }
  })

  it('shows query and response at full width on a telephone, without scrolling sideways', async () => {
    await using page = await browser.open(url, { viewport: { width: 390, height: 844 } })
    await tabOf(page, 'Products').waitFor()
    assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 390)
    for (const part of ['#key', '.graphiql-query-editor', '.graphiql-response']) {
      const { width = 0 } = (await page.locator(part).boundingBox()) ?? {}
      assert.ok(width > (part === '#key' ? 200 : 340), `${part}: ${width} px`)
    }
  })

  it('shows a tap when it happens, and ends the subscription at once when it is stopped', async () => {
    await using page = await browser.open(url)
    await typeKey(page, key)
    await choose(page, 'ProductVerified')
    await run(page)
    await page.getByText('Subscribed: each event appears when it happens.').waitFor()
    assert.equal((await fetch(await world.tapped('activated'))).status, 200)
    assert.match(await answerWith(page, /productVerified/), new RegExp(`"id": "${world.tokenOf('activated')}"`))
    await page.getByRole('button', { name: /^Stop query/ }).click()
    await page.getByRole('button', { name: /^Execute query/ }).waitFor()
    assert.equal(await page.locator('#said').innerText(), '')
  })

  it('completes and documents from the schema', async () => {
    await using page = await browser.open(url)
    await typeKey(page, key)
    await page.getByText('The key is accepted.').waitFor()
    await page.getByRole('button', { name: 'Show Documentation Explorer' }).click()
    await page.getByRole('link', { name: 'Query', exact: true }).click()
    await page.getByRole('link', { name: 'transferTypedData', exact: true }).waitFor()
  })

  it('opens its dialogs under the policy of the page, and changes its look', async () => {
    await using page = await browser.open(url, { colorScheme: 'light' })
    await page.getByLabel('Open settings dialog').click()
    await page.getByRole('button', { name: 'Dark', exact: true }).click()
    await page.getByRole('button', { name: 'Close dialog' }).click()
    assert.equal(await page.evaluate('getComputedStyle(document.body).colorScheme'), 'dark')
    assert.equal(await page.getByText('Persist headers').count(), 0)
  })

  it('shows what is wrong without a key, and with a wrong one over HTTP and over the socket', async () => {
    await using page = await browser.open(url, { allowed: /WebSocket/ })
    await choose(page, 'Products')
    await run(page)
    await answerWith(page, /Type an API key above first/)
    await typeKey(page, wrongKey)
    await run(page)
    await answerWith(page, /UNAUTHENTICATED/)
    await page.getByText('This key is refused: it is wrong or was revoked.').waitFor()
    await choose(page, 'ProductVerified')
    await run(page)
    await answerWith(page, /closed: 4403/)
  })

  it('takes the header of a tab before the key of the page', async () => {
    await using page = await browser.open(url)
    await typeKey(page, wrongKey)
    await choose(page, 'Products')
    await typeHeader(page, { Authorization: `Bearer ${key}` })
    await run(page)
    await answerWith(page, /"totalCount"/)
  })

  it('keeps no key in any storage, address or element, wherever it was typed, and still keeps the tabs', async () => {
    await using page = await browser.open(url)
    await typeKey(page, key)
    await choose(page, 'Products')
    await typeHeader(page, { Authorization: `Bearer ${key}` })
    await run(page)
    await answerWith(page, /"totalCount"/)
    await page.waitForTimeout(1_000) // GraphiQL writes with a delay
    const kept = await everythingKept(page)
    assert.match(kept, /query Products/)
    assert.match(kept, /graphiql:queries/)
    assert.ok(!kept.includes(key.slice(8)), kept)
    await page.reload()
    await tabOf(page, 'Products').waitFor()
    assert.equal(await page.locator('.graphiql-tab-button').count(), 6, 'the same tabs, none twice')
    assert.equal(await page.getByLabel('API key').inputValue(), '')
    assert.ok(!(await page.content()).includes(key.slice(8)))
    assert.ok(!(await everythingKept(page)).includes(key.slice(8)))
  })

  it('does not keep a query or variables with a key in it', async () => {
    await using page = await browser.open(url)
    await choose(page, 'Transfers')
    await page.locator('.graphiql-query-editor .CodeMirror').click()
    await page.keyboard.press('ControlOrMeta+A')
    await page.keyboard.insertText(`query Pasted { product(id: "${key}") { id } }`)
    await tabOf(page, 'Pasted').waitFor()
    await page.waitForTimeout(1_000)
    assert.ok(!(await everythingKept(page)).includes(key.slice(8)))
  })

  for (const colorScheme of ['light', 'dark'] as const)
    it(`breaks no rule of axe-core in its own part, ${colorScheme}, and labels every field of GraphiQL too`, async () => {
      await using page = await browser.open(url, { colorScheme })
      await tabOf(page, 'Products').waitFor()
      await page.evaluate(axe)
      const broken = (target: string, rules: string) =>
        page.evaluate(
          `axe.run(${target}, ${rules}).then(({ violations, passes }) => [passes.length > 0, violations.map(({ id }) => id)])`,
        )
      assert.deepEqual(await broken(`'header'`, '{}'), [true, []])
      assert.deepEqual(
        await broken(
          'document',
          `{ runOnly: ['label', 'aria-input-field-name', 'button-name', 'page-has-heading-one'] }`,
        ),
        [true, []],
      )
    })
})

/** Waits until the products of the demonstration are in the index. */
async function indexed(endpoint: string, key: string): Promise<void> {
  const query = '{ products { totalCount } }'
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  await until(async () => {
    const text = await (await fetch(endpoint, { method: 'POST', headers, body: JSON.stringify({ query }) })).text()
    return Number(/"totalCount":(\d+)/.exec(text)?.[1]) >= 14
  })
}

async function typeKey(page: Page, key: string): Promise<void> {
  await page.getByLabel('API key').fill(key)
  await page.getByLabel('API key').press('Tab')
}

async function choose(page: Page, tab: string): Promise<void> {
  await tabOf(page, tab).click()
}

function tabOf(page: Page, name: string) {
  return page.locator('.graphiql-tab-button').getByText(name, { exact: true })
}

/** Headers of the chosen tab. */
async function typeHeader(page: Page, headers: Readonly<Record<string, string>>): Promise<void> {
  await page.getByRole('button', { name: 'Headers', exact: true }).click()
  await page.locator('.graphiql-editor-tool .graphiql-editor:not(.hidden) .CodeMirror').click()
  await page.keyboard.insertText(JSON.stringify(headers))
}

async function run(page: Page): Promise<void> {
  await page.getByRole('button', { name: /^Execute query/ }).click()
}

/** The text of the response once it holds this. */
async function answerWith(page: Page, found: RegExp): Promise<string> {
  let shown = ''
  const isShown = async () => {
    shown = String(
      await page.evaluate(`document.querySelector('.graphiql-response .CodeMirror').CodeMirror.getValue()`),
    )
    return found.test(shown)
  }
  assert.ok(await eventually(isShown), `no ${String(found)} in ${shown}`)
  return shown
}

/** All that a page can keep beyond itself, as one text. */
async function everythingKept(page: Page): Promise<string> {
  const inPage = await page.evaluate(`(async () => JSON.stringify({
    local: { ...localStorage }, session: { ...sessionStorage }, cookie: document.cookie, address: location.href, state: history.state,
    databases: await indexedDB.databases(), caches: await caches.keys(), name: window.name,
  }))()`)
  return `${String(inPage)} ${JSON.stringify(await page.context().storageState({ indexedDB: true }))}`
}
