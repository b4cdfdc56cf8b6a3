/** The passport of a tapped item (spec §2.8), as the passport routes serve it and the page embeds it. */
import type { Hex } from '@touchstone/verdict'
import { passportOf, type Passport } from '../../../passport/credential.ts'
import { didOf } from '../../../passport/did-document.ts'
import type { ItemKey } from '../../../domain/gs1/serial.ts'
import { passportMetadata } from '../../../passport/metadata.ts'
import { programVersion } from '../../../lib/version.ts'
import type { TapOutcome } from '../../../tap/resolve-tap.ts'
import type { RouteSite } from '../request.ts'

export type ResolvedTap = Extract<TapOutcome, { kind: 'resolved' }>

/** The service and its items; `baseUrl` is the public origin, without a slash at the end. */
export type PassportSite = RouteSite & {
  readonly baseUrl: string
  readonly issuerName: string
  readonly items: { readonly itemOfToken: (tokenId: bigint) => Promise<ItemKey | null> }
  /** Returns the stored text of a hash, altered or not. */
  readonly metadata: { readonly stored: (hash: Hex) => Promise<string | undefined> }
}

const software = {
  id: `https://touchstone.example/releases/${programVersion}`,
  name: 'Touchstone',
  version: programVersion,
  vendor: { id: 'https://touchstone.example', name: 'Touchstone contributors' },
} as const

/**
 * Returns the unsigned document. `item` is the stored GTIN and serial of the token. It throws what the store throws, DATABASE_UNAVAILABLE
 * where that is away.
 */
export async function passportFor(site: PassportSite, tap: ResolvedTap, item: ItemKey | null): Promise<Passport> {
  const { baseUrl, issuerName, metadata, now = Date.now } = site
  const { verdict, block, tag, metadataHash } = tap
  const text = metadataHash === null ? undefined : await metadata.stored(metadataHash)
  return passportOf({
    baseUrl,
    issuer: { name: issuerName, did: didOf(baseUrl) },
    software,
    verdict,
    item,
    tapCounter: tag.tapCounter,
    timestamp: block.timestamp,
    metadata: passportMetadata(metadataHash, text),
    now: now(),
  })
}
