/**
 * Certificates of what the record said of an item, at one block, soon after a tap of its chip. A certificate is a credential of few
 * members (VCDM 2.0 in the terms of the passport), so that its JWS fits into a QR code. It is evidence of a past moment and does not end.
 * Its status is of the present: a report, an opened seal or the end of the record suspends it.
 */
import { type Verdict, isSealOpened } from '@touchstone/verdict'
import { contextUrl, linksOf } from './links.ts'
import type { ItemKey } from '../domain/gs1/serial.ts'
import { formatSecond } from '../domain/text.ts'
import { chainReference } from './product.ts'
import { untpStatusEntry } from './signing/status-list.ts'
import type { StatusIndex } from './signing/status-store.ts'

export type CertificateInput = {
  readonly baseUrl: string
  readonly did: string
  readonly verdict: Verdict
  readonly item: ItemKey | null
  readonly tapCounter: number
  readonly at: StatusIndex
  /** Milliseconds since 1970. */
  readonly now: number
}

/** Returns the credential to sign. No text of a maker is in it, and no owner. */
export function certificateOf({ baseUrl, did, verdict, item, tapCounter, at, now }: CertificateInput) {
  const { token_id: tokenId, chainRef, state, flagged } = verdict
  const { id: _id, statusListIndex, ...entry } = untpStatusEntry(baseUrl, at)
  return {
    '@context': ['https://www.w3.org/ns/credentials/v2', contextUrl(baseUrl)],
    type: ['VerifiableCredential'],
    issuer: did,
    validFrom: formatSecond(Math.floor(now / 1000)),
    credentialStatus: { ...entry, statusListIndex: String(statusListIndex) },
    credentialSubject: {
      id: linksOf(baseUrl, { tokenId, item }).page,
      assetStatus: {
        type: ['AssetStatus'],
        state,
        flagged,
        tapCounter,
        chainRef: chainReference(chainRef),
      },
    },
  }
}

/**
 * Returns whether a record may be certified: released or owned, not reported, and its seal not opened. A certificate has no place for the
 * bits of the record, `flags`.
 */
export function isCertifiable({ state, flagged }: Pick<Verdict, 'state' | 'flagged'>, flags: number): boolean {
  return (state === 'ACTIVATED' || state === 'CLAIMED') && !flagged && !isSealOpened({ flags })
}
