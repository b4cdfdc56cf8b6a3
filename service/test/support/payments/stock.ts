/**
 * Clients of x402 as they are, unmodified and with their defaults. Those of other generations are a package of their own, installed once
 * from its lockfile, beside the compile cache; each purchase with one of them is a process.
 */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Hex } from '@touchstone/verdict'
import { ExactEvmScheme } from '@x402/evm'
import type { ClientEvmSigner } from '@x402/evm'
import { decodePaymentResponseHeader, wrapFetchWithPaymentFromConfig } from '@x402/fetch'
import { privateKeyToAccount } from 'viem/accounts'
import { installFixture } from '../stock-packages.ts'

const run = promisify(execFile)

export const stockClients = ['@x402/fetch', '@x402/axios', 'x402-fetch', 'x402-axios'] as const
export type StockClient = (typeof stockClients)[number]

export type Bought = { status: number; body: Record<string, unknown>; receipt: Record<string, unknown> }
/** `identifier` is for @x402/axios: the id of the extension `payment-identifier`. */
type Purchase = { readonly url: string; readonly key: Hex; readonly tokenId: bigint; readonly identifier?: string }

/** Buys once, with POST /verify of the gateway. Returns null where the client cannot be installed. */
export async function buyWith(
  client: StockClient,
  { url, key, tokenId, identifier }: Purchase,
): Promise<Bought | null> {
  if (client === '@x402/fetch') return buyWithFetch({ url, tokenId, signer: privateKeyToAccount(key) })
  const folder = await installFixture('x402-buyers')
  if (folder === null) return null
  const args = [
    join(folder, 'buyer.js'),
    client,
    `${url}/verify`,
    key,
    String(tokenId),
    ...(identifier === undefined ? [] : [identifier]),
  ]
  const { stdout } = await run(process.execPath, args, { cwd: folder, timeout: 300_000 })
  return JSON.parse(stdout) as Bought
}

/** Buys once with @x402/fetch, for an account or a smart wallet. */
export async function buyWithFetch({
  url,
  tokenId,
  signer,
}: Omit<Purchase, 'key'> & { signer: ClientEvmSigner }): Promise<Bought> {
  const scheme = { network: 'eip155:84532', client: new ExactEvmScheme(signer) } as const
  const response = await wrapFetchWithPaymentFromConfig(fetch, { schemes: [scheme] })(`${url}/verify`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ assetId: String(tokenId), chain: 'base-sepolia' }),
  })
  const receipt = decodePaymentResponseHeader(response.headers.get('PAYMENT-RESPONSE') ?? '')
  return { status: response.status, body: (await response.json()) as Bought['body'], receipt }
}
