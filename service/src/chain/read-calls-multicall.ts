/**
 * Many reads in one call through Multicall3 `aggregate3`, for contracts that have no list read of their own (spec §2.5).
 * The contract stands at the same address on every chain (github.com/mds1/multicall3). Decoding is strict: the one
 * layout that Solidity writes, zero padding, no gap and nothing behind the end.
 */
import type { Hex } from '@touchstone/verdict'
import { selectorOf, wordText } from './read-calls.ts'

export const multicallAddress: Hex = '0xca11bde05977b3631167028862be2a173976ca11'

const aggregate3 = selectorOf('aggregate3((address,bool,bytes)[])')
const digitsOfWord = 64

/** Calldata of `aggregate3` that sends every one of `datas` to `target`; a call that reverts does not stop the others. */
export function aggregateCall(target: Hex, datas: readonly Hex[]): Hex {
  const heads: string[] = []
  const tails: string[] = []
  let offset = BigInt(32 * datas.length)
  for (const data of datas) {
    const bytes = BigInt((data.length - 2) / 2)
    const padded = data.slice(2).padEnd(Math.ceil((data.length - 2) / digitsOfWord) * digitsOfWord, '0')
    const tail = [wordText(BigInt(target)), wordText(1n), wordText(96n), wordText(bytes), padded].join('')
    heads.push(wordText(offset))
    tails.push(tail)
    offset += BigInt(tail.length / 2)
  }
  return `${aggregate3}${wordText(32n)}${wordText(BigInt(datas.length))}${heads.join('')}${tails.join('')}`
}

/** What each call returned, `null` for a call that reverted; `null` as a whole for an answer that cannot be. */
export function resultsOfAggregate(data: Hex, count: number): readonly (Hex | null)[] | null {
  const text = data.slice(2)
  const wordAt = (digit: number) => text.slice(digit, digit + digitsOfWord)
  if (wordAt(0) !== wordText(32n) || wordAt(digitsOfWord) !== wordText(BigInt(count))) return null
  const start = 2 * digitsOfWord
  const results: (Hex | null)[] = []
  let at = start + count * digitsOfWord
  for (let index = 0; index < count; index++) {
    if (wordAt(start + index * digitsOfWord) !== wordText(BigInt((at - start) / 2))) return null
    const success = wordAt(at)
    const length = lengthOf(wordAt(at + 2 * digitsOfWord))
    const content = at + 3 * digitsOfWord
    if (length === null || !/^0{63}[01]$/.test(success) || wordAt(at + digitsOfWord) !== wordText(64n)) return null
    const end = content + 2 * length
    const next = content + Math.ceil((2 * length) / digitsOfWord) * digitsOfWord
    if (next > text.length || !/^0*$/.test(text.slice(end, next))) return null
    results.push(success.endsWith('1') ? `0x${text.slice(content, end)}` : null)
    at = next
  }
  return at === text.length ? results : null
}

/** Bytes of one result; more than 2^24 cannot have come through. */
function lengthOf(word: string): number | null {
  return /^0{58}[0-9a-f]{6}$/.test(word) ? Number(`0x${word}`) : null
}
