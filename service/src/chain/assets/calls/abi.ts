/**
 * Calldata of the calls that read assets, and strict decoding of their results (spec §2.5; ABI specification, «Formal
 * Specification of the Encoding»). A result is complete, holds nothing more, and no value exceeds its type; any other
 * result is `null`.
 */
import { type AssetRecord, type Hex, recordOfGetAsset, recordOfWord } from '@touchstone/verdict'
import { toFunctionSelector } from 'viem/utils'
import { encodeAddress, encodeWord, padToWords } from '../../../lib/words.ts'

/** The state of one token on the chain. `metadataHash` is `null` for the zero hash and for a contract without such hashes. */
export type DecodedState = Readonly<{ record: AssetRecord; metadataHash: Hex | null }>

/** One element per token of the call; `null` for a token whose result is impossible. */
export type DecodedStates = readonly (DecodedState | null)[]

/** A tag's token with its state, or `tokenId: null` for a tag that no token carries. */
export type TaggedState = Readonly<{ tokenId: bigint; decoded: DecodedState }> | Readonly<{ tokenId: null }>

export const selectors = {
  getAsset: toFunctionSelector('getAsset(uint256)'),
  getAssets: toFunctionSelector('getAssets(uint256[])'),
  getAssetsWithMetadata: toFunctionSelector('getAssetsWithMetadata(uint256[])'),
  getAssetByTag: toFunctionSelector('getAssetByTag(bytes32)'),
  getTokenByTag: toFunctionSelector('getTokenByTag(bytes32)'),
  metadataHash: toFunctionSelector('metadataHash(uint256)'),
  supportsInterface: toFunctionSelector('supportsInterface(bytes4)'),
}

/** Encodes a call with one word as argument. */
export function encodeCall(selector: Hex, argument: bigint): Hex {
  return `${selector}${encodeWord(argument)}`
}

/** Encodes a call with one `uint256[]` as argument. */
export function encodeListCall(selector: Hex, ids: readonly bigint[]): Hex {
  return `${selector}${encodeWord(32n)}${encodeWord(BigInt(ids.length))}${ids.map(encodeWord).join('')}`
}

/** Encodes the question whether the contract lists a function (ERC-165). */
export function encodeSupportsCall(selector: Hex): Hex {
  return `${selectors.supportsInterface}${selector.slice(2).padEnd(64, '0')}`
}

/** Decodes the storage words of `count` records, and the result of `metadataHash` for each where it was called. */
export function decodeGetAssets(data: Hex, count: number, metadata: readonly Hex[] = []): DecodedStates | null {
  const words = decodeWords(data, 2 + count)
  if (words === null || words[0] !== 32n || words[1] !== BigInt(count)) return null
  const metadataOf = (index: number) => (metadata.length === 0 ? null : (metadata[index] ?? '0x'))
  return words.slice(2).map((word, index) => withMetadata(recordOfWord(word), metadataOf(index)))
}

/** Decodes two lists of `count` words. */
export function decodeGetAssetsWithMetadata(data: Hex, count: number): DecodedStates | null {
  const words = decodeWords(data, 4 + 2 * count)
  if (words === null) return null
  const second = 3 + count
  const [firstOffset, secondOffset, length] = words
  const expected = firstOffset === 64n && secondOffset === 32n * BigInt(second) && length === BigInt(count)
  if (!expected || words[second] !== BigInt(count)) return null
  return words
    .slice(3, second)
    .map((word, index) => toDecodedState(recordOfWord(word), words[second + 1 + index] ?? 0n))
}

/** Decodes the results of `getAsset` and, where it was called, of `metadataHash` for one token. */
export function decodeGetAsset(data: Hex, metadata: Hex | null): DecodedState | null {
  return withMetadata(recordOfGetAsset(data), metadata)
}

function withMetadata(record: AssetRecord | null, metadata: Hex | null): DecodedState | null {
  const hash = metadata === null ? 0n : decodeWord(metadata)
  return hash === null ? null : toDecodedState(record, hash)
}

