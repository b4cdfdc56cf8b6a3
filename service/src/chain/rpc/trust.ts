/** How many providers must agree (CHAIN_TRUST, CHAIN_QUORUM; spec §2.5). */
import { endpointHost } from '@touchstone/verdict'

export type TrustOptions = Readonly<{
  /** The preferred one first. Paths and user parts may hold keys. */
  rpcUrls: readonly string[]
  trust: 'rpc' | 'quorum' | 'proof'
  /**
   * How many providers must agree, 2 at least. In `quorum` they agree on everything, in `proof` on blocks, logs and calls. One alone could
   * invent a block, and prove any state under it. If `proof` has one provider, its blocks are trusted.
   */
  quorum: number
}>

/** Counts the providers behind URLs. The same one twice would agree with itself. */
export function countProviders(rpcUrls: readonly string[]): number {
  return new Set(rpcUrls.map(endpointHost)).size
}

/** Returns how many answers must agree. Throws for options that make no quorum. */
export function requiredAnswers({ rpcUrls, trust, quorum }: TrustOptions): number {
  if (rpcUrls.length === 0) throw new Error('No RPC URL is given.')
  const providers = countProviders(rpcUrls)
  if (trust === 'rpc' || (trust === 'proof' && providers === 1)) return 1
  if (providers < rpcUrls.length)
    throw new Error('Two RPC URLs name the same provider, which makes no quorum: name each host once.')
  if (!Number.isInteger(quorum) || quorum < 2 || quorum > providers)
    throw new Error(`A quorum is of 2 providers or more; ${quorum} of ${providers} RPC URLs make none.`)
  return quorum
}
