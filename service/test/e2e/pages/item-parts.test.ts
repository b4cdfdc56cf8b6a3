/** The page of an item shows the words of its maker, its owner, and the theme of its brand. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, describe, it } from 'node:test'
import { assetFlags } from '@touchstone/verdict'
import { canonicalDetails } from '../../../src/assets/metadata.ts'
import { zeroHash } from '../../../src/domain/chain.ts'
import { hostOf } from '../../support/pages/host.ts'
import { startPageWorld } from '../../support/pages/pages.ts'
import { until } from '../../support/wait.ts'

const world = await startPageWorld()
after(() => world.end())

describe('the pages of items', () => {
  it('show the recall of the maker, and where to repair, once the item is reported as recalled', async () => {
    const details = canonicalDetails({
      language: 'de',
      recall: { text: 'Stop <b>using</b> it.', url: 'https://maker.example/recall' },
      repair: { url: 'https://repair.example/' },
    })
    assert.ok(details.ok)
    await world.components.metadata.put(details)
    const text = { name: 'Recalled', details: details.hash }
    const tokenId = await world.mint(text)
    const page = async () => (await world.get(`/token/${tokenId}`, { headers: { 'Accept-Language': 'en' } })).text()
    const link = (url: string, host: string) =>
      `<a href="${url}" rel="noreferrer noopener nofollow" dir="ltr">${host}</a>`
    const unreported = await page()
    assert.ok(unreported.includes(link('https://repair.example/', 'repair.example')))
    assert.ok(!unreported.includes('id="recall"'))
    await world.write({ kind: 'bindTag', tokenId, tagHash: details.hash })
    await world.write({ kind: 'flag', tokenId, bits: assetFlags.RECALL, reasonHash: zeroHash })
    await until(async () => (await page()).includes('id="recall"'))
    const [, card = ''] = /<section class="card" aria-labelledby="recall">([^]*?)<\/section>/.exec(await page()) ?? []
    for (const part of [
      ' lang="de">',
      'Stop &lt;b&gt;using&lt;/b&gt; it.',
      link('https://maker.example/recall', 'maker.example'),
    ])
      assert.ok(card.includes(part), card)
  })

  it('do not guess the owner of a reported item whose record cannot be read, or has changed since the verdict', async () => {
    const { reader } = world.components
    const read = async (tokenId: bigint) => {
      const { asset, block } = await reader.read(tokenId)
      return { asset: { ...asset, record: { ...asset.record, timestamp: asset.record.timestamp + 1n } }, block }
    }
    const away = () => Promise.reject(new Error('The chain is away.'))
    const path = await world.pathOf('stolen')
    for (const [isShown, host] of [
      [true, hostOf(world)],
      [false, hostOf(world, { reader: { ...reader, read } })],
      [false, hostOf(world, { reader: { ...reader, read: away } })],
    ] as const) {
      const page = await host.request(path)
      assert.equal(page.status, 200)
      assert.equal((await page.text()).includes('id="ownership"'), isShown)
    }
  })

  it('have the style of each of their classes, as other pages do', async () => {
    const classesIn = (css: string) =>
      new Set([...css.matchAll(/\.([a-z][\w-]*)(?=[^{}]*\{)/g)].map(([, name]) => name))
    const read = async (path: string) => (await world.get(path)).text()
    const folder = /href="([^"]+)page\.css"/.exec(await read('/'))?.[1] ?? ''
    const all = classesIn((await Promise.all(['page.css', 'lookup.css'].map((name) => read(folder + name)))).join('\n'))
    for (const path of [
      '/',
      '/bulk',
      '/check',
      '/?find=XYZ-1',
      '/token/4711',
      await world.pathOf('claimed'),
      await world.pathOf('chair'),
    ]) {
      const page = await read(path)
      const sheets = [...page.matchAll(/<link rel="stylesheet" href="([^"]+)"/g)].map(([, sheet = '']) => read(sheet))
      const loaded = classesIn((await Promise.all(sheets)).join('\n'))
      const used = new Set([...page.matchAll(/ class="([^"]+)"/g)].flatMap(([, names = '']) => names.split(/\s+/)))
      assert.deepEqual(
        [...used].filter((name) => all.has(name) && !loaded.has(name)),
        [],
        path,
      )
    }
  })

  it('load the typeface of a brand that has one, and no other font', async () => {
    const { pages } = world.components
    const bytes = new Uint8Array(randomBytes(40))
    const path = '/assets/themes/0123456789abcdef/face.woff2'
    const themes = pages.themes.map((theme) => ({ ...theme, hasTypeface: true, typeface: { path, bytes } }))
    const host = hostOf(world, { pages: { ...pages, themes } })
    const policyAt = async (at: string) => (await host.request(at)).headers.get('content-security-policy') ?? ''
    assert.match(await policyAt(await world.pathOf('satchel')), /font-src 'self'/)
    assert.doesNotMatch(await policyAt(await world.pathOf('chair')), /font-src/)
    const face = await host.request(path)
    assert.deepEqual([face.headers.get('content-type'), await face.bytes()], ['font/woff2', bytes])
    assert.equal((await host.request(path.replace('face', 'none'))).status, 404)
  })
})
