/**
 * Status lists of signed passports (W3C Bitstring Status List 1.0): `suspension` is set while an item is FLAGGED, `revocation` once it is
 * RECYCLED or its passport withdrawn. An item has one index, the same in both lists, chosen at random so that neighbours say nothing.
 */
import { randomInt } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { ServiceError } from '../errors.ts'
import { base64urlMultibase } from './multibase.ts'
import { timeText } from './product.ts'

export const statusPurposes = ['suspension', 'revocation'] as const
export type StatusPurpose = (typeof statusPurposes)[number]
/** Entries of one list; fewer would make an item easy to guess (specification §6.1). */
export const listEntries = 131_072
/** How long a copy of a list may be used, in milliseconds. */
const listTtlMs = 300_000

/** At even odds never reached by chance: a store that refuses this often is broken. */
const mostAttempts = 64

/** Which list, from 1, and which bit of it, from 0. */
export type StatusIndex = { readonly list: number; readonly index: number }

/** What the indexes need of the store. */
export type StatusStorage = {
  readonly find: (tokenId: bigint) => Promise<StatusIndex | null>
  /** Gives the bit to the token, once and for ever. False when the bit is taken or the token has one; the pair must be unique. */
  readonly claim: (tokenId: bigint, at: StatusIndex) => Promise<boolean>
  /** How many bits are taken in all lists together. */
  readonly count: () => Promise<number>
}

export type StatusEntry = {
  readonly id: string
  readonly type: 'BitstringStatusListEntry'
  readonly statusPurpose: StatusPurpose
  readonly statusListIndex: string
  readonly statusListCredential: string
}

/** Finds or allocates the index of a token. Lists are filled to a half, so a random bit is free with at least even odds. */
export function createStatusIndexes(storage: StatusStorage, random: (below: number) => number = randomInt) {
  return async function indexOf(tokenId: bigint): Promise<StatusIndex> {
    for (let attempt = 0; attempt < mostAttempts; attempt += 1) {
      const known = await storage.find(tokenId)
      if (known !== null) return known
      const at = { list: 1 + Math.floor((await storage.count()) / (listEntries / 2)), index: random(listEntries) }
      if (await storage.claim(tokenId, at)) return at
    }
    throw new ServiceError('INTERNAL', 'No status index could be allocated.')
  }
}

/** The `credentialStatus` of a signed passport: one entry a purpose. */
export function statusEntries(baseUrl: string, { list, index }: StatusIndex): readonly StatusEntry[] {
  return statusPurposes.map((statusPurpose) => {
    const url = statusListUrl(baseUrl, statusPurpose, list)
    return {
      id: `${url}#${index}`,
      type: 'BitstringStatusListEntry',
      statusPurpose,
      statusListIndex: String(index),
      statusListCredential: url,
    }
  })
}

function statusListUrl(baseUrl: string, purpose: StatusPurpose, list: number): string {
  return `${baseUrl}/api/status/${purpose}/${list}`
}

/** The list as a credential, to be signed like a passport; `set` are the indexes whose status is true, `now` in milliseconds. */
export function statusListCredential(input: {
  readonly baseUrl: string
  readonly issuer: { readonly did: string; readonly name: string }
  readonly purpose: StatusPurpose
  readonly list: number
  readonly set: Iterable<number>
  readonly now: number
}) {
  const { baseUrl, issuer, purpose, list, set, now } = input
  const url = statusListUrl(baseUrl, purpose, list)
  const seconds = Math.floor(now / 1000)
  return {
    '@context': ['https://www.w3.org/ns/credentials/v2'],
    id: url,
    type: ['VerifiableCredential', 'BitstringStatusListCredential'],
    issuer: { id: issuer.did, name: issuer.name },
    validFrom: timeText(seconds),
    // A verifier that is shown an old copy must not take it for the state of today.
    validUntil: timeText(seconds + 3600),
    credentialSubject: {
      id: `${url}#list`,
      type: 'BitstringStatusList',
      statusPurpose: purpose,
      encodedList: encodeList(set),
      ttl: listTtlMs,
    },
  }
}

/** Index 0 is the leftmost bit of the first byte; gzip, then base64url with its multibase prefix. */
export function encodeList(set: Iterable<number>): string {
  const bits = new Uint8Array(listEntries / 8)
  for (const index of set) {
    if (!Number.isInteger(index) || index < 0 || index >= listEntries)
      throw new ServiceError('INTERNAL', 'A status index is outside its list.')
    bits[index >> 3] = (bits[index >> 3] ?? 0) | (0x80 >> (index & 7))
  }
  return base64urlMultibase(gzipSync(bits))
}
