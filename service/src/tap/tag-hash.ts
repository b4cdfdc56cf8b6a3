/** The tag hash by which a chain names a tag (spec §4.4; decisions 4.4). It never reveals the UID. */
import { hmac } from '@noble/hashes/hmac.js'
import { sha256 } from '@noble/hashes/sha2.js'
import { keccak_256 } from '@noble/hashes/sha3.js'
import { bytesToHex } from '@noble/hashes/utils.js'
import { memoize } from '../lib/memoize.ts'

export type TagHash = (uid: Uint8Array) => `0x${string}`

/** `keccak-uid` is for contracts that were filled that way. It is weak: a UID has few unknown bits, so its hash can be searched. */
export type TagHashOptions =
  | { readonly scheme: 'hmac'; readonly pepper: Uint8Array }
  | { readonly scheme: 'keccak-uid' }

/**
 * Creates the hash: `hmac` is keccak256(HMAC-SHA256(pepper, uid)), `keccak-uid` is keccak256(uid).
 * Throws a `RangeError` when the pepper has fewer than 16 bytes.
 */
export function createTagHash(options: TagHashOptions): TagHash {
  if (options.scheme === 'keccak-uid') return hashOnce((uid) => keccak_256(uid))
  const { pepper } = options
  if (pepper.length < 16) throw new RangeError('A tag pepper has at least 16 bytes.')
  const keyed = hmac.create(sha256, pepper) // a copy of it costs a sixth of an HMAC of node:crypto
  return hashOnce((uid) => keccak_256(keyed.clone().update(uid).digest()))
}

/** Keeps the hashes of recent tags, which are public and never change. */
function hashOnce(hash: (uid: Uint8Array) => Uint8Array): TagHash {
  return memoize((uid: Uint8Array) => `0x${bytesToHex(hash(uid))}` as const, {
    max: 10_000,
    keyOf: (uid) => String.fromCharCode(...uid),
  })
}
