/**
 * The states of the pages. Each has an address that works again and again; some are the answer to a form, or stand there after a visitor
 * did something that needs the script. `openState` brings a page of the browser into one of them, in a language.
 */
import type { Page } from 'playwright-core'
import { publishedAccounts } from '../../../src/domain/published-accounts.ts'
import { registryTypedData } from '../../../src/chain/transactions/typed-data.ts'
import { bindTagTo } from '../tap/bound.ts'
import { newUid } from '../tap/tags.ts'
import { noMetadata } from '../world.ts'
import { choosePicture, pictureOf } from './camera.ts'
import { certify } from './certificate.ts'
import type { PageWorld } from './pages.ts'
import { announceWallet } from './wallet.ts'

export type PageState = {
  readonly name: string
  readonly url: string
  readonly status: number
  /** Fields of a form of this host, to which the page is the answer. */
  readonly sent?: Readonly<Record<string, string>>
}

/** A state that the page itself comes into. */
export type ScriptedState = PageState & {
  /** Acts as the visitor does, and waits until the state is there. */
  readonly act?: (page: Page) => Promise<void>
  readonly isPrint?: boolean
}

/** Adds the language to an address, before its fragment. */
export function inLanguage(url: string, language: string): string {
  const [address = '', ...fragment] = url.split('#')
  return [`${address}${address.includes('?') ? '&' : '?'}lang=${language}`, ...fragment].join('#')
}

/** Asks for the page of a state over HTTP, in a language that the visitor's browser prefers. */
export function fetchState({ url, sent }: PageState, language: string): Promise<Response> {
  const headers = { 'Accept-Language': `${language},en;q=0.5` }
  return fetch(url, { headers, ...(sent && { method: 'POST', body: new URLSearchParams(sent) }) })
}

/** Brings the page of a browser into a state. */
export async function openState(page: Page, state: ScriptedState, language: string): Promise<void> {
  const { url, sent, act, isPrint } = state
  const address = inLanguage(url, language)
  await page.context().setOffline(false)
  await page.emulateMedia({ media: isPrint === true ? 'print' : 'screen' })
  if (url.includes('#')) await page.goto('about:blank') // else a page that differs in its fragment only would stay
  if (sent === undefined) await page.goto(address)
  else {
    await page.goto(inLanguage(`${new URL(url).origin}/`, language))
    await Promise.all([page.waitForNavigation(), page.evaluate(sendForm(address, sent))])
  }
  await act?.(page)
}

/** Sends a form of the page, as one that stands on it would be. */
const sendForm = (address: string, sent: Readonly<Record<string, string>>) => `{
  const form = document.createElement('form')
  Object.assign(form, { method: 'post', action: ${JSON.stringify(address)} })
  for (const [name, value] of Object.entries(${JSON.stringify(sent)})) {
    const field = form.appendChild(document.createElement('textarea'))
    Object.assign(field, { name, value })
  }
  document.body.append(form)
  form.submit()
}`

/** Every page, once. */
export async function pageStates(world: PageWorld): Promise<PageState[]> {
  const { url, tapped, pathOf, tap, tokenOf } = world
  const states: PageState[] = []
  const add = (name: string, address: string, status = 200, sent?: PageState['sent']) =>
    states.push({ name, url: address, status, ...(sent !== undefined && { sent }) })

  add('home', `${url}/`)
  add('home-wrong-search', `${url}/?gtin=4006381333932&serial=A1`, 400)
  add('home-wrong-brand', `${url}/?brand=orvelle&serial=A%20B`, 400)
  add('find-none', `${url}/?find=XYZ-1`, 404)
  add('find-foreign', `${url}/?find=https%3A%2F%2Felsewhere.example%2F01%2F1`, 400)
  add('find-several', `${url}/?find=${await twoOfOneSerial(world)}`)
  add('bulk', `${url}/bulk`)
  add('bulk-results', `${url}/bulk`, 200, { list: await listOf(world) })
  add('bulk-empty', `${url}/bulk`, 400, { list: ' ' })
  add('check', `${url}/check`)
  add('certificate-expired', `${url}/certificate`, 400, { ticket: '1' })
  add('pass-not-offered', `${world.bareUrl}/certificate`, 404, { as: 'google' })
  for (const name of [
    'bound',
    'activated',
    'claimed',
    'satchel',
    'jacket',
    'noText',
    'hostile',
    'lost',
    'stolen',
    'confirmed',
    'recall',
    'investigation',
    'recycled',
    'opened',
  ] as const)
    add(`tapped-${name}`, await tapped(name))
  add('tapped-mismatch', await alteredItem(world))
  add('tapped-token', `${url}/token/${tokenOf('claimed')}?${await tap('claimed')}`)
  for (const name of ['minted', 'activated', 'claimed', 'stolen', 'recycled'] as const)
    add(`untapped-${name}`, url + (await pathOf(name)))
  add('untapped-token', `${url}/token/${tokenOf('chair')}`)
  add('incomplete', `${url}${await pathOf('activated')}?${(await tap('activated')).slice(0, -4)}`)
  const [skipped, later] = [await tapped('chair'), await tapped('chair')]
  await fetch(later)
  add('replayed', skipped)
  add('counterfeit', `${url}${await pathOf('activated')}?picc=${'a1'.repeat(16)}&cmac=${'b2'.repeat(8)}`)
  add('unbound', `${url}${await pathOf('activated')}?${(await world.tagOf(newUid()))()}`)
  add('other-item', `${url}${await pathOf('activated')}?${await tap('bound')}`)
  add('class', `${url}${(await pathOf('activated')).split('/21/')[0]}`)
  add('bad-link', `${url}/01/09520001000011/21/M41-002208`, 400)
  add('bad-token', `${url}/token/0x2a`, 400)
  add('unknown', `${url}/token/4711`, 404)
  add('rate-limited', `${world.limitedUrl}${await pathOf('activated')}`, 429)
  add('not-configured', `${world.bareUrl}/token/${tokenOf('bound')}?${await tap('bound')}`, 503)
  add('chain', `${world.downUrl}/token/1`, 502)
  const offer = await openOffer(world)
  add('offer', `${url}/t/${offer}`)
  add('offer-orvelle', `${url}/t/${await openOffer(world, { gtin: '09520003000001' })}`)
  add('offer-norrvik', `${url}/t/${await openOffer(world, { brand: 'Norrvik', gtin: '09520004000000' })}`)
  add('offer-held', `${url}/t/${await openOffer(world, { isReported: true })}`)
  add('offer-over', `${url}/t/${offer.replace(/\d+$/, '9')}`, 404)
  add('challenge', `${world.downUrl}/token/1?${world.downTap()}`)
  return states
}

