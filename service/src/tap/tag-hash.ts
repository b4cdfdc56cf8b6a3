/** The commitment under which a chain knows a tag (spec §4.4; decisions 4.4): never the UID itself. */
import { createHmac, createSecretKey } from 'node:crypto'
import { keccak_256 } from '@noble/hashes/sha3.js'

export type TagHash = (uid: Uint8Array) => `0x${string}`

/** `keccak-uid` is for contracts that were filled that way: a UID has so few unknown bits that its hash can be searched. */
export type TagHashOptions =
  | { readonly scheme: 'hmac'; readonly pepper: Uint8Array }
  | { readonly scheme: 'keccak-uid' }

/** `hmac`: keccak256(HMAC-SHA256(pepper, uid)); `keccak-uid`: keccak256(uid). A pepper has at least 16 bytes, else `RangeError`. */
export function createTagHash(options: TagHashOptions): TagHash {
  if (options.scheme === 'keccak-uid') return remembered((uid) => hexWord(keccak_256(uid)))
  const { pepper } = options
  if (pepper.length < 16) throw new RangeError('A tag pepper has at least 16 bytes.')
  const key = createSecretKey(pepper) // made once: it is a good part of the cost of an HMAC
  return remembered((uid) => hexWord(keccak_256(createHmac('sha256', key).update(uid).digest())))
}

/** The tags that come back: a commitment is public and never changes. */
function remembered(hashOf: TagHash, most = 10_000): TagHash {
  const known = new Map<string, `0x${string}`>()
  return (uid) => {
    const key = Buffer.from(uid.buffer, uid.byteOffset, uid.length).toString('latin1')
    const hash = known.get(key) ?? hashOf(uid)
    if (known.size >= most) known.clear()
    known.set(key, hash)
    return hash
  }
}

function hexWord(bytes: Uint8Array): `0x${string}` {
  return `0x${Buffer.from(bytes).toString('hex')}`
}
