/** Items of a world with claims and offers, and the requests of a page's script. */
import assert from 'node:assert/strict'
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { textAsDescribed } from '../contract.ts'
import { openItems, queryOf, type TappedItem } from '../passport/passport.ts'
import type { World } from '../world.ts'

/** An answer of the routes: typed data to sign, an outcome, or a refusal. */
export type StepReply = {
  readonly typedData?: never
  readonly deadline?: string
  readonly status?: string
  readonly transferId?: string
  readonly reason?: string
}

/** Returns the typed data of an answer, for a signature. */
export function dataOf({ typedData }: StepReply): never {
  assert.ok(typedData)
  return typedData
}

export const newAccount = () => privateKeyToAccount(generatePrivateKey())

export type OwnershipWorld = Awaited<ReturnType<typeof openOwnership>>

export async function openOwnership(world: World) {
  const items = await openItems(world)

  /** An item that is for sale. */
  async function released(name = 'Arbor Lounge Chair'): Promise<TappedItem> {
    const item = await items.bound({ name })
    await world.write({ kind: 'activate', tokenId: item.tokenId })
    return item
  }
  const pathOf = ({ gtin, serial }: TappedItem) => `/01/${gtin}/21/${serial}`
  const tapOf = (item: TappedItem) => `${world.url}${pathOf(item)}?${queryOf(item.tag.next())}`
  const pageOf = async (url: string) => (await fetch(url, { headers: { Accept: 'text/html' } })).text()
  const ticketIn = (page: string) => /data-ticket="([^"]+)"/.exec(page)?.[1] ?? ''
  const ownerOf = async (item: TappedItem) => (await world.components.reader.read(item.tokenId)).asset.record.owner

  /** Sends a step as the page's script does. */
  async function send(path: string, fields: object, headers: Record<string, string> = {}) {
    const answer = await fetch(`${world.url}${path}`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', ...headers },
      body: JSON.stringify(fields),
    })
    assert.equal(answer.headers.get('access-control-allow-origin'), null)
    const text = await textAsDescribed(path === '/claim' ? 'claimItem' : 'transferItem', answer)
    return { http: answer.status, ...(JSON.parse(text) as StepReply) }
  }
  const reasonOf = ({ http, reason }: StepReply & { http: number }) => [http, reason]

  /** An item that `account` has claimed over the routes of the page. */
  async function claimed(account = newAccount(), name?: string): Promise<TappedItem> {
    const item = await released(name)
    const ticket = ticketIn(await pageOf(tapOf(item)))
    const input = { ticket, account: account.address }
    const terms = await send('/claim', input)
    const signature = await account.signTypedData(dataOf(terms))
    const sent = await send('/claim', { ...input, deadline: terms.deadline, signature })
    assert.equal(sent.status, 'mined')
    return item
  }

  /** Offers an item over the route of the page. */
  async function offered(item: TappedItem, { seller, to }: { seller: PrivateKeyAccount; to: string }) {
    const ticket = ticketIn(await pageOf(tapOf(item)))
    const input = { step: 'offer', ticket, account: seller.address, to }
    const terms = await send('/transfer', input)
    const signature = await seller.signTypedData(dataOf(terms))
    const signed = { ...input, deadline: terms.deadline, signature }
    const sent = await send('/transfer', signed)
    assert.equal(sent.status, 'mined', JSON.stringify(sent))
    return { transferId: sent.transferId ?? '', signed, ticket }
  }

  async function answered(name: string, { transferId, account }: { transferId: string; account: PrivateKeyAccount }) {
    const input = { step: name, transferId, account: account.address }
    const terms = await send('/transfer', input)
    const signed = { ...input, signature: await account.signTypedData(dataOf(terms)) }
    const sent = await send('/transfer', signed)
    assert.equal(sent.status, 'mined', JSON.stringify(sent))
    return { signed, sent }
  }

  return { released, claimed, offered, answered, send, reasonOf, pathOf, tapOf, pageOf, ticketIn, ownerOf }
}
