/**
 * Published keys: factory keys and the examples of RFC 4493, NXP AN10922 and AN12196, sdm-backend and Bolt Card.
 * Any reader of those documents can forge a tag under one of them, so production rejects them (spec §5).
 */
import { hexToBytes } from '@noble/hashes/utils.js'
import { toHex } from '../bytes.ts'

/** Returns whether a key is one repeated byte (the factory key is all zeros), or is in these documents. */
export function isPublishedKey(key: Uint8Array): boolean {
  return key.every((byte) => byte === key[0]) || published.has(toHex(key))
}

/** Returns all published keys of 16 bytes, the factory key first. */
export function publishedKeys(): Uint8Array[] {
  return [...published].filter((hex) => hex.length === 32).map(hexToBytes)
}

const published: ReadonlySet<string> = new Set([
  '00000000000000000000000000000000',
  '00000000000000000000000000000001',
  '2B7E151628AED2A6ABF7158809CF4F3C',
  '00112233445566778899AABBCCDDEEFF',
  '000102030405060708090A0B0C0D0E0F',
  '5ACE7E50AB65D5D51FD5BF5A16B8205B',
  'F3847D627727ED3BC9C4CC050489B966',
  '5004BF991F408672B1EF00F08F9E8647',
  '42AFF114F2CB3B6141BE6DC95DFC5416',
  'B62A9BAF092439BD43C62AEE96B970C5',
  'C9EB67DF090AFF47C3B19A2516680B9D',
  'B95F4C27E3D0BC333792EA968545217F',
  '47BBB68AFA73F31310BEEFCE5DDA692DBAD671A03FEAD5A9BBDBCF3CD6D4C521',
  '0C3B25D92B38AE443229DD59AD34B85D',
  'B45775776CB224C75BCDE7CA3704E933',
])
