/**
 * The on-chain asset record and its two encodings: one storage word, and the five words that `getAsset` returns (spec
 * §2.5).
 */
import type { Hex } from '../lib/hex.ts'
import { isStateCode, type StateCode } from './lifecycle.ts'

/** The record that the contract stores for one token (spec §2.5). All zero means that the token was never minted. */
export type AssetRecord = Readonly<{
  /** Lower-case address; the zero address when the token has no owner. */
  owner: Hex
  /** Unix seconds of the last change of this record. */
  timestamp: bigint
  state: StateCode
  /** One byte of flag bits, see `assetFlags`. */
  flags: number
  /** 16 bits: the state before FLAGGED (low byte) and the layout of the record (high byte). */
  reserved: number
}>

/**
 * The members have these widths in bits, from the lowest bit of the storage word upwards. That is also the order of
 * `getAsset`.
 */
const widths = [160n, 64n, 8n, 8n, 16n] as const

/**
 * Decodes a storage word or an element of `getAssets`. The owner is in bits 0–159, timestamp 160–223, state 224–231,
 * flags 232–239, reserved 240–255. Returns `null` for a state above 6, and for state 0 in a word that is not zero: no
 * contract writes either.
 */
export function recordOfWord(word: bigint): AssetRecord | null {
  let rest = word
  const members = widths.map((width) => {
    const member = BigInt.asUintN(Number(width), rest)
    rest >>= width
    return member
  })
  return rest === 0n ? recordOfMembers(members) : null
}

/** The storage word of a record; undoes `recordOfWord`. */
export function wordOfRecord({ owner, timestamp, state, flags, reserved }: AssetRecord): bigint {
  return (
    BigInt(owner) | (timestamp << 160n) | (BigInt(state) << 224n) | (BigInt(flags) << 232n) | (BigInt(reserved) << 240n)
  )
}

/**
 * Decodes what `getAsset(uint256)` returns (spec §2.5): exactly five 32-byte words, lower-case hex, nothing above the
 * width of a type. Returns `null` for anything else, and for the records that `recordOfWord` refuses.
 */
export function recordOfGetAsset(data: Hex): AssetRecord | null {
  if (!/^0x[0-9a-f]{320}$/.test(data)) return null
  const members = widths.map((_, index) => BigInt(`0x${data.slice(2 + 64 * index, 66 + 64 * index)}`))
  const clean = members.every((member, index) => member >> (widths[index] ?? 0n) === 0n)
  return clean ? recordOfMembers(members) : null
}

function recordOfMembers(members: readonly bigint[]): AssetRecord | null {
  const [owner = 0n, timestamp = 0n, stateMember = 0n, flags = 0n, reserved = 0n] = members
  const state = Number(stateMember)
  if (!isStateCode(state)) return null
  if (state === 0 && members.some((member) => member !== 0n)) return null
  return {
    owner: `0x${owner.toString(16).padStart(40, '0')}`,
    timestamp,
    state,
    flags: Number(flags),
    reserved: Number(reserved),
  }
}
