/** The terms of a sale, shared by the 402, the checks, the facilitator and the discovery document (spec §2.6). */
import type { Hex } from '@touchstone/verdict'
import { caipNetwork, chainId } from '../../domain/chain.ts'

/** Seconds in which a payment must settle, counted from its signing. */
export const maxTimeoutSeconds = 30
/** Default buyers of the first generation refuse more than 0.10 USDC. */
export const highestUsualPrice = 100_000n

/** `price` is in the token's smallest units. `resource` is the public URL of POST /verify. Token name and version are those of its EIP-712 domain. */
export type Terms = {
  readonly price: bigint
  readonly asset: Hex
  readonly payTo: Hex
  readonly resource: string
  readonly tokenName: string
  readonly tokenVersion: string
}

export const description =
  'Bound-state proof: the on-chain state of one physical product, with an ECDSA signature that a contract can check.'
export const mimeType = 'application/json'

export function tokenDomain({ tokenName, tokenVersion, asset }: Terms) {
  return { name: tokenName, version: tokenVersion, chainId, verifyingContract: asset }
}

/** Returns the requirements of x402 version 2. The amount may be that of an earlier price. */
export function requirementsV2(terms: Terms, amount = terms.price, payTo = terms.payTo) {
  return {
    scheme: 'exact',
    network: caipNetwork,
    amount: amount.toString(),
    asset: terms.asset,
    payTo,
    maxTimeoutSeconds,
    extra: { name: terms.tokenName, version: terms.tokenVersion },
  } as const
}
