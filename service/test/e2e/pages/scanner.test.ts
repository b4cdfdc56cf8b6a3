/** The scanner of the start page reads codes by camera and from a picture, and chips (decisions/0039). */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import sharp from 'sharp'
import { testFolder } from '../../support/folder.ts'
import { noBrowser, shows, startBrowser } from '../../support/pages/browser.ts'
import { cameraFlags, choosePicture, pictureOf, videoOf } from '../../support/pages/camera.ts'
import { startPageWorld, type PageWorld } from '../../support/pages/pages.ts'

describe('the scanner of the start page', { skip: noBrowser }, () => {
  let world: PageWorld
  let browser: Awaited<ReturnType<typeof startBrowser>>
  const folder = testFolder()
  before(async () => {
    world = await startPageWorld()
    const video = join(folder, 'code.y4m')
    const code = await pictureOf(`${world.url}${await world.pathOf('claimed')}`)
      .png()
      .toBuffer()
    await writeFile(video, await videoOf(code))
    browser = await startBrowser([world.url], cameraFlags(video))
  })
  after(async () => {
    await browser?.close()
    await world?.end()
  })

  it('reads the code of an item from a picture, with a library that is loaded only then', async () => {
    await using page = await browser.open(`${world.url}/?lang=en`)
    const loaded: string[] = []
    page.on('request', (request) => loaded.push(new URL(request.url()).pathname))
    await page.locator('[data-scan]').waitFor()
    assert.ok(!loaded.some((path) => path.includes('/qr/')))
    await choosePicture(page, pictureOf(`${world.url}${await world.pathOf('claimed')}`))
    await shows(page, 'Record only')
    assert.equal(new URL(page.url()).pathname, '/01/09520003000001/21/S7-1182')
    assert.ok(loaded.some((path) => path.endsWith('/qr/decode.js')))
  })

  it('reads it by the camera, and lets go of the camera', async () => {
    await using page = await browser.open(`${world.url}/?lang=en`)
    await page.getByRole('button', { name: 'Use the camera' }).click()
    await shows(page, 'Record only')
    assert.equal(new URL(page.url()).pathname, '/01/09520003000001/21/S7-1182')
  })

  it('reads it by the camera also where the button was pressed again while the browser asks for permission', async () => {
    for (const pressed of [['Use the camera'], ['Stop', 'Use the camera']]) {
      await using page = await browser.open(`${world.url}/?lang=en`)
      await page.addInitScript(`{
        const ask = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices)
        let asked = 0
        let agree
        const agreed = new Promise((resolve) => (agree = resolve))
        navigator.mediaDevices.getUserMedia = async (wanted) => {
          if (++asked === 2) agree()
          await agreed
          return ask(wanted)
        }
      }`)
      await page.reload()
      for (const name of ['Use the camera', ...pressed]) await page.getByRole('button', { name }).click()
      await shows(page, 'Record only')
    }
  })

  it('checks the tap that a chip or a code holds', async () => {
    await using page = await browser.open(`${world.url}/?lang=en`)
    await choosePicture(page, pictureOf(await world.tapped('activated')))
    await shows(page, 'Genuine chip')
  })

  it('reads a chip where the browser can, in place of the telephone’s own reader', async () => {
    await using page = await browser.open(`${world.url}/?lang=en`)
    const link = await world.tapped('activated')
    await page.addInitScript(`globalThis.NDEFReader = class extends EventTarget {
      async scan() {
        const data = new DataView(new TextEncoder().encode(${JSON.stringify(link)}).buffer)
        const event = Object.assign(new Event('reading'), { message: { records: [{ recordType: 'url', data }] } })
        setTimeout(() => this.dispatchEvent(event))
      }
    }`)
    await page.reload()
    await page.getByRole('button', { name: 'Tap with this phone' }).click()
    await shows(page, 'Genuine chip')
  })

  it('shows the link of another host as text, and opens neither it nor another page of this host', async () => {
    await using page = await browser.open(`${world.url}/?lang=en`)
    const outcome = page.locator('[data-scan] .outcome')
    for (const [text, answer] of [
      ['https://evil.example/01/09520003000001/21/S7-1182<img src=x onerror=alert(1)>', /another website/],
      [`${world.url.replace('127.0.0.1', '127.0.0.1.evil.example')}/token/1`, /another website/],
      [`${world.url.replace('//', '//user@')}/token/1`, /another website/],
      ['javascript://%0aalert(1)', /another website/],
      [`${world.url}/claim`, /names no item/],
    ] as const) {
      await choosePicture(page, pictureOf(text))
      await outcome.getByText(answer).waitFor()
      assert.equal(await outcome.locator('.typed').textContent(), text)
      assert.equal(await outcome.locator('a, img').count(), 0)
      assert.equal(new URL(page.url()).pathname, '/')
    }
  })

  it('says that a picture has no code, and that a code fits no item', async () => {
    await using page = await browser.open(`${world.url}/?lang=en`)
    await choosePicture(page, sharp({ create: { width: 80, height: 80, channels: 3, background: '#888' } }))
    await page.getByText('No code was found in this picture.').waitFor()
    await choosePicture(page, pictureOf('NOT-HERE-1'))
    await shows(page, 'No item fits')
  })
})