/** A bound tag has a token that exists; an unbound one has neither record nor metadata hash. */
export function decodeGetAssetByTag(data: Hex): TaggedState | null {
  const words = decodeWords(data, 3)
  if (words === null) return null
  const [tokenId = 0n, word = 0n, metadata = 0n] = words
  if (tokenId === 0n) return word === 0n && metadata === 0n ? { tokenId: null } : null
  const decoded = toDecodedState(recordOfWord(word), metadata)
  return decoded === null || decoded.record.state === 0 ? null : { tokenId, decoded }
}

/** Joins a record and the word of its metadata hash. */
export function toDecodedState(record: AssetRecord | null, metadata: bigint): DecodedState | null {
  if (record === null) return null
  return { record, metadataHash: metadata === 0n ? null : `0x${encodeWord(metadata)}` }
}

/** Decodes exactly one word. */
export function decodeWord(data: Hex): bigint | null {
  return decodeWords(data, 1)?.[0] ?? null
}

/** Decodes exactly `count` words. */
function decodeWords(data: Hex, count: number): readonly bigint[] | null {
  if (data.length !== 2 + 64 * count) return null
  const words: bigint[] = []
  for (let at = 2; at < data.length; at += 64) words.push(BigInt(`0x${data.slice(at, at + 64)}`))
  return words
}

const aggregate3 = toFunctionSelector('aggregate3((address,bool,bytes)[])')
const digitsOfWord = 64

/** Encodes an `aggregate3` that sends all `datas` to `target`; a call that reverts does not stop the others. */
export function encodeAggregate(target: Hex, datas: readonly Hex[]): Hex {
  const heads: string[] = []
  const tails: string[] = []
  let offset = BigInt(32 * datas.length)
  for (const data of datas) {
    const bytes = BigInt((data.length - 2) / 2)
    const words = [encodeAddress(target), encodeWord(1n), encodeWord(96n), encodeWord(bytes)].join('')
    const tail = `${words}${padToWords(data.slice(2))}`
    heads.push(encodeWord(offset))
    tails.push(tail)
    offset += BigInt(tail.length / 2)
  }
  return `${aggregate3}${encodeWord(32n)}${encodeWord(BigInt(datas.length))}${heads.join('')}${tails.join('')}`
}

/**
 * Decodes the result of each call, `null` for a call that reverted. Only the layout that Solidity writes is accepted: zero
 * padding, no gap and nothing behind the end.
 */
export function decodeAggregate(data: Hex, count: number): readonly (Hex | null)[] | null {
  const text = data.slice(2)
  const wordAt = (digit: number) => text.slice(digit, digit + digitsOfWord)
  if (wordAt(0) !== encodeWord(32n) || wordAt(digitsOfWord) !== encodeWord(BigInt(count))) return null
  const start = 2 * digitsOfWord
  const results: (Hex | null)[] = []
  let at = start + count * digitsOfWord
  for (let index = 0; index < count; index++) {
    if (wordAt(start + index * digitsOfWord) !== encodeWord(BigInt((at - start) / 2))) return null
    const success = wordAt(at)
    const length = decodeLength(wordAt(at + 2 * digitsOfWord))
    const content = at + 3 * digitsOfWord
    if (length === null || !/^0{63}[01]$/.test(success) || wordAt(at + digitsOfWord) !== encodeWord(64n)) return null
    const end = content + 2 * length
    const next = content + Math.ceil((2 * length) / digitsOfWord) * digitsOfWord
    if (next > text.length || !/^0*$/.test(text.slice(end, next))) return null
    results.push(success.endsWith('1') ? `0x${text.slice(content, end)}` : null)
    at = next
  }
  return at === text.length ? results : null
}

/** Decodes the bytes of one result; more than 2^24 cannot have come through. */
function decodeLength(word: string): number | null {
  return /^0{58}[0-9a-f]{6}$/.test(word) ? Number(`0x${word}`) : null
}
