/**
 * Which bits of a status list are set (W3C Bitstring Status List 1.0), from the chain as it is when somebody asks. What the reader still
 * holds true is not read again, so a list costs a walk through memory as long as nothing changes; a list that takes long
 * is not made again before four times that has passed.
 */
import { isFlagged, type AssetRecord } from '@touchstone/verdict'
import type { StatusPurpose } from '../passport/status-list.ts'

type Asset = { readonly record: AssetRecord; readonly live: boolean }
type Member = { readonly tokenId: bigint; readonly index: number }

export type StatusBitsSource = {
  /** An asset that is `live` after the head was asked for is true there. */
  readonly reader: {
    readonly head: () => unknown
    readonly read: (tokenId: bigint) => Promise<{ readonly asset: Asset }>
  }
  readonly places: {
    readonly members: (list: number) => Promise<readonly Member[]>
    readonly size: (list: number) => Promise<number>
  }
}

/** Indexes in rising order; the same object as long as they stay the same. */
export type StatusBits = Readonly<Record<StatusPurpose, readonly number[]>>

/** The bits of a list, null when nobody is in it. It throws CHAIN_UNAVAILABLE; a flag is never left out because it could not be read. */
export function createStatusBits({ reader, places }: StatusBitsSource): (list: number) => Promise<StatusBits | null> {
  const lists = new Map<number, List>()

  async function make(list: List, number: number): Promise<StatusBits> {
    const began = performance.now()
    if ((await places.size(number)) !== list.members.length) {
      const known = new Map(list.members.map((member) => [member.tokenId, member]))
      const members = await places.members(number)
      list.members = members.map((member) => known.get(member.tokenId) ?? { ...member, asset: undefined })
    }
    const [first] = list.members
    // Without a head of now nobody knows what is still alive; reading anything resolves one.
    if (reader.head() === undefined && first !== undefined) await reader.read(first.tokenId)
    const stale = list.members.filter(({ asset }) => asset?.live !== true)
    for (let from = 0; from < stale.length; from += atOnce)
      await Promise.all(
        stale.slice(from, from + atOnce).map(async (member) => {
          member.asset = (await reader.read(member.tokenId)).asset
        }),
      )
    const bits = bitsOf(list.members)
    if (!isSame(bits, list.bits)) list.bits = bits
    const took = performance.now() - began
    list.restUntil = took > quickMs ? performance.now() + 4 * took : 0
    return list.bits ?? bits
  }

  return async (number) => {
    let list = lists.get(number)
    if (list === undefined) {
      if ((await places.size(number)) === 0) return null
      list = lists.get(number) ?? { members: [], bits: undefined, restUntil: 0, flight: undefined }
      lists.set(number, list)
    }
    if (list.bits !== undefined && performance.now() < list.restUntil) return list.bits
    const own = list
    list.flight ??= make(list, number).finally(() => (own.flight = undefined))
    return list.flight
  }
}

type List = {
  members: (Member & { asset: Asset | undefined })[]
  bits: StatusBits | undefined
  /** A moment of `performance.now()`. */
  restUntil: number
  flight: Promise<StatusBits> | undefined
}

/** A list that took no longer is made again for whoever asks, in milliseconds. */
const quickMs = 100
/** Tokens that the reader takes in one call. */
const atOnce = 1_000

function bitsOf(members: List['members']): StatusBits {
  const indexes = (holds: (record: AssetRecord) => boolean) =>
    members
      .flatMap(({ index, asset }) => (asset !== undefined && holds(asset.record) ? [index] : []))
      .sort((a, b) => a - b)
  return { suspension: indexes(isFlagged), revocation: indexes(({ state }) => state === 6) }
}

function isSame(one: StatusBits, other: StatusBits | undefined): boolean {
  const isEqual = (purpose: StatusPurpose) => one[purpose].join() === other?.[purpose].join()
  return isEqual('suspension') && isEqual('revocation')
}
