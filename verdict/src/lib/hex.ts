/** Hex text, 32-byte ABI words and keccak256: the few byte tools that every file here shares. */
import { keccak_256 } from '@noble/hashes/sha3.js'
import { bytesToHex, hexToBytes } from '@noble/hashes/utils.js'

/**
 * `0x` and an even number of hex digits for bytes, or a JSON-RPC quantity (Ethereum JSON-RPC specification, «Hex
 * encoding»).
 */
export type Hex = `0x${string}`

/** Is this `0x` and exactly `size` bytes in lower case? */
export function isBytes(value: unknown, size: number): value is Hex {
  return typeof value === 'string' && value.length === 2 + 2 * size && /^0x[0-9a-f]*$/.test(value)
}

/** The bytes of `0x…` text of either case, or `null` when it is not whole bytes in hex. */
export function bytesOf(value: unknown): Uint8Array | null {
  if (typeof value !== 'string' || value.length % 2 !== 0 || !/^0x[0-9a-fA-F]*$/.test(value)) return null
  return hexToBytes(value.slice(2))
}

/**
 * Returns JSON of a node with its texts of hex in lower case, as deep as a node nests them. Nodes may write either case, and values are
 * compared as text.
 */
export function lowerCaseHex(value: unknown, levels = 6): unknown {
  if (typeof value === 'string') return /^0x[0-9a-fA-F]*$/.test(value) ? value.toLowerCase() : value
  if (typeof value !== 'object' || value === null || levels === 0) return value
  if (Array.isArray(value)) return value.map((item) => lowerCaseHex(item, levels - 1))
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, lowerCaseHex(item, levels - 1)]))
}

/** Lower-case `0x…` text of bytes. */
export function hexOf(bytes: Uint8Array): Hex {
  return `0x${bytesToHex(bytes)}`
}

/** The number that big-endian bytes stand for; no bytes are zero. */
export function numberOf(bytes: Uint8Array): bigint {
  return bytes.length === 0 ? 0n : BigInt(hexOf(bytes))
}

/** keccak256 as Ethereum uses it: the original padding, not FIPS 202 SHA3-256. */
export function keccak256(bytes: Uint8Array): Hex {
  return hexOf(keccak_256(bytes))
}

/**
 * `abi.encode` of static values below 2^256: one 32-byte big-endian word each (Solidity ABI specification, «Formal
 * specification of the encoding»).
 */
export function abiEncode(...values: bigint[]): Uint8Array {
  return hexToBytes(values.map(word).join(''))
}

/** A value as 64 hex digits without `0x`. */
export function word(value: bigint): string {
  return value.toString(16).padStart(64, '0')
}