/** States that a visitor with a script brings about, and pages as they are printed. */
export async function scriptedStates(world: PageWorld): Promise<ScriptedState[]> {
  const { url, tapped, pathOf } = world
  // A chip of no other state: a newer tap makes those void that were not opened yet.
  const valid = await certificateAfter(world, await tapped('chair'))
  const suspended = await suspendedCertificate(world)
  const claimed = await tapped('claimed')
  const satchel = await tapped('satchel')
  const record = url + (await pathOf('claimed'))
  const check = (name: string, jws: string, act?: ScriptedState['act']) =>
    ({
      ...state(`check-${name}`, `${url}/check#${jws}`),
      async act(page) {
        await page.locator('[data-checked] h2').waitFor()
        await page.locator('[data-checked] .checks, [data-checked].tone-stop').waitFor({ timeout: 240_000 })
        await act?.(page)
      },
    }) satisfies ScriptedState
  return [
    { ...state('home-open', `${url}/`), act: unfold },
    { ...state('home-languages', `${url}/`), act: (page) => page.locator('.lang summary').click() },
    { ...state('scan-foreign', `${url}/`), act: (page) => scanPicture(page, 'https://elsewhere.example/01/1') },
    { ...state('scan-camera', `${url}/`), act: scanByCamera },
    check('valid', valid),
    check('block', valid, (page) => readBlock(page)),
    check('refused', `${valid.slice(0, -4)}AAAA`),
    check('suspended', suspended),
    { ...state('tapped-activated-second', await tapped('activated')), act: choose('#for-second') },
    { ...state('tapped-claimed-new', claimed), act: choose('#for-new') },
    { ...state('tapped-claimed-mine', claimed), act: choose('#for-mine') },
    { ...state('tapped-satchel-yes', satchel), act: choose('#looks-yes') },
    { ...state('tapped-satchel-no', satchel), act: choose('#looks-no') },
    { ...state('tapped-satchel-open', satchel), act: unfold },
    { ...state('tapped-claimed-open', claimed), act: unfold },
    { ...state('untapped-stolen-open', url + (await pathOf('stolen'))), act: unfold },
    { ...state('untapped-claimed-recheck', record), act: recheck },
    { ...state('reported', await tapped('jacket')), act: reportDifference },
    ...('GOOGLE_WALLET_ISSUER' in world.settings ? [{ ...state('google-pass', satchel), act: askForGooglePass }] : []),
    { ...state('offer-open', `${url}/t/${await openOffer(world)}`), act: unfold },
    { ...state('offline', satchel), act: loseConnection },
    { ...state('tapped-satchel-print', satchel), isPrint: true },
    { ...state('tapped-claimed-print', claimed), isPrint: true },
    { ...state('untapped-claimed-print', record), isPrint: true },
  ]
}

const state = (name: string, url: string): PageState => ({ name, url, status: 200 })

const choose = (selector: string) => (page: Page) => page.locator(selector).check()

/** Unfolds everything, beside a wallet that signs nothing. */
async function unfold(page: Page): Promise<void> {
  await page.evaluate(announceWallet)
  await page.evaluate("for (const part of document.querySelectorAll('main details')) part.open = true")
  if ((await page.locator('form[data-step]').count()) > 0)
    await page.locator('form[data-step] .buttons button').first().waitFor()
}

async function scanPicture(page: Page, text: string): Promise<void> {
  await choosePicture(page, pictureOf(text))
  await page.locator('[data-scan] .outcome .typed').waitFor()
}

