/**
 * The calls that read an asset from its contract (spec §2.5) and their strict decoding: nothing missing, nothing left over,
 * nothing above the width of a type. Whatever cannot be is `null`; ABI specification, «Formal Specification of the Encoding».
 */
import { keccak_256 } from '@noble/hashes/sha3.js'
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js'
import { recordOfGetAsset, recordOfWord } from '@touchstone/verdict'
import type { AssetRecord, Hex } from '@touchstone/verdict'

/** What the chain holds of one token. `metadataHash` is `null` for the zero hash and where the contract has none to tell. */
export type Found = Readonly<{ record: AssetRecord; metadataHash: Hex | null }>

/** One element per token asked for; `null` where the answer for this token cannot be right. */
export type FoundList = readonly (Found | null)[]

export const selectors = {
  getAsset: selectorOf('getAsset(uint256)'),
  getAssets: selectorOf('getAssets(uint256[])'),
  getAssetsWithMetadata: selectorOf('getAssetsWithMetadata(uint256[])'),
  getAssetByTag: selectorOf('getAssetByTag(bytes32)'),
  getTokenByTag: selectorOf('getTokenByTag(bytes32)'),
  metadataHash: selectorOf('metadataHash(uint256)'),
  supportsInterface: selectorOf('supportsInterface(bytes4)'),
}

/** Calldata of a function with one word as argument. */
export function callWithWord(selector: Hex, argument: bigint): Hex {
  return `${selector}${wordText(argument)}`
}

/** Calldata of a function with one `uint256[]` as argument. */
export function callWithList(selector: Hex, ids: readonly bigint[]): Hex {
  return `${selector}${wordText(32n)}${wordText(BigInt(ids.length))}${ids.map(wordText).join('')}`
}

/** Calldata that asks whether the contract lists a function (ERC-165). */
export function supportsCall(selector: Hex): Hex {
  return `${selectors.supportsInterface}${selector.slice(2).padEnd(64, '0')}`
}

/** The answer of `getAssets`: the storage words of `count` records. */
export function foundOfGetAssets(data: Hex, count: number): FoundList | null {
  const words = wordsOf(data, 2 + count)
  if (words === null || words[0] !== 32n || words[1] !== BigInt(count)) return null
  return words.slice(2).map((word) => foundOf(recordOfWord(word), 0n))
}

/** The answer of `getAssetsWithMetadata`: two lists of `count` words. */
export function foundOfGetAssetsWithMetadata(data: Hex, count: number): FoundList | null {
  const words = wordsOf(data, 4 + 2 * count)
  if (words === null) return null
  const second = 3 + count
  const [firstOffset, secondOffset, length] = words
  const expected = firstOffset === 64n && secondOffset === 32n * BigInt(second) && length === BigInt(count)
  if (!expected || words[second] !== BigInt(count)) return null
  return words.slice(3, second).map((word, index) => foundOf(recordOfWord(word), words[second + 1 + index] ?? 0n))
}

/** The answers of `getAsset` and, where it was asked for, of `metadataHash` for one token. */
export function foundOfGetAsset(data: Hex, metadata: Hex | null): Found | null {
  const hash = metadata === null ? 0n : wordOf(metadata)
  return hash === null ? null : foundOf(recordOfGetAsset(data), hash)
}

/**
 * The answer of `getAssetByTag`: the token that carries the tag, or `tokenId: null` where none does.
 * A tag is bound to something that exists, and nothing has a record that belongs to no token.
 */
export function foundOfTag(data: Hex): Readonly<{ tokenId: bigint; found: Found }> | { tokenId: null } | null {
  const words = wordsOf(data, 3)
  if (words === null) return null
  const [tokenId = 0n, word = 0n, metadata = 0n] = words
  if (tokenId === 0n) return word === 0n && metadata === 0n ? { tokenId: null } : null
  const found = foundOf(recordOfWord(word), metadata)
  return found === null || found.record.state === 0 ? null : { tokenId, found }
}

/** A record and the word of its metadata hash. */
export function foundOf(record: AssetRecord | null, metadata: bigint): Found | null {
  if (record === null) return null
  return { record, metadataHash: metadata === 0n ? null : `0x${wordText(metadata)}` }
}

/** An answer of exactly one word. */
export function wordOf(data: Hex): bigint | null {
  return wordsOf(data, 1)?.[0] ?? null
}

/** An answer of exactly `count` words. */
function wordsOf(data: Hex, count: number): readonly bigint[] | null {
  if (data.length !== 2 + 64 * count) return null
  const words: bigint[] = []
  for (let at = 2; at < data.length; at += 64) words.push(BigInt(`0x${data.slice(at, at + 64)}`))
  return words
}

/** 64 hex digits. */
export function wordText(value: bigint): string {
  return value.toString(16).padStart(64, '0')
}

/** The first four bytes of the keccak256 of a function's signature. */
export function selectorOf(signature: string): Hex {
  return `0x${bytesToHex(keccak_256(utf8ToBytes(signature)).subarray(0, 4))}`
}
