/** Items of a world with claims and offers, and the requests of a page's script. */
import assert from 'node:assert/strict'
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { textAsDescribed } from '../contract.ts'
import { pageAt } from './certificate.ts'
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
  const ticketIn = (page: string) => /data-ticket="([^"]+)"/.exec(page)?.[1] ?? ''
  /** Returns the ticket of a fresh tap. */
  const ticketOf = async (item: TappedItem) => ticketIn(await pageAt(tapOf(item)))
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

  /** Asks for what a step signs, and signs it. */
  async function signed<Fields extends object>(path: string, fields: Fields, account: PrivateKeyAccount) {
    const input = { ...fields, account: account.address }
    const terms = await send(path, input)
    return { ...input, deadline: terms.deadline, signature: await account.signTypedData(dataOf(terms)) }
  }

  async function mined<Step extends object>(path: string, step: Step) {
    const sent = await send(path, step)
    assert.equal(sent.status, 'mined', JSON.stringify(sent))
    return { signed: step, sent }
  }

  /** An item that `account` has claimed over the routes of the page. */
  async function claimed(account = newAccount(), name?: string): Promise<TappedItem> {
    const item = await released(name)
    await mined('/claim', await signed('/claim', { ticket: await ticketOf(item) }, account))
    return item
  }

  /** Offers an item over the route of the page. */
  async function offered(item: TappedItem, { seller, to }: { seller: PrivateKeyAccount; to: string }) {
    const ticket = await ticketOf(item)
    const offer = await mined('/transfer', await signed('/transfer', { step: 'offer', ticket, to }, seller))
    return { transferId: offer.sent.transferId ?? '', signed: offer.signed, ticket }
  }

  async function answered(name: string, { transferId, account }: { transferId: string; account: PrivateKeyAccount }) {
    return mined('/transfer', await signed('/transfer', { step: name, transferId }, account))
  }

  return {
    released,
    claimed,
    offered,
    answered,
    send,
    signed,
    reasonOf,
    pathOf,
    tapOf,
    pageOf: pageAt,
    ticketIn,
    ticketOf,
    ownerOf,
  }
}
