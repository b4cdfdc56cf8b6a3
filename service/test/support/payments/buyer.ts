/** A buyer by hand, for tests: what is signed, how it is sent, what comes back. */
import assert from 'node:assert/strict'
import type { Hex } from '@touchstone/verdict'
import { generatePrivateKey, type PrivateKeyAccount } from 'viem/accounts'
import { usdcAddress } from '../../../src/chain/devchain/test-money.ts'
import { transferTypes } from '../../../src/payments/x402/payment.ts'
import { textAsDescribed } from '../contract.ts'
import { until } from '../wait.ts'

export const price = 10_000n
export const asset = usdcAddress
export const payTo: Hex = '0x00000000000000000000000000000000000cafe1'

export const domain = { name: 'USDC', version: '2', chainId: 84532, verifyingContract: asset } as const

export type SignedPayment = {
  from: Hex
  to: Hex
  value: bigint
  validAfter: bigint
  validBefore: bigint
  nonce: Hex
  signature: Hex
}

const newNonce = (): Hex => generatePrivateKey()

/** Signs a payment as a buyer; `changed` is applied before signing, `forged` after it. */
export async function sign(
  payer: PrivateKeyAccount,
  changed: Partial<SignedPayment> & { domain?: Readonly<Record<string, unknown>> } = {},
  forged: Partial<SignedPayment> = {},
): Promise<SignedPayment> {
  const now = BigInt(Math.floor(Date.now() / 1000))
  const { domain: other, ...fields } = changed
  const message = {
    from: payer.address as Hex,
    to: payTo,
    value: price,
    validAfter: now - 600n,
    validBefore: now + 900n,
    nonce: newNonce(),
    ...fields,
  }
  const signature = await payer.signTypedData({
    domain: { ...domain, ...(other as object) },
    types: transferTypes,
    primaryType: 'TransferWithAuthorization',
    message,
  })
  return { ...message, signature, ...forged }
}

/** Names a payment as the ledger does. */
export const keyOf = ({ from, nonce }: Pick<SignedPayment, 'from' | 'nonce'>) => ({
  payer: from.toLowerCase() as Hex,
  nonce,
})

/** The payload both generations carry. */
export function payloadOf({ signature, ...authorization }: SignedPayment) {
  return {
    signature,
    authorization: JSON.parse(
      JSON.stringify(authorization, (_, value: unknown) => (typeof value === 'bigint' ? value.toString() : value)),
    ) as Record<string, string>,
  }
}

export const base64 = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64')

export function headerV1(payment: SignedPayment, more: object = {}): Record<string, string> {
  return {
    'X-PAYMENT': base64({
      x402Version: 1,
      scheme: 'exact',
      network: 'base-sepolia',
      payload: payloadOf(payment),
      ...more,
    }),
  }
}

export const acceptedV2 = {
  scheme: 'exact',
  network: 'eip155:84532',
  amount: price.toString(),
  asset,
  payTo,
  maxTimeoutSeconds: 30,
  extra: { name: 'USDC', version: '2' },
}

export function headerV2(
  payment: SignedPayment,
  accepted: object = acceptedV2,
  more: object = {},
): Record<string, string> {
  return { 'PAYMENT-SIGNATURE': base64({ x402Version: 2, accepted, payload: payloadOf(payment), ...more }) }
}

export type Answered = {
  status: number
  text: string
  body: Record<string, unknown> & { error?: string; assetId?: string; payment?: { transaction: Hex } }
  headers: Headers
}

/** Sends POST /verify with any body and headers. Every answer must be as the OpenAPI document describes it. */
export async function post(url: string, body: unknown, headers: Record<string, string> = {}): Promise<Answered> {
  const response = await fetch(`${url}/verify`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
  const text = await textAsDescribed('buyAttestation', response)
  return {
    status: response.status,
    text,
    body: text === '' ? {} : (JSON.parse(text) as Answered['body']),
    headers: response.headers,
  }
}

type Health = {
  status: string
  runtime: string
  attestation_signer: string | null
  checks: Record<string, { ok: boolean; message: string }>
}

/** Reads the health of a gateway, which is 200 whatever is wrong. */
export async function healthOf(url: string): Promise<Health> {
  const response = await fetch(`${url}/health`)
  assert.equal(response.status, 200)
  return (await response.json()) as Health
}

/** Returns the status of an answer, and the code of its error. */
export const codesOf = ({ status, body }: Answered) => [status, body.error]

export const buy = (url: string, assetId: bigint, payment: SignedPayment) =>
  post(url, { assetId: assetId.toString(), chain: 'base-sepolia' }, headerV1(payment))

/** Buys with one header, and retries while the answer is 502 or 503. A busy machine may need longer than the gateway waits. */
export async function buySettled(url: string, assetId: bigint, payment: SignedPayment): Promise<Answered> {
  let answer = await buy(url, assetId, payment)
  await until(async () => answer.status < 502 || (answer = await buy(url, assetId, payment)).status < 502)
  return answer
}
