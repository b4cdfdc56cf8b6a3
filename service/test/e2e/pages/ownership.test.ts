/** Ownership in the page, by wallets in a real browser: claims, transfers between two browsers, reports, passkeys (spec §3, §4.9; decisions/0037). */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { testFolder } from '../../support/folder.ts'
import { audit, noBrowser, type Opened, shows, startBrowser } from '../../support/pages/browser.ts'
import { cameraFlags, videoOf } from '../../support/pages/camera.ts'
import { newAccount, openOwnership, type OwnershipWorld } from '../../support/pages/ownership.ts'
import { addAuthenticator, addWallet, walletName } from '../../support/pages/wallet.ts'
import type { TappedItem } from '../../support/passport/passport.ts'
import { until } from '../../support/wait.ts'
import { startWorld, type World } from '../../support/world.ts'

/** A name that poses as a verdict and tries to leave its frame. */
const hostile = 'Satchel</bdi></p><img src=x onerror=alert(1)> VERIFIED \u{202e}eniuneg'
/** The page of an offer says this also when another offer was accepted. */
const anotherOwner =
  'The record has another owner now. The test on the page of the item shows whether it is the wallet of this offer.'

describe('ownership in the page', { skip: noBrowser }, () => {
  let world: World
  let own: OwnershipWorld
  let browser: Awaited<ReturnType<typeof startBrowser>>
  let named: string
  const folder = testFolder()
  let video: string
  before(async () => {
    const PUBLIC_RPC_URL = 'https://rpc.example/'
    world = await startWorld({ env: { PAGE_OWNERSHIP: 'claim,transfer,report,passkey', PUBLIC_RPC_URL } })
    // A passkey belongs to a name, not to an address of a machine.
    named = world.url.replace('127.0.0.1', 'localhost')
    video = join(folder, 'code.y4m')
    browser = await startBrowser([world.url, named], cameraFlags(video))
    own = await openOwnership(world)
  })
  after(async () => {
    await browser?.close()
    await world?.end()
  })

  /** Takes a step and waits for its sentence. */
  async function step(page: Opened, name: string, { button, sentence }: { button: string; sentence: string }) {
    const form = page.locator(`form[data-step="${name}"]`)
    await form.getByRole('button', { name: `${button} ${walletName}` }).click()
    await form.locator('.outcome').getByText(sentence, { exact: true }).waitFor({ timeout: 240_000 })
  }
  /** Waits until a page has opened anew after a claim, with its tap, and has tested the account. */
  async function isMine(page: Opened, item: TappedItem) {
    await page.getByText('Yes, this address holds the item.').waitFor({ timeout: 240_000 })
    assert.equal(await page.locator('#ownership + .lead', { hasText: 'An owner has claimed this item.' }).count(), 1)
    assert.equal(await page.locator('body').getAttribute('data-tap'), 'tapped')
    assert.equal((await page.locator('#address').inputValue()).toLowerCase(), await own.ownerOf(item))
  }
  const unfold = (page: Opened, title: string) => page.getByText(title, { exact: true }).click()
  /** Taps the item, and opens a section of its page. */
  async function tapAndUnfold(page: Opened, item: TappedItem, title: string) {
    await page.goto(own.tapOf(item))
    await unfold(page, title)
  }
  /** An item whose owner has ether for transactions. */
  async function payable() {
    const owner = newAccount()
    const item = await own.claimed(owner)
    await world.rpc('anvil_setBalance', [owner.address, '0xde0b6b3a7640000'])
    return { owner, item }
  }

  it('claims the item for a wallet of the browser, which signs what the service asks for', async () => {
    const item = await own.released()
    await using page = await browser.open(`${world.url}/`)
    const wallet = await addWallet(page)
    await page.goto(own.tapOf(item))
    assert.deepEqual(wallet.asked, [])
    const kept: string = await page.evaluate('JSON.stringify(sessionStorage)')
    assert.ok(kept.includes('Arbor Lounge Chair') && !kept.includes('ticket'))
    await unfold(page, 'Claim it')
    const claim = (sentence: string) => step(page, 'claim', { button: 'Claim with', sentence })
    wallet.declines = true
    await claim('Nothing was sent. Switch the wallet to the network Base Sepolia (84532), and try again.')
    wallet.chainId = '0x14a34'
    await claim('Nothing was signed, so nothing has changed.')
    wallet.declines = false
    wallet.signer = newAccount()
    await claim('This signature is not that of the wallet. Nothing has changed.')
    wallet.signer = wallet.account
    await page.getByRole('button', { name: `Claim with ${walletName}` }).click()
    await isMine(page, item)
    assert.equal(await page.evaluate('Object.keys(sessionStorage).join()'), 'answer')
    const { record } = (await world.components.reader.read(item.tokenId)).asset
    assert.deepEqual([record.state, record.owner.toLowerCase()], [4, wallet.account.address.toLowerCase()])
    await page.goto(own.tapOf(item))
    await page.getByText('An owner has claimed this item.').waitFor({ timeout: 240_000 })
    assert.equal(await page.locator('form[data-step="claim"]').count(), 0)
  })

  it('passes an item on from one browser to another: offer, link, acceptance', async () => {
    const seller = newAccount()
    const item = await own.claimed(seller, hostile)
    await using owner = await browser.open(`${world.url}/`)
    await using buyer = await browser.open(`${world.url}/`)
    const [ownerWallet, buyerWallet] = [await addWallet(owner, seller), await addWallet(buyer)]

    // The other side shows the address of its wallet, which goes nowhere.
    await buyer.goto(`${world.url}${own.pathOf(item)}`)
    await unfold(buyer, 'Receive it')
    await buyer.getByRole('button', { name: `Show the address of ${walletName}` }).click()
    const address = (await buyer.locator('#own-address').textContent()) ?? ''
    assert.equal(address, buyerWallet.account.address)

    await tapAndUnfold(owner, item, 'Pass it on')
    const offer = (sentence: string) => step(owner, 'offer', { button: 'Offer with', sentence })
    // Enter starts the step of the only wallet; the address never gets into the URL.
    await owner.getByRole('button', { name: `Offer with ${walletName}` }).waitFor()
    await owner.locator('#to').fill('0x12')
    await owner.locator('#to').press('Enter')
    const outcome = owner.locator('form[data-step="offer"] .outcome')
    await outcome.getByText('A wallet address is 0x and 40 letters and digits. Copy it without a change.').waitFor()
    assert.equal(owner.url(), `${world.url}${own.pathOf(item)}`)
    await owner.locator('#to').fill(`\u200e ${seller.address} `)
    await offer('This wallet owns the item already.')
    assert.deepEqual((await audit(buyer, 'light')).broken, [])

    // The owner's camera reads the code that the other side shows.
    await writeFile(video, await videoOf(await buyer.locator('form[data-step="address"] .qr').screenshot()))
    await owner.locator('#to').fill('')
    await owner.getByRole('button', { name: 'Scan the code of the other side' }).click()
    await owner.locator('.viewer').waitFor({ state: 'hidden', timeout: 240_000 })
    assert.equal(await owner.locator('#to').inputValue(), address)
    assert.deepEqual((await audit(owner, 'dark')).broken, [])
    ownerWallet.signer = newAccount()
    await offer('This signature is not that of the wallet. Nothing has changed.')
    ownerWallet.signer = seller
    await owner.getByRole('button', { name: `Offer with ${walletName}` }).click()
    await owner.waitForURL(/\/t\/\d+-\d+/, { timeout: 240_000 })
    const signed = ownerWallet.signed.at(-1)
    assert.deepEqual([signed?.primaryType, signed?.message['to']], ['InitiateTransfer', address.toLowerCase()])
    const link = await owner.locator('#link').innerText()
    assert.match(link, new RegExp(`^${world.url}/t/${item.tokenId}-\\d+$`))
    assert.ok(!(await owner.content()).toLowerCase().includes(address.slice(2).toLowerCase()))

    // The other side opens the link; only the wallet of the offer can accept.
    await buyer.goto(link)
    await buyer.getByRole('heading', { name: 'Offered to a new owner' }).waitFor()
    assert.ok((await buyer.locator('.maker').innerText()).includes('VERIFIED'))
    assert.deepEqual((await audit(buyer, 'light')).broken, [])
    assert.deepEqual((await audit(buyer, 'dark')).broken, [])
    await unfold(buyer, 'Accept it')
    const accept = (sentence: string) => step(buyer, 'accept', { button: 'Accept with', sentence })
    const rightful = buyerWallet.account
    buyerWallet.account = newAccount()
    await accept('This offer is not one of this wallet. Nothing has changed.')
    buyerWallet.account = rightful
    await accept('It is on record under your wallet now.')
    assert.equal(await own.ownerOf(item), rightful.address.toLowerCase())

    await owner.getByText(anotherOwner).waitFor({ timeout: 240_000 })

    // The offer is used up.
    await buyer.goto(link)
    await buyer.getByRole('heading', { name: 'This offer does not stand' }).waitFor()
  })

  it('ends an offer from either side, and voids what was signed and not sent', async () => {
    const seller = newAccount()
    const item = await own.claimed(seller)
    const recipient = newAccount()
    const { transferId } = await own.offered(item, { seller, to: recipient.address })
    await using page = await browser.open(`${world.url}/`)
    const wallet = await addWallet(page)
    wallet.networks = ['0x1']
    await page.goto(`${world.url}/t/${transferId}`)
    await unfold(page, 'Withdraw or decline it')
    const end = (sentence: string) => step(page, 'withdraw', { button: 'End the offer with', sentence })
    await end('This offer is not one of this wallet. Nothing has changed.')
    wallet.account = recipient
    wallet.signer = recipient
    await end('The offer has ended. The item stays with its owner.')
    assert.deepEqual(wallet.networks, ['0x1', '0x14a34'])
    assert.equal(await own.ownerOf(item), seller.address.toLowerCase())

    wallet.account = seller
    wallet.signer = seller
    await tapAndUnfold(page, item, 'Take an offer back')
    await end('The offer has ended. The item stays with its owner.')
    assert.equal(wallet.signed.at(-1)?.primaryType, 'InvalidateNonce')
  })

  it('says of an open offer that it was withdrawn, and not that it was accepted, before the item goes to somebody else', async () => {
    const [seller, first, second] = [newAccount(), newAccount(), newAccount()]
    const item = await own.claimed(seller)
    const { transferId } = await own.offered(item, { seller, to: first.address })
    await using page = await browser.open(`${world.url}/`)
    const isRead = page.waitForResponse('**/api/asset/*')
    await page.goto(`${world.url}/t/${transferId}`)
    await isRead
    await own.answered('withdraw', { transferId, account: seller })
    await page.getByText(/^This offer does not stand\. It was accepted or withdrawn/).waitFor({ timeout: 240_000 })
    const other = await own.offered(item, { seller, to: second.address })
    await own.answered('accept', { transferId: other.transferId, account: second })
    await page.getByText(anotherOwner).waitFor({ timeout: 240_000 })
  })

  it('reports loss and lifts the report by the wallet of the owner, on the network of the record', async () => {
    const { owner, item } = await payable()
    await using page = await browser.open(`${world.url}/`)
    const wallet = await addWallet(page, newAccount(), world.rpc)
    await tapAndUnfold(page, item, 'Report it lost or stolen')
    const report = page.getByRole('button', { name: 'Report lost with' })
    const outcome = page.locator('form[data-step="call"]', { has: report }).locator('.outcome')
    await report.click()
    await outcome.getByText('This wallet does not own the item on record. Nothing has changed.').waitFor()
    wallet.account = owner
    wallet.signer = owner
    wallet.declines = true
    await report.click()
    await outcome.getByText('Nothing was sent. Switch the wallet to the network Base Sepolia (84532)').waitFor()
    assert.ok(!wallet.asked.includes('eth_sendTransaction'))
    wallet.declines = false
    await report.click()
    await shows(page, 'Reported lost')
    const flagsOf = async () => (await world.components.reader.read(item.tokenId)).asset.record.flags
    assert.equal(await flagsOf(), 1)

    // A report of the maker stays when the owner lifts the own one.
    await world.write({ kind: 'flag', tokenId: item.tokenId, bits: 4, reasonHash: `0x${'0'.repeat(64)}` })
    await page.goto(`${world.url}${own.pathOf(item)}`)
    await shows(page, 'Recalled')
    await unfold(page, 'I have it back')
    await page.getByText('There is a report that only the maker can lift.').waitFor()
    await page.getByRole('button', { name: 'Lift the report with' }).click()
    await until(async () => (await flagsOf()) === 4)
    await page.locator('form[data-step="call"]', { hasText: 'Lift' }).waitFor({ state: 'detached', timeout: 240_000 })
    assert.equal((await audit(page, 'light')).broken.join(), '')
  })

  it('says that nothing has changed only before a step was sent', async () => {
    const item = await own.released()
    await using page = await browser.open(`${world.url}/`, { allowed: /ERR_FAILED/ })
    const wallet = await addWallet(page)
    const claim = (sentence: string) => step(page, 'claim', { button: 'Claim with', sentence })
    const unknown =
      'It is not known yet whether it is on record. Open the page of the item again in a minute, before you try again.'
    await tapAndUnfold(page, item, 'Claim it')
    await page.route('**/claim', (route) => route.abort())
    await claim('It could not be sent, and nothing has changed. Try it again later.')
    await page.unroute('**/claim')

    // The claim is mined, and its answer is lost.
    await page.route('**/claim', async (route) => {
      const isSigned = route.request().postDataJSON().signature !== undefined
      const response = await route.fetch()
      await (isSigned ? route.abort() : route.fulfill({ response }))
    })
    await claim(unknown)
    assert.equal(await own.ownerOf(item), wallet.account.address.toLowerCase())

    // The claim is answered, and the record cannot be read.
    const second = await own.released()
    await page.unroute('**/claim')
    await tapAndUnfold(page, second, 'Claim it')
    const unread = { status: 502, json: { version: '1', error: { code: 'CHAIN_UNAVAILABLE', message: '' } } }
    await page.route('**/api/asset/*', (route) => route.fulfill(unread))
    await claim(unknown)
    assert.equal(await own.ownerOf(second), wallet.account.address.toLowerCase())
  })

  it('tests no owner by the record of another item', async () => {
    const owner = newAccount()
    const [item, other] = [await own.claimed(newAccount()), await own.claimed(owner)]
    await using page = await browser.open(`${world.url}${own.pathOf(item)}`)
    await page.route('**/api/asset/*', async (route) =>
      route.fulfill({ response: await route.fetch({ url: `${world.url}/api/asset/${other.tokenId}` }) }),
    )
    await unfold(page, 'Test that it is mine')
    await page.getByLabel('Wallet address').fill(owner.address)
    await page.getByRole('button', { name: 'Test', exact: true }).click()
    const sentence = page.locator('form[data-owner] .outcome p')
    await sentence.getByText(/address|Nothing/).waitFor({ timeout: 240_000 })
    assert.match(await sentence.innerText(), /^Nothing was checked/)
  })

  it('waits for the record of a report that was sent, although one read of it and one of the receipt fail', async () => {
    const { owner, item } = await payable()
    await using page = await browser.open(`${world.url}/`)
    let unreadReceipts = 1
    const wallet = await addWallet(page, owner, (method, parameters) => {
      if (method === 'eth_getTransactionReceipt' && unreadReceipts-- > 0) throw new Error('busy')
      return world.rpc(method, parameters)
    })
    await tapAndUnfold(page, item, 'Report it lost or stolen')
    let unreadRecords = 1
    await page.route('**/api/asset/*', async (route) => {
      const isSent = wallet.asked.includes('eth_sendTransaction')
      await (isSent && unreadRecords-- > 0 ? route.fulfill({ status: 429, json: {} }) : route.continue())
    })
    await page.getByRole('button', { name: 'Report stolen with' }).click()
    await shows(page, 'Reported stolen')
    assert.ok(unreadReceipts < 0 && unreadRecords < 0)
  })

  it('says that a report is on its way where the wallet never returns its receipt', async () => {
    const { owner, item } = await payable()
    await using page = await browser.open(`${world.url}/`)
    const wallet = await addWallet(page, owner, (method, parameters) =>
      method === 'eth_getTransactionReceipt' ? new Promise(() => {}) : world.rpc(method, parameters),
    )
    await page.clock.install()
    await tapAndUnfold(page, item, 'Report it lost or stolen')
    await page.getByRole('button', { name: 'Report lost with' }).click()
    await until(() => wallet.asked.includes('eth_getTransactionReceipt'))
    await page.clock.fastForward('02:00')
    await page.getByText('It is on its way.').waitFor()
  })

  it('looks at the record where a wallet fails and does not say whether it sent a report', async () => {
    const { owner, item } = await payable()
    await using page = await browser.open(`${world.url}/`)
    const wallet = await addWallet(page, owner, world.rpc)
    await page.clock.install()
    await tapAndUnfold(page, item, 'Report it lost or stolen')
    const outcome = page.locator('form[data-step="call"]', { hasText: 'Report lost' }).locator('.outcome')
    const report = page.getByRole('button', { name: 'Report lost with' })
    const flagsOf = async () => (await world.components.reader.read(item.tokenId)).asset.record.flags

    let tries = 0
    async function fails(code: number, { isSent = false } = {}) {
      wallet.failure = { code, isSent }
      await report.click()
      tries++
      await until(() => wallet.asked.filter((method) => method === 'eth_sendTransaction').length === tries)
    }

    // By these codes a wallet says that it did not send it.
    for (const code of [4100, 4200, -32_601, -32_602, -32_004]) {
      await fails(code)
      await report.and(page.locator(':enabled')).waitFor()
      assert.match(await outcome.innerText(), /nothing has changed/, String(code))
    }
    // A node answers -32003 for a transaction that it has already, as to a wallet that sends it once more.
    for (const code of [-32_003, -32_603, 4900]) {
      await fails(code)
      await outcome.getByText('The record is being read…').waitFor()
      await page.clock.fastForward('02:00')
      await outcome.getByText('It was not found on record so far.').waitFor({ timeout: 240_000 })
    }
    assert.equal(await flagsOf(), 0)
    await fails(-32_603, { isSent: true })
    await shows(page, 'Reported lost')
  })

  it('claims, offers and accepts by keys that passkeys hold, each the same after a reload', async () => {
    const item = await own.released()
    const local = (url: string) => url.replace(world.url, named)
    await using seller = await browser.open(`${named}/`)
    await using buyer = await browser.open(`${named}/`)
    for (const page of [seller, buyer]) await addAuthenticator(page)
    const withPasskey = (page: Opened, name: string, button: string) =>
      page.locator(`form[data-step="${name}"]`).getByRole('button', { name: button, exact: true }).click()
    const says = (page: Opened, name: string, sentence: string) =>
      page
        .locator(`form[data-step="${name}"] .outcome`)
        .getByText(sentence, { exact: true })
        .waitFor({ timeout: 240_000 })

    await seller.goto(local(own.tapOf(item)))
    await unfold(seller, 'Claim it')
    await seller.getByText('A passkey can hold the key in place of a wallet').waitFor()
    assert.deepEqual((await audit(seller, 'light')).broken, [])
    await withPasskey(seller, 'claim', 'Claim with a passkey')
    await says(seller, 'claim', 'Nothing was signed, so nothing has changed.')
    await withPasskey(seller, 'claim', 'Claim with a new passkey')
    await isMine(seller, item)

    await buyer.goto(`${named}${own.pathOf(item)}`)
    await unfold(buyer, 'Receive it')
    await withPasskey(buyer, 'address', 'Show the address of a new passkey')
    const address = await buyer.locator('#own-address').innerText()
    await seller.goto(local(own.tapOf(item)))
    await unfold(seller, 'Pass it on')
    await seller.locator('#to').fill(address)
    await withPasskey(seller, 'offer', 'Offer with a passkey')
    await seller.waitForURL(/\/t\/\d+-\d+/, { timeout: 240_000 })
    await buyer.goto(seller.url())
    await unfold(buyer, 'Accept it')
    await withPasskey(buyer, 'accept', 'Accept with a passkey')
    await says(buyer, 'accept', 'It is on record under your wallet now.')
    assert.equal(await own.ownerOf(item), address)
    await buyer.goto(`${named}${own.pathOf(item)}`)
    await unfold(buyer, 'Report it lost or stolen')
    await buyer.getByText('A passkey sends no transactions').waitFor()
    assert.equal(await buyer.locator('form[data-step="call"] button').count(), 0)
  })

  it('makes no owner of a passkey that derives no key', async () => {
    const item = await own.released()
    await using page = await browser.open(`${named}/`)
    await addAuthenticator(page, { hasPrf: false })
    await page.goto(own.tapOf(item).replace(world.url, named))
    await unfold(page, 'Claim it')
    await page.getByRole('button', { name: 'Claim with a new passkey' }).click()
    await page.getByText('This device cannot make a key from a passkey.').waitFor()
    assert.equal((await world.components.reader.read(item.tokenId)).asset.record.state, 3)
  })

  it('looks for wallets again when a section is opened with a connection that it was opened without before', async () => {
    const item = await own.released()
    await using page = await browser.open(`${world.url}/`, { allowed: /ERR_INTERNET_DISCONNECTED/ })
    await addWallet(page)
    await page.goto(own.tapOf(item))
    await page.evaluate('navigator.serviceWorker.ready.then(() => 0)') // its script would be missed without a connection
    await page.context().setOffline(true)
    const isFailed = page.waitForEvent('requestfailed', (request) => request.url().endsWith('/wallet.js'))
    await unfold(page, 'Claim it')
    await isFailed
    await page.context().setOffline(false)
    await unfold(page, 'Claim it')
    await unfold(page, 'Claim it')
    await page.getByRole('button', { name: `Claim with ${walletName}` }).waitFor()
  })

  it('says without a script what each step needs', async () => {
    const item = await own.claimed()
    await using page = await browser.open(own.tapOf(item), { javaScriptEnabled: false })
    for (const title of ['Pass it on', 'Take an offer back', 'Receive it', 'Report it lost or stolen'])
      await unfold(page, title)
    const outcomes = await page.locator('form[data-step] .outcome').allInnerTexts()
    assert.deepEqual(
      [...new Set(outcomes)],
      ['No wallet was found. This step needs JavaScript and the browser of your wallet: open this page there.'],
    )
    assert.ok(await page.locator('#to').isHidden())
  })
})
