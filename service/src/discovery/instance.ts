/** The values of one running instance that the discovery documents name. */
import type { Hex } from '@touchstone/verdict'

export type HostName = 'verification' | 'gateway' | 'graphql'
/** Origins of the three hosts, without a slash at the end. */
export type HostUrls = Readonly<Record<HostName, string>>
/** The hosts that documents name: a service that sells no proofs has no gateway. */
export type NamedHosts = Omit<HostUrls, 'gateway'> & { readonly gateway: string | null }

/** A page of the documentation. Its path is below the verification host; its Markdown has the same path with `.md`. */
export type DocPage = { readonly path: string; readonly title: string }

export type Instance = {
  readonly urls: NamedHosts
  readonly operator: string
  /** EIP-55 checksummed. */
  readonly contract: Hex
  /** A public provider of the chain. */
  readonly rpcUrl: string
  /** A token for examples; it need not exist. */
  readonly exampleTokenId: bigint
  readonly docs: readonly DocPage[]
  /** `mailto:` or `https:` for reports of vulnerabilities; null if there is no security.txt. */
  readonly securityContact: string | null
  readonly startedAt: Date
}
