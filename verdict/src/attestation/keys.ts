/** The keys that a gateway signs attestations with, as `/.well-known/attestation.json` publishes them (spec §4.8, §8). */
import type { Hex } from '../lib/hex.ts'
import { isCount, isObject } from '../lib/json.ts'
import { isAddress } from '../rules/address.ts'

/**
 * A key that is `next` is announced, and nothing that it signs counts yet. `active` signs and `retired` has signed.
 * `revoked` is compromised: nothing it signed counts, because a thief can put any time into what he signs.
 */
export type AttestationKeyStatus = (typeof attestationKeyStatuses)[number]
const attestationKeyStatuses = ['next', 'active', 'retired', 'revoked'] as const

/** A key counts from `validFrom` on, for attestations issued from `validFrom` to `validUntil`, both included. */
export type PublishedKey = Readonly<{
  address: Hex
  keyId: string
  /** Unix seconds. */
  validFrom: number
  /** Unix seconds; `null` while no end is known. */
  validUntil: number | null
  status: AttestationKeyStatus
}>

/** Most keys of a document that are read: two hundred years of a rotation every year. */
const mostKeys = 200

/** The name of a key: `attest-` and the first sixteen digits of its address in lower case. */
export function attestationKeyId(address: Hex): string {
  return `attest-${address.slice(2, 18).toLowerCase()}`
}

/**
 * The keys of a parsed document `{ keys: [...] }`, or of the list itself; `null` when any of them is not well-formed.
 * Members beside the five are ignored, so that a document may say more.
 */
export function readPublishedKeys(document: unknown): readonly PublishedKey[] | null {
  const list: unknown = isObject(document) ? document['keys'] : document
  return Array.isArray(list) && list.length <= mostKeys && list.every(isPublishedKey) ? list : null
}

function isPublishedKey(value: unknown): value is PublishedKey {
  if (!isObject(value)) return false
  const { address, keyId, validFrom, validUntil, status } = value
  return (
    isAddress(address) &&
    keyId === attestationKeyId(address) &&
    isCount(validFrom) &&
    (validUntil === null || isCount(validUntil)) &&
    attestationKeyStatuses.some((known) => known === status)
  )
}
