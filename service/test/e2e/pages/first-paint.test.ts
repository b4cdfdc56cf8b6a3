/**
 * The verdict of a tap is painted before any script or picture arrives (spec §4.5). `npm run bench:pages` measures the time. The last test
 * prints the page.
 */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { PDFDocument } from '@cantoo/pdf-lib'
import type { Request, Route } from 'playwright-core'
import { languages } from '../../../src/pages/languages.ts'
import { noBrowser, type PageBrowser } from '../../support/pages/browser.ts'
import { openPages } from '../../support/pages/opened.ts'
import { verdictPaint, watchVerdict } from '../../support/pages/paint.ts'
import type { PageWorld } from '../../support/pages/pages.ts'
import { until } from '../../support/wait.ts'

/** Bytes that a server may send before the first acknowledgement (RFC 6928: ten segments). */
const firstFlight = 14_600
/** Kinds of requests that the verdict waits for. */
const needed = ['document', 'stylesheet']

describe('the verdict of a tapped page', { skip: noBrowser }, () => {
  let world: PageWorld
  let browser: PageBrowser
  openPages((opened) => ({ world, browser } = opened))
  for (const name of ['satchel', 'claimed', 'activated', 'stolen'] as const)
    it(`is painted before any script or picture arrives: ${name}`, async () => {
      await using page = await browser.open('about:blank', { viewport: { width: 390, height: 740 } })
      const [held, arrived] = [Array<Route>(), Array<Promise<number>>()]
      await page.route('**/*', async (route) => {
        if (needed.includes(route.request().resourceType())) await route.continue()
        else held.push(route)
      })
      const count = (request: Request) => {
        arrived.push(request.sizes().then((sizes) => sizes.responseBodySize + sizes.responseHeadersSize))
      }
      page.on('requestfinished', count)
      await watchVerdict(page)
      await page.goto(await world.tapped(name), { waitUntil: 'commit' })
      await verdictPaint(page)
      page.off('requestfinished', count)
      const sizes = await Promise.all(arrived)
      assert.ok(held.length > 0, 'nothing was held back')
      assert.ok(sizes.length <= 3, `${sizes.length} requests`)
      const bytes = sizes.reduce((sum, size) => sum + size, 0)
      assert.ok(bytes <= 56_000, `${bytes} bytes`)
      await Promise.all(held.map((route) => route.continue()))
      await page.waitForLoadState('load')
    })

  it('asks for no picture before its style sheets are there', async () => {
    await using page = await browser.open('about:blank', { viewport: { width: 390, height: 740 } })
    const [held, asked] = [Array<Route>(), Array<string>()]
    await page.route('**/*', async (route) => {
      asked.push(route.request().resourceType())
      if (asked.at(-1) === 'stylesheet') held.push(route)
      else await route.continue()
    })
    await page.goto(await world.tapped('satchel'), { waitUntil: 'commit' })
    await page.evaluate(`new Promise((resolve) => {
      const test = () => document.readyState !== 'loading' && resolve()
      document.addEventListener('readystatechange', test)
      test()
    })`)
    await until(() => held.length === 2) // the browser may report a request after the document is parsed
    assert.deepEqual([held.length, asked.includes('image')], [2, false])
    const picture = page.waitForRequest((request) => request.resourceType() === 'image')
    await Promise.all(held.map((route) => route.continue()))
    await picture
    await page.waitForLoadState('load')
  })

  it('stands in the first bytes of its document, whose style sheets load nothing more', async () => {
    const page = await (await fetch(await world.tapped('claimed'))).text()
    const before = Buffer.byteLength(page.slice(0, page.indexOf('<fieldset class="role"')))
    assert.ok(before <= firstFlight / 2, `${before} bytes`)
    const sheets = [...page.matchAll(/<link rel="stylesheet" href="([^"]+)"/g)].map(([, path = '']) => path)
    assert.equal(sheets.length, 2)
    for (const path of sheets) assert.doesNotMatch(await (await world.get(path)).text(), /@import|url\((?!["']?data:)/)
  })

  it('keeps the words of its first fact away from the line of the second, in every language and width', async () => {
    const tapped = await world.tapped('claimed')
    for (const language of languages) {
      await using page = await browser.open(`${tapped}&lang=${language}`)
      for (const width of [360, 390, 412]) {
        await page.setViewportSize({ width, height: 740 })
        const gap = Number(await page.evaluate(gapOfFacts))
        assert.ok(gap >= 4, `${language} ${width}: ${gap}`)
      }
    }
  })

  it('is printed with its picture above it, on white, without questions or buttons', async () => {
    await using page = await browser.open(await world.tapped('satchel'), { viewport: { width: 718, height: 1_000 } })
    await page.emulateMedia({ media: 'print' })
    const [art, headline] = [
      await page.locator('.art').boundingBox(),
      await page.locator('.verdict .seal:visible').boundingBox(),
    ]
    assert.ok(
      art && headline && art.height > 100 && art.y + art.height <= headline.y,
      'the picture lies over the verdict',
    )
    assert.equal(
      await page.evaluate('getComputedStyle(document.documentElement).backgroundColor'),
      'rgb(255, 255, 255)',
    )
    assert.equal(await page.locator('button:visible, input:visible, .btn:visible').count(), 0)
    const paper = await PDFDocument.load(await page.pdf({ format: 'A4' }))
    assert.ok(paper.getPageCount() <= 2)
  })

  it('is printed in black where it is white on a colour, with its seal', async () => {
    for (const name of ['stolen', 'opened', 'recall', 'home'] as const) {
      const url = name === 'home' ? `${world.url}/` : await world.tapped(name)
      await using page = await browser.open(url)
      await page.emulateMedia({ media: 'print' })
      const inks: { readonly of: string; readonly colour: string }[] = await page.evaluate(inksOnColour)
      for (const part of [name === 'home' ? 'H1.' : 'SPAN.word', 'path.'])
        assert.ok(
          inks.some(({ of }) => of.startsWith(part)),
          part,
        )
      const light = inks.filter(({ colour }) =>
        (colour.match(/\d+/g) ?? []).slice(0, 3).some((one) => Number(one) > 0x33),
      )
      assert.deepEqual(light, [], name)
    }
  })
})

/** The least space between the words of the first fact and the line of the second, in pixels. */
const gapOfFacts = `{
  const [first, second] = document.querySelectorAll('.facts > div')
  const line = second.getBoundingClientRect()
  const isMirrored = getComputedStyle(first).direction === 'rtl'
  const texts = document.createTreeWalker(first.querySelector('dd'), NodeFilter.SHOW_TEXT)
  const words = document.createRange()
  const gaps = []
  while (texts.nextNode()) {
    words.selectNodeContents(texts.currentNode)
    for (const { left, right } of words.getClientRects()) gaps.push(isMirrored ? left - line.right : line.left - right)
  }
  Math.min(...gaps)
}`

/** The colours of texts and strokes that stand on a colour on a screen. */
const inksOnColour = `[...document.querySelectorAll('.verdict *, .hero h1, .hero p, .colours .tone-stop .sealed *')].filter((element) => element.checkVisibility()).flatMap((element) => {
  const { color, stroke, fill } = getComputedStyle(element)
  const isText = [...element.childNodes].some(({ nodeType, data }) => nodeType === 3 && data.trim() !== '')
  const drawn = element instanceof SVGGeometryElement ? [stroke, fill].filter((colour) => colour !== 'none') : []
  return [...(isText ? [color] : []), ...drawn].map((colour) => ({ of: element.tagName + '.' + element.getAttribute('class'), colour }))
})`
