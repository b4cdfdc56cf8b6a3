/**
 * Purchase of one attestation as any x402 client does it (spec §2.6, §4.8): the 402, a signed authorization, the response. A retry sends
 * the same signed payment, which can be charged only once.
 */
import { cleanText, isAddress, type Hex } from '@touchstone/verdict'
import { x402Client, x402HTTPClient } from '@x402/core/client'
import type { PaymentRequired } from '@x402/core/types'
import { registerExactEvmScheme } from '@x402/evm/exact/client'
import type { LocalAccount } from 'viem'
import { formatUnits } from 'viem/utils'
import { parseRetryAfter } from '../../lib/async/rate-pause.ts'
import { sleep } from '../../lib/async/sleep.ts'
import { fetchJson, type JsonResponse } from './fetch-json.ts'
import { isObject } from '../../lib/json.ts'
import { identifierExtension } from '../../payments/x402/identifier.ts'
import { errors, uncharged } from '../../payments/errors.ts'
import { caipNetwork, chainName } from '../../domain/chain.ts'

type Purchase = {
  readonly gateway: URL
  readonly tokenId: bigint
  readonly account: LocalAccount
  /** Asks for the EAS off-chain attestation too. */
  readonly eas?: boolean
  /** Name of the purchase (x402 extension `payment-identifier`). */
  readonly identifier?: string | undefined
  /** The most to pay, in millionths of a dollar. */
  readonly most: bigint
  /** Time for retries while the outcome is unknown. */
  readonly retryMs?: number
}

/** The signed terms; the amount is in the token's smallest unit. */
type Terms = { readonly amount: bigint; readonly asset: Hex; readonly payTo: Hex }
export type Bought = { readonly answer: unknown; readonly terms: Terms }

/** Timeout of the paid request; the gateway responds within 28 s. */
const paidMs = 35_000
/** Bounds of the pause between two tries, which the gateway names in `Retry-After`. */
const [leastPauseMs, mostPauseMs] = [1_000, 5_000]

/** Buys the attestation. Throws an Error of one sentence that says whether money may have moved. */
export async function buyAttestation(purchase: Purchase): Promise<Bought> {
  const { gateway, tokenId, account, eas = false, identifier, most, retryMs = 60_000 } = purchase
  const url = new URL('verify', gateway)
  const body = JSON.stringify({ assetId: String(tokenId), chain: chainName, ...(eas && { eas }) })
  const offer = await fetchJson(url, { method: 'POST', body })
  if (offer.status !== 402) throw new Error(`${url.origin} offers no attestation: ${formatAnswer(offer)}`)

  // The library's own limit is off, because the caller has one.
  const paying = new x402Client().setSpendControls({ maxAmountPerPayment: false })
  const client = new x402HTTPClient(registerExactEvmScheme(paying, { signer: account }))
  const required = parseRequired(client, offer)
  const terms = required && parseTerms(required.accepts[0])
  if (required === null || terms === null)
    throw new Error(`${url.origin} offers nothing that this command can pay: USDC on Base Sepolia, scheme exact.`)
  const price = formatUnits(terms.amount, 6)
  if (terms.amount > most) throw new Error(`The price is ${price} USDC; to pay that much, say --max ${price}.`)

  const named = identifier === undefined ? required : withIdentifier(required, identifier)
  if (named === null) throw new Error(`${url.origin} takes no name of a purchase: pay without --id.`)
  const payload = await client.createPaymentPayload(named).catch((cause: unknown) => {
    throw new Error(`The offer of ${url.origin} cannot be paid.`, { cause })
  })
  const headers = client.encodePaymentSignatureHeader(payload)
  const { answer: paid, earlier } = await untilKnown(
    () => fetchJson(url, { method: 'POST', body, headers, timeoutMs: paidMs }),
    retryMs,
  )
  if (paid.status === 200) return { answer: paid.body, terms }
  // The nonce was new, so that this payment has used it.
  if (codeOf(paid) === 'nonce_already_used') throw unknownOutcome(paid)
  if (earlier !== undefined && codeOf(paid) === 'authorization_expired')
    throw new Error(
      `Nothing was bought: the payment expired while ${url.origin} did not take it. ${formatAnswer(earlier)}`,
    )
  throw new Error(formatRefusal(paid, account.address))
}

