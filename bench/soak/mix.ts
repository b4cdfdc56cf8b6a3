/** The mixed load of `npm run soak`: what is asked, in which shares, and whether the answer is what was asked for. */
import { headerV2, sign } from '../../service/test/support/payments/buyer.ts'
import type { Fleet } from '../chaos/fleet.ts'
import type { Instance } from '../chaos/services/instance.ts'

export const kinds = ['read', 'tap', 'graphql', 'mcp', 'paid'] as const
export type Kind = (typeof kinds)[number]
/** `run` throws one sentence when the answer is not what was asked for. */
export type Request = { readonly kind: Kind; readonly run: () => Promise<void> }

/** Shares of a hundred requests. */
const shares: { readonly [Name in Kind]: number } = { read: 90, tap: 5, graphql: 3, mcp: 1, paid: 1 }
const order = kinds.flatMap((kind) => Array.from({ length: shares[kind] }, () => kind))

export function openMix(fleet: Fleet, service: Instance) {
  let count = 0
  const tapping = fleet.tags.map(() => Promise.resolve())
  const urls = service.urls()
  const token = () => 1 + Math.floor(Math.random() * fleet.chain.tokens)
  const json = { 'content-type': 'application/json' }

  const runs: { readonly [Name in Kind]: (nth: number) => Promise<void> } = {
    async read() {
      const id = token()
      await wanted(await fetch(`${urls.verification}/api/asset/${id}`), `"token_id":"${id}"`)
    },
    /** The taps of a tag come in the order of its counter. */
    tap(nth) {
      const place = nth % fleet.tags.length
      const [tag, before] = [fleet.tags[place], tapping[place] ?? Promise.resolve()]
      const tap = before.then(async () => {
        const path = tag?.next() ?? ''
        await wanted(await fetch(urls.verification + path), '"verified":true')
      })
      tapping[place] = tap.catch(() => {})
      return tap
    },
    async graphql() {
      const headers = { ...json, authorization: `Bearer ${fleet.key}` }
      const body = JSON.stringify({ query: '{ products(first: 10) { edges { node { id name state verified } } } }' })
      await wanted(await fetch(`${urls.graphql}/graphql`, { method: 'POST', headers, body }), '"edges":[{')
    },
    async mcp(nth) {
      const params = { name: 'verify_asset', arguments: { token_id: String(token()) } }
      const body = JSON.stringify({ jsonrpc: '2.0', id: nth, method: 'tools/call', params })
      const headers = { ...json, accept: 'application/json, text/event-stream' }
      await wanted(await fetch(`${urls.verification}/mcp`, { method: 'POST', headers, body }), 'authentic')
    },
    async paid(nth) {
      const payer = fleet.payers[nth % fleet.payers.length]
      if (payer === undefined) throw new Error('there is no payer')
      const headers = { ...json, ...headerV2(await sign(payer)) }
      const body = JSON.stringify({ assetId: String(token()), chain: 'base-sepolia' })
      await wanted(await fetch(`${urls.gateway}/verify`, { method: 'POST', headers, body }), '"success":true')
    },
  }

  return {
    /** The shares hold for every hundred. 7 has no factor in common with 100: the kinds come mixed. */
    next: (): Request => {
      const nth = (count += 1)
      const kind = order[(nth * 7) % order.length] ?? 'read'
      return { kind, run: () => runs[kind](nth) }
    },
  }
}

async function wanted(response: Response, text: string): Promise<void> {
  const body = await response.text()
  if (response.status !== 200 || !body.includes(text)) throw new Error(`${response.status} ${body.slice(0, 200)}`)
}
