/**
 * Status lists of signed passports (W3C Bitstring Status List 1.0). `suspension` is set while an item is FLAGGED or its seal is opened,
 * and once it is RECYCLED, `revocation` once it is RECYCLED. The form of UNTP names only `suspension`, which therefore says all of it. An
 * item has one index, the same in both lists, that looks random without a secret, so that neighbours reveal nothing.
 */
import { createHmac, randomInt } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { isFlagged, type AssetRecord, isSealOpened } from '@touchstone/verdict'
import { LRUCache } from 'lru-cache'
import { createAgeClock } from '../../lib/async/age-clock.ts'
import { createQueue } from '../../lib/async/concurrency.ts'
import { singleFlight } from '../../lib/async/single-flight.ts'
import { ServiceError } from '../../lib/errors.ts'
import { formatSecond } from '../../domain/text.ts'
import type { StatusIndex, StatusMember, StatusStore } from './status-store.ts'

export const statusPurposes = ['suspension', 'revocation'] as const
export type StatusPurpose = (typeof statusPurposes)[number]
/** Entries of one list; fewer would make an item easy to guess (specification §6.1). */
export const listEntries = 131_072
/** Milliseconds for which a copy of a list may be used. */
const listTtlMs = 300_000

/** Lists are about half full at most, so that so many taken bits in a row mean a broken store. */
const maxAttempts = 64

/** Bits of a list that are given away, so that a random one is free with at least even odds. */
const mostTaken = listEntries / 2
/** The newest list is counted again after this part of its room. So many processes fill no list beyond its half. */
const countedPart = 64

/**
 * Derives the indexes that a token tries, in order. A restored database has lost the newest ones, and finds them again by the secret. Without
 * a secret they are random: an index that anybody could compute would name its item.
 */
export function statusCandidates(secret: Uint8Array | null): (tokenId: bigint, attempt: number) => number {
  if (secret === null) return () => randomInt(listEntries)
  const key = createHmac('sha256', secret).update('touchstone status indexes').digest()
  return (tokenId, attempt) =>
    createHmac('sha256', key).update(`${tokenId} ${attempt}`).digest().readUInt32BE() % listEntries
}

/** Finds or allocates the index of a token. */
export function createStatusIndexes(
  store: Pick<StatusStore, 'find' | 'claim' | 'newest'>,
  candidateOf = statusCandidates(null),
) {
  let open = { list: 1, uncounted: 0 }

  /** Returns the list that has room. It counts rarely, because a list has tens of thousands of rows. */
  async function openList(): Promise<number> {
    if (open.uncounted <= 0) {
      const { list, taken } = (await store.newest()) ?? { list: 1, taken: 0 }
      const room = taken < mostTaken ? mostTaken - taken : mostTaken
      open = { list: taken < mostTaken ? list : list + 1, uncounted: Math.ceil(room / countedPart) }
    }
    open.uncounted -= 1
    return open.list
  }

  return async function indexOf(tokenId: bigint): Promise<StatusIndex> {
    for (let attempt = 0; attempt < maxAttempts; attempt += 1) {
      const known = await store.find(tokenId)
      if (known !== null) return known
      const at = { list: await openList(), index: candidateOf(tokenId, attempt) }
      if (await store.claim(tokenId, at)) return at
    }
    throw new ServiceError('INTERNAL', 'No status index could be allocated.')
  }
}

/** Returns the entry that UNTP 0.7.0 allows: one, its index a number. */
export function untpStatusEntry(baseUrl: string, { list, index }: StatusIndex) {
  return statusEntry(baseUrl, 'suspension', list, index)
}

/** Returns one entry for each purpose, its index in text (W3C Bitstring Status List). */
export function statusEntries(baseUrl: string, { list, index }: StatusIndex): ReturnType<typeof statusEntry<string>>[] {
  return statusPurposes.map((purpose) => statusEntry(baseUrl, purpose, list, String(index)))
}

function statusEntry<Index extends string | number>(
  baseUrl: string,
  statusPurpose: StatusPurpose,
  list: number,
  statusListIndex: Index,
) {
  const url = statusListUrl(baseUrl, statusPurpose, list)
  return {
    id: `${url}#${statusListIndex}`,
    type: 'BitstringStatusListEntry',
    statusPurpose,
    statusListIndex,
    statusListCredential: url,
  } as const
}

function statusListUrl(baseUrl: string, purpose: StatusPurpose, list: number): string {
  return `${baseUrl}/api/status/${purpose}/${list}`
}

/** Indexes in rising order; the same object as long as they stay the same. */
export type StatusBits = Readonly<Record<StatusPurpose, readonly number[]>>

const recycled = 6
type Asset = { readonly record: AssetRecord; readonly current: boolean }
type Member = StatusMember & { asset?: Asset | undefined }
type List = { members: Member[] }
/** `restUntil` is in monotonic milliseconds; `tokenId` is a member. */
type Made = { readonly bits: StatusBits; readonly restUntil: number; readonly tokenId: bigint | undefined }

/** A list that took longer to make rests for four times as long, within bounds, in milliseconds. */
const quickMs = 100
const longestRestMs = 10_000
/** Tokens that the reader takes in one call. */
const batchSize = 1_000
/** Lists whose members are in memory: some 50 MB for one that is half full. */
const mostLists = 3
/** Lists whose bits are in memory. Few of them are set. */
const mostMade = 100

