/** The wallets for whose passes this operator has keys. */
import { createHash, type KeyObject } from 'node:crypto'
import type { CertificateView } from './facts.ts'

/** Apple's certificates of the operator, and their key, as PEM. */
export type AppleSigner = {
  readonly passType: string
  readonly team: string
  readonly certificate: string
  readonly key: string
  /** The certificate of Apple that issued `certificate` (WWDR). */
  readonly intermediate: string
  /** Milliseconds since 1970: the first of both certificates ends. */
  readonly until: number
}

/** A service account of the operator at Google. */
export type GoogleSigner = { readonly issuerId: string; readonly account: string; readonly key: KeyObject }

export type Wallets = { readonly apple: AppleSigner | null; readonly google: GoogleSigner | null }
export type Wallet = keyof Wallets

/** Returns the signers that can sign at a time, in milliseconds since 1970. Wallet rejects a pass of a certificate that has ended. */
export function signersAt(wallets: Wallets | undefined, now: number): Wallets {
  const { apple = null, google = null } = wallets ?? {}
  return { apple: apple !== null && now < apple.until ? apple : null, google }
}

export type PassView = CertificateView & {
  /** The brand in the operator's list; null: none. */
  readonly brand: string | null
  /** The item's page as a full URL. */
  readonly page: string
}

/** Names a pass by its certificate: another one of the same item is another pass. */
export function serialOf(jws: string): string {
  return createHash('sha256').update(jws).digest('base64url').slice(0, 22)
}
