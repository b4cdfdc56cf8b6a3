/**
 * Whether a block may hold logs of the contract: its header says so (Yellow Paper §4.4.1 `logsBloom`, 2048 bits, three for
 * each address). So most blocks need not be asked for their logs.
 */
import { keccak_256 } from '@noble/hashes/sha3.js'
import { hexToBytes } from '@noble/hashes/utils.js'
import { headerHash, type Hex } from '@touchstone/verdict'
import type { Block } from '../rpc/block.ts'

const bloomPattern = /^0x[0-9a-f]{512}$/
/** The root of no receipts at all. */
const noReceipts = '0x56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421'

/** True when in doubt: a header that cannot be checked, or one of a chain that leaves the filter empty. */
export function mayHoldLogsOf(contract: Hex): (block: Block) => boolean {
  const bits = bitsOf(contract)
  return ({ header, hash }) => {
    const { logsBloom, receiptsRoot } = header
    if (typeof logsBloom !== 'string' || !bloomPattern.test(logsBloom) || headerHash(header) !== hash) return true
    if (!/[1-9a-f]/.test(logsBloom.slice(2))) return receiptsRoot !== noReceipts
    return bits.every(([digit, mask]) => (parseInt(logsBloom.charAt(digit), 16) & mask) !== 0)
  }
}

/** Each bit as a hex digit of the filter's text and its mask there. Bit 0 is the lowest bit of the last byte. */
function bitsOf(contract: Hex): readonly (readonly [digit: number, mask: number])[] {
  const digest = keccak_256(hexToBytes(contract.slice(2)))
  return [0, 2, 4].map((at) => {
    const bit = (((digest[at] ?? 0) << 8) | (digest[at + 1] ?? 0)) & 2047
    return [513 - (bit >> 2), 1 << (bit & 3)]
  })
}