/**
 * Reads the bits of a list from the current chain; null for an empty list. It throws CHAIN_UNAVAILABLE rather than leave a flag out.
 * Only assets that the reader no longer holds valid are read again. A list that took long is returned again for a while, as long as the
 * head can be read. The members of a few lists are kept in memory. Others are loaded one list at a time, because anyone may ask for any.
 */
export function createStatusBits({
  reader,
  store,
  now = createAgeClock(),
}: {
  /** An asset that is `current` after the head was resolved is the one at that head. */
  readonly reader: {
    readonly head: () => unknown
    readonly read: (tokenId: bigint) => Promise<{ readonly asset: Asset }>
  }
  readonly store: Pick<StatusStore, 'members' | 'size'>
  /** Monotonic milliseconds. */
  readonly now?: () => number
}): (list: number) => Promise<StatusBits | null> {
  const lists = new LRUCache<number, List>({ max: mostLists })
  const made = new LRUCache<number, Made>({ max: mostMade })
  const inTurn = createQueue()

  const refresh = singleFlight(
    (number: number): Promise<StatusBits> => {
      const known = lists.get(number)
      if (known !== undefined) return make(known, number)
      return inTurn(() => {
        const list: List = { members: [] }
        lists.set(number, list)
        return make(list, number)
      })
    },
    (number) => number,
  )

  async function make(list: List, number: number): Promise<StatusBits> {
    const began = now()
    if ((await store.size(number)) !== list.members.length) list.members = await load(list, number)
    const tokenId = list.members[0]?.tokenId
    await resolveHead(tokenId)
    const stale = list.members.filter(({ asset }) => asset?.current !== true)
    for (let from = 0; from < stale.length; from += batchSize) {
      if (from > 0) await setImmediate() // other requests come between
      await Promise.all(
        stale.slice(from, from + batchSize).map(async (member) => {
          member.asset = (await reader.read(member.tokenId)).asset
        }),
      )
    }
    const [bits, before] = [bitsOf(list.members), made.get(number)?.bits]
    const same = isSame(bits, before) ? before : bits
    const tookMs = now() - began
    const restMs = tookMs > quickMs ? Math.min(4 * tookMs, longestRestMs) : 0
    made.set(number, { bits: same, restUntil: now() + restMs, tokenId })
    return same
  }

  /** Validity is judged at a current head; reading any asset resolves one. */
  async function resolveHead(tokenId: bigint | undefined): Promise<void> {
    if (reader.head() === undefined && tokenId !== undefined) await reader.read(tokenId)
  }

  /** Reads the members, in the order of their indexes. A known one keeps its asset; none is ever removed. */
  async function load({ members: known }: List, number: number): Promise<Member[]> {
    const members: Member[] = []
    let kept = 0
    let page: Member[]
    do {
      page = await store.members(number, members.at(-1)?.index ?? -1)
      for (const member of page) {
        const same = known[kept]
        if (same?.index === member.index) kept += 1
        members.push(same?.index === member.index ? same : member)
      }
    } while (page.length > 0)
    return members
  }

  return async (number) => {
    const last = made.get(number)
    if (last !== undefined && now() < last.restUntil) {
      await resolveHead(last.tokenId)
      return last.bits
    }
    if (!lists.has(number) && (await store.size(number)) === 0) return null
    return refresh(number)
  }
}

function bitsOf(members: readonly Member[]): StatusBits {
  const bits = { suspension: [] as number[], revocation: [] as number[] }
  for (const { index, asset } of members) {
    if (asset !== undefined && isSuspended(asset.record)) bits.suspension.push(index)
    if (asset?.record.state === recycled) bits.revocation.push(index)
  }
  return bits
}

/** State 0: the block of its mint is no longer of the chain, or the mint was in another contract. */
function isSuspended(record: AssetRecord): boolean {
  return record.state === 0 || record.state === recycled || isFlagged(record) || isSealOpened(record)
}

function isSame(one: StatusBits, other: StatusBits | undefined): other is StatusBits {
  return statusPurposes.every(
    (purpose) =>
      one[purpose].length === other?.[purpose].length &&
      one[purpose].every((index, at) => index === other[purpose][at]),
  )
}

/** Returns a list as a credential, to be signed like a passport. `set` are its set indexes, `now` is in milliseconds. */
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
    validFrom: formatSecond(seconds),
    // A verifier that is shown an old copy must not take it for today's state.
    validUntil: formatSecond(seconds + 3600),
    credentialSubject: {
      id: `${url}#list`,
      type: 'BitstringStatusList',
      statusPurpose: purpose,
      encodedList: encodeList(set),
      ttl: listTtlMs,
    },
  }
}

/** Index 0 is the leftmost bit of the first byte; gzip, then base64url with its multibase prefix `u`. */
export function encodeList(set: Iterable<number>): string {
  const bits = new Uint8Array(listEntries / 8)
  for (const index of set) {
    if (!Number.isInteger(index) || index < 0 || index >= listEntries)
      throw new ServiceError('INTERNAL', 'A status index is outside its list.')
    bits[index >> 3] = (bits[index >> 3] ?? 0) | (0x80 >> (index & 7))
  }
  return `u${gzipSync(bits).toString('base64url')}`
}
