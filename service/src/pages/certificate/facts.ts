/** The facts of a certificate in words, for paper and passes. */
import type { LifecycleState } from '@touchstone/verdict'
import { textsIn, type PageContext } from '../context.ts'
import type { ItemKey } from '../../domain/gs1/serial.ts'

export type CertificateView = {
  readonly issuerName: string
  readonly did: string
  /** The signed certificate. */
  readonly jws: string
  readonly checkUrl: string
  readonly item: ItemKey | null
  /** The maker's name of the product, cleaned: hostile text. */
  readonly name: string | undefined
  readonly state: LifecycleState
  readonly tapCounter: number
  /** Unix seconds. */
  readonly at: number
  readonly chainRef: {
    readonly chainId: number
    readonly contract: string
    readonly tokenId: string
    readonly blockNumber: number
    readonly blockHash: string
  }
}

export type CertificateFact = {
  readonly key: 'gtin' | 'serial' | 'name' | 'state' | 'tap' | 'block' | 'contract' | 'token' | 'issuer'
  readonly label: string
  readonly value: string
}

const longestName = 80

/** Returns the facts in the order of the paper. The label of `name` says that the text is the maker's and not checked. */
export function certificateFacts(context: PageContext, view: CertificateView): readonly CertificateFact[] {
  const { certificate, product, states, verdict } = textsIn(context)
  const { item, name, state, tapCounter, chainRef, issuerName, did } = view
  const { chainId, contract, tokenId, blockNumber, blockHash } = chainRef
  const facts: readonly (Omit<CertificateFact, 'value'> & { readonly value: string | undefined })[] = [
    { key: 'gtin', label: product.gtin, value: item?.gtin },
    { key: 'serial', label: product.serial, value: item?.serial },
    { key: 'name', label: verdict.named, value: name && Array.from(name).slice(0, longestName).join('') },
    { key: 'state', label: certificate.stateThen, value: state === 'NONE' ? '' : states[state] },
    { key: 'tap', label: certificate.tap, value: String(tapCounter) },
    { key: 'block', label: certificate.block, value: `${blockNumber}\n${blockHash}` },
    { key: 'contract', label: certificate.contract, value: `eip155:${chainId}:${contract}` },
    { key: 'token', label: product.token, value: tokenId },
    { key: 'issuer', label: certificate.issuedBy, value: `${issuerName}\n${did}` },
  ]
  return facts.flatMap(({ value, ...fact }) => (value === undefined ? [] : [{ ...fact, value }]))
}