async function scanByCamera(page: Page): Promise<void> {
  await page.locator('[data-camera]').click()
  await page.locator('.viewer').waitFor()
  await page.evaluate(`new Promise((resolve) => {
    const video = document.querySelector('video')
    if (video.currentTime > 0) resolve()
    else video.addEventListener('timeupdate', resolve, { once: true })
  })`)
}

async function readBlock(page: Page): Promise<void> {
  await page.locator('[data-provider] button').click()
  await page.locator('.checks li').nth(3).and(page.locator('.yes')).waitFor({ timeout: 240_000 })
}

async function recheck(page: Page): Promise<void> {
  await page.locator('.proof > summary').click()
  await page.locator('[data-recheck] button').click()
  await page.locator('[data-recheck] .outcome dl').waitFor({ timeout: 240_000 })
}

async function reportDifference(page: Page): Promise<void> {
  await choose('#looks-no')(page)
  await Promise.all([page.waitForNavigation(), page.locator('form.report button').click()])
}

/** Asks for the pass, whose page has a link that leads to Google. */
async function askForGooglePass(page: Page): Promise<void> {
  await Promise.all([page.waitForNavigation(), page.locator('form.certificate button[value="google"]').click()])
  await page.locator('a[href^="https://pay.google.com/"]').waitFor()
}

/** Reloads the page without a connection. The service worker has kept its files before. */
async function loseConnection(page: Page): Promise<void> {
  await page.evaluate('navigator.serviceWorker.ready.then(() => 0)')
  await page.context().setOffline(true)
  await page.reload()
  await page.locator('.old').waitFor()
}

/** A list with a line of each kind. */
async function listOf({ url, tokenOf, pathOf }: PageWorld): Promise<string> {
  const links = [`${url}${await pathOf('stolen')}`, 'https://elsewhere.example/token/1']
  const tokens = (['claimed', 'activated', 'hostile', 'opened'] as const).map(tokenOf)
  return [...links, ...tokens, 'S7-1182', '9520003000001', 'SAME-1', 'NOT-HERE-1', 'two words', 'W'.repeat(90)].join(
    '\n',
  )
}

/** Registers two items under one serial, which is returned. */
async function twoOfOneSerial(world: PageWorld): Promise<string> {
  const serial = 'SAME-1'
  for (const [name, gtin] of [
    ['Lamp', '09520001000010'],
    ['Shade', '09520002000002'],
  ] as const)
    await world.components.items.register({ tokenId: await world.mint({ name }), gtin, serial })
  return serial
}

/** A certificate of an item that was reported afterwards. */
async function suspendedCertificate(world: PageWorld): Promise<string> {
  const { tokenId, tap } = await boundItem(world, 'Reported Lamp')
  await world.write({ kind: 'activate', tokenId })
  const jws = await certificateAfter(world, tap())
  await world.write({ kind: 'flag', tokenId, bits: 1, reasonHash: noMetadata })
  return jws
}

async function certificateAfter(world: PageWorld, tapped: string): Promise<string> {
  const answer = await certify(world, tapped)
  return answer.text()
}

/** An item with a chip of its own. */
async function boundItem(world: PageWorld, name: string) {
  const uid = newUid()
  const { tokenId } = await bindTagTo(world, uid, { name })
  const next = await world.tagOf(uid)
  return { tokenId, tap: () => `${world.url}/token/${tokenId}?${next()}` }
}

/** A standing offer of the operator to a consumer of the demonstration. */
async function openOffer(
  world: PageWorld,
  { brand = 'Maison Orvelle', gtin, isReported = false }: { brand?: string; gtin?: string; isReported?: boolean } = {},
): Promise<string> {
  const [operator, , consumer] = publishedAccounts(3)
  const tokenId = await world.mint({ name: 'Offered Lounge Chair', brand })
  if (gtin !== undefined) await world.components.items.register({ tokenId, gtin, serial: `OFFER-${tokenId}` })
  const { block, offer } = await world.components.transferReads.position(tokenId)
  const terms = {
    tokenId,
    to: consumer?.address ?? '0x',
    expiry: block.timestamp + 72n * 3_600n,
    messageHash: noMetadata,
  }
  const message = { ...terms, from: operator?.address ?? '0x', nonce: offer.nonce }
  const typedData = registryTypedData(world.components.transferReads.domain, 'InitiateTransfer', message)
  const signature = (await operator?.signTypedData(typedData)) ?? '0x'
  await world.write({ kind: 'initiateTransferBySig', ...terms, signature })
  if (isReported) {
    await world.write({ kind: 'bindTag', tokenId, tagHash: world.components.tagHash?.(newUid()) ?? '0x' })
    await world.write({ kind: 'flag', tokenId, bits: 1, reasonHash: noMetadata })
  }
  return `${tokenId}-${offer.nonce + 1}`
}

/** A tapped item whose text was altered in the database. */
async function alteredItem(world: PageWorld): Promise<string> {
  const name = `Altered ${Date.now()}`
  const { tap } = await boundItem(world, name)
  await world.components.database.query('update metadata set body = replace(body, $1, $2)', [
    name,
    `${name}, but better`,
  ])
  return tap()
}
