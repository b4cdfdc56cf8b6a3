/** Claims in the page of a fresh tap, by a wallet in a real browser (spec §3, CLAIMED; decisions/0037). */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { noBrowser, startBrowser } from '../../support/pages/browser.ts'
import { openItems, queryOf, type TappedItem } from '../../support/passport/passport.ts'
import { startWorld, type World } from '../../support/world.ts'

/** Announces a wallet as extensions do (EIP-6963), whose requests the test answers. */
const announceWallet = `addEventListener('eip6963:requestProvider', () => {
  const request = async ({ method, params = [] }) => {
    const { result, error } = await walletRequest(method, params)
    if (error !== undefined) throw Object.assign(new Error('declined'), error)
    return result
  }
  const detail = { info: { uuid: '1', name: 'Test <b>Wallet</b>' }, provider: { request } }
  dispatchEvent(new CustomEvent('eip6963:announceProvider', { detail }))
})`

describe('a claim in the page', { skip: noBrowser }, () => {
  let world: World
  let browser: Awaited<ReturnType<typeof startBrowser>>
  let items: Awaited<ReturnType<typeof openItems>>
  before(async () => {
    world = await startWorld({ env: { PAGE_CLAIMS: 'on' } })
    browser = await startBrowser([world.url])
    items = await openItems(world)
  })
  after(async () => {
    await browser?.close()
    await world?.end()
  })

  /** An item that is for sale. */
  async function released(): Promise<TappedItem> {
    const item = await items.bound({ name: 'Arbor Lounge Chair' })
    await world.write({ kind: 'activate', tokenId: item.tokenId })
    return item
  }
  const pathOf = ({ gtin, serial }: TappedItem) => `/01/${gtin}/21/${serial}`
  const tapOf = (item: TappedItem) => `${world.url}${pathOf(item)}?${queryOf(item.tag.next())}`

  it('claims the item for a wallet of the browser, which signs what the service asks for', async () => {
    const item = await released()
    await using page = await browser.open(`${world.url}/`)
    const [owner, stranger] = [privateKeyToAccount(generatePrivateKey()), privateKeyToAccount(generatePrivateKey())]
    let answer: 'declines' | 'signs for another' | 'signs' = 'declines'
    const asked: string[] = []
    await page.exposeFunction('walletRequest', async (method: string, params: readonly string[]) => {
      asked.push(method)
      if (method === 'eth_requestAccounts') return { result: [owner.address] }
      if (answer === 'declines') return { error: { code: 4001 } }
      const signer = answer === 'signs' ? owner : stranger
      return {
        result: await signer.signTypedData(JSON.parse(params[1] ?? '') as Parameters<typeof signer.signTypedData>[0]),
      }
    })
    await page.addInitScript(announceWallet)
    await page.goto(tapOf(item))
    assert.deepEqual(asked, [])
    const kept: string = await page.evaluate('JSON.stringify(sessionStorage)')
    assert.ok(kept.includes('Arbor Lounge Chair') && !kept.includes('ticket'))
    await page.getByText('Claim it', { exact: true }).click()
    const outcome = page.locator('[data-claim] .outcome')
    const claim = async (sentence: string) => {
      await page.getByRole('button', { name: 'Claim with Test <b>Wallet</b>' }).click()
      await outcome.getByText(sentence, { exact: true }).waitFor({ timeout: 120_000 })
    }
    await claim('Nothing was signed, so nothing was claimed.')
    answer = 'signs for another'
    await claim('This signature is not that of the wallet. Nothing was claimed.')
    answer = 'signs'
    await claim('It is on record under your wallet now.')
    const { record } = (await world.components.reader.read(item.tokenId)).asset
    assert.deepEqual([record.state, record.owner.toLowerCase()], [4, owner.address.toLowerCase()])
    await page.goto(tapOf(item))
    await page.getByText('An owner has claimed this item.').waitFor({ timeout: 120_000 })
    assert.equal(await page.locator('[data-claim]').count(), 0)
  })

  it('claims nothing for another site, without a fresh tap, or twice', async () => {
    const item = await released()
    const page = await (await fetch(tapOf(item), { headers: { Accept: 'text/html' } })).text()
    const ticket = /data-ticket="([^"]+)"/.exec(page)?.[1] ?? ''
    const { address: claimant } = privateKeyToAccount(generatePrivateKey())
    const send = async (fields: object, headers: Record<string, string> = {}) => {
      const answer = await fetch(`${world.url}/claim`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', ...headers },
        body: JSON.stringify({ ticket, claimant, ...fields }),
      })
      assert.equal(answer.headers.get('access-control-allow-origin'), null)
      return [answer.status, ((await answer.json()) as { reason?: string }).reason]
    }
    assert.deepEqual(await send({}), [200, undefined])
    assert.deepEqual(await send({}, { 'Sec-Fetch-Site': 'cross-site' }), [400, 'invalid'])
    assert.deepEqual(await send({}, { 'Content-Type': 'text/plain' }), [400, 'invalid'])
    assert.deepEqual(await send({ claimant: `0x${'0'.repeat(40)}` }), [400, 'invalid'])
    assert.deepEqual(await send({ deadline: '1e9', signature: '0x12' }), [400, 'invalid'])
    assert.deepEqual(await send({ deadline: '9999999999', signature: '0x12' }), [400, 'unsigned'])
    for (const wrong of ['', `${ticket.slice(0, -2)}AA`, ticket.replace(/^\d+/, '1')])
      assert.deepEqual(await send({ ticket: wrong }), [400, 'expired'])
    assert.equal((await fetch(`${world.url}/claim`)).status, 405)
    const untapped = await (await fetch(`${world.url}${pathOf(item)}`, { headers: { Accept: 'text/html' } })).text()
    assert.ok(!untapped.includes('data-ticket'))
  })
})