/** Parses the payment requirements and keeps the one entry that this command can pay. */
function parseRequired(client: x402HTTPClient, { headers, body }: JsonResponse) {
  try {
    const required = client.getPaymentRequiredResponse((name) => headers.get(name), body)
    const entry = required.accepts.find(
      (each) => each.scheme === 'exact' && [chainName, caipNetwork].includes(each.network),
    )
    return entry === undefined ? null : { ...required, accepts: [entry] }
  } catch {
    return null
  }
}

/** Adds the name of a purchase where the offer announces the extension. A payment of version 1 has no place for it. */
function withIdentifier(required: PaymentRequired, id: string): PaymentRequired | null {
  const { x402Version, extensions } = required
  const offered = extensions?.[identifierExtension]
  if (x402Version !== 2 || !isObject(offered) || !isObject(offered['info'])) return null
  return {
    ...required,
    extensions: { ...extensions, [identifierExtension]: { ...offered, info: { ...offered['info'], id } } },
  }
}

/** Parses the terms. Version 1 calls the amount `maxAmountRequired`. */
function parseTerms(entry: unknown): Terms | null {
  const { amount, maxAmountRequired, asset, payTo } = entry as Record<string, unknown>
  const text = amount ?? maxAmountRequired
  if (typeof text !== 'string' || !/^[0-9]{1,30}$/.test(text) || !isHexAddress(asset) || !isHexAddress(payTo))
    return null
  return { amount: BigInt(text), asset, payTo }
}

/**
 * Retries with the same payment until it has an end. Where every answer says that nothing was charged, the last one is the end. `earlier` is the
 * newest answer that was none.
 */
async function untilKnown(ask: () => Promise<JsonResponse>, retryMs: number) {
  const end = performance.now() + retryMs
  let isUncharged = true
  let earlier: JsonResponse | undefined
  for (;;) {
    const answer = await ask().catch((error: Error) => error)
    const isLost = answer instanceof Error
    if (!isLost && !isPassing(answer)) return { answer, earlier }
    isUncharged &&= !isLost && provesUncharged(answer)
    const askedMs = isLost ? undefined : parseRetryAfter(answer.headers.get('retry-after'), Date.now())
    const pauseMs = Math.min(Math.max(askedMs ?? 0, leastPauseMs), mostPauseMs)
    if (performance.now() + pauseMs > end) {
      if (isUncharged && !isLost) return { answer, earlier }
      throw unknownOutcome(answer)
    }
    if (!isLost) earlier = answer
    await sleep(pauseMs)
  }
}

/** Returns whether the next try may be answered otherwise, by the gateway or by a proxy in front of it. A proxy decides about no payment. */
function isPassing(answer: JsonResponse): boolean {
  const { status } = answer
  const isOfProxy = status !== 200 && !Object.hasOwn(errors, String(codeOf(answer)))
  return isOfProxy || status >= 500 || status === 408 || status === 429
}

/** A payment over a quota is not looked at. After an answer that leaves the outcome open, this proves nothing about that one. */
function provesUncharged(answer: JsonResponse): boolean {
  return answer.status === 429 || uncharged.has(codeOf(answer))
}

const codeOf = ({ body }: JsonResponse): unknown => (body as { readonly error?: unknown } | null)?.error

function unknownOutcome(last: JsonResponse | Error): Error {
  return new Error(
    `The outcome is not known: ${last instanceof Error ? last.message : `${formatAnswer(last, ['error'])}.`} ` +
      'The payment was charged once or not at all; without an attestation, compare the payer’s balance before you pay again.',
  )
}

function formatRefusal(answer: JsonResponse, payer: string): string {
  const sentence = `Nothing was bought: ${formatAnswer(answer)}`
  if (codeOf(answer) !== 'insufficient_funds') return sentence
  return `${sentence} Send USDC on Base Sepolia to ${payer} (test money: https://faucet.circle.com).`
}

/** Formats an untrusted response for people. */
function formatAnswer({ status, body }: JsonResponse, fields: readonly string[] = ['error', 'message']): string {
  const found = (body ?? {}) as Record<string, unknown>
  const text = fields.flatMap((name) => (typeof found[name] === 'string' ? [found[name]] : [])).join(': ')
  return cleanText(`${status} ${text}`.trim(), { max: 250 })
}

function isHexAddress(value: unknown): value is Hex {
  return typeof value === 'string' && isAddress(value)
}
