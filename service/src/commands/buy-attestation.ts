/**
 * Buys one attestation as any x402 client does (spec §2.6, §4.8): the 402, a signed authorization, the answer. What is signed is
 * kept until the outcome is known: a retry sends the same payment, which can be charged once only.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { cleanText, type Hex } from '@touchstone/verdict'
import { x402Client, x402HTTPClient } from '@x402/core/client'
import { registerExactEvmScheme } from '@x402/evm/exact/client'
import type { LocalAccount } from 'viem'
import { fetchJson, type Answer } from './fetch-json.ts'
import { dollars } from './money.ts'

export type Purchase = {
  readonly gateway: URL
  readonly tokenId: bigint
  readonly account: LocalAccount
  /** The most to pay, in millionths of a dollar. */
  readonly most: bigint
  /** How long to ask again where the outcome is unknown. */
  readonly patienceMs?: number
}

/** What was signed for, in the token's smallest unit. */
type Terms = { readonly amount: bigint; readonly asset: Hex; readonly payTo: Hex }
export type Bought = { readonly answer: unknown; readonly terms: Terms }

/** The gateway answers within 28 s, paid or not. */
const paidMs = 35_000
const network = { name: 'base-sepolia', caip: 'eip155:84532' }

/** Whatever prevents the purchase is an Error of one sentence that says whether money may have moved. */
export async function buyAttestation({
  gateway,
  tokenId,
  account,
  most,
  patienceMs = 60_000,
}: Purchase): Promise<Bought> {
  const url = new URL('verify', gateway)
  const body = JSON.stringify({ assetId: String(tokenId), chain: network.name })
  const offer = await fetchJson(url, { method: 'POST', body })
  if (offer.status !== 402) throw new Error(`${url.origin} offers nothing: ${saidBy(offer)}`)

  const client = new x402HTTPClient(createClient(account))
  const required = requiredOf(client, offer)
  const terms = required && termsOf(required.accepts[0])
  if (required === null || terms === null)
    throw new Error(`${url.origin} offers nothing that this command can pay: USDC on Base Sepolia, scheme exact.`)
  if (terms.amount > most)
    throw new Error(`The price is ${dollars(terms.amount)} USDC; to pay that much, say --max ${dollars(terms.amount)}.`)

  const payload = await client.createPaymentPayload(required).catch((cause: unknown) => {
    throw new Error(`The offer of ${url.origin} cannot be paid.`, { cause })
  })
  const headers = client.encodePaymentSignatureHeader(payload)
  const paid = await untilKnown(() => fetchJson(url, { method: 'POST', body, headers, timeoutMs: paidMs }), patienceMs)
  if (paid.status === 200) return { answer: paid.body, terms }
  throw new Error(refusal(paid, account.address))
}

/** Without the library's own limit: the caller has one. Only USDC is paid with all the same. */
function createClient(account: LocalAccount): x402Client {
  const client = new x402Client().setSpendControls({ maxAmountPerPayment: false })
  return registerExactEvmScheme(client, { signer: account })
}

/** The one entry that this command pays, whatever else is offered. */
function requiredOf(client: x402HTTPClient, { headers, body }: Answer) {
  try {
    const required = client.getPaymentRequiredResponse((name) => headers.get(name), body)
    const entry = required.accepts.find(
      (each) => each.scheme === 'exact' && [network.name, network.caip].includes(each.network),
    )
    return entry === undefined ? null : { ...required, accepts: [entry] }
  } catch {
    return null
  }
}

/** Version 1 calls the amount `maxAmountRequired`. */
function termsOf(entry: unknown): Terms | null {
  const { amount, maxAmountRequired, asset, payTo } = entry as Record<string, unknown>
  const text = amount ?? maxAmountRequired
  if (typeof text !== 'string' || !/^[0-9]{1,30}$/.test(text) || !isAddress(asset) || !isAddress(payTo)) return null
  return { amount: BigInt(text), asset, payTo }
}

/** Asks again with the same payment while nobody knows whether it was charged. */
async function untilKnown(ask: () => Promise<Answer>, patienceMs: number): Promise<Answer> {
  const end = performance.now() + patienceMs
  for (;;) {
    const answer = await ask().catch((error: Error) => error)
    if (!(answer instanceof Error) && answer.status !== 503 && answer.status !== 502) return answer
    const seconds = answer instanceof Error ? 1 : Math.min(Number(answer.headers.get('retry-after') ?? 1) || 1, 5)
    if (performance.now() + seconds * 1000 > end)
      throw new Error(
        `The outcome is not known: ${answer instanceof Error ? answer.message : saidBy(answer)} ` +
          'The payment was charged once or not at all; without an attestation, compare the payer’s balance before you pay again.',
      )
    await delay(seconds * 1000)
  }
}

function refusal(answer: Answer, payer: string): string {
  const sentence = `Nothing was bought: ${saidBy(answer)}`
  const { error } = (answer.body ?? {}) as { error?: unknown }
  if (error !== 'insufficient_funds') return sentence
  return `${sentence} Send USDC on Base Sepolia to ${payer} (test money: https://faucet.circle.com).`
}

/** What a gateway says is for people, and not to be believed. */
function saidBy({ status, body }: Answer): string {
  const { error, message } = (body ?? {}) as Record<string, unknown>
  const text = [error, message].filter((part) => typeof part === 'string').join(': ')
  return cleanText(`${status} ${text}`.trim(), { max: 250 })
}

function isAddress(value: unknown): value is Hex {
  return typeof value === 'string' && /^0x[0-9a-fA-F]{40}$/.test(value)
}
