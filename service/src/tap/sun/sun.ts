/**
 * SUN, the secure unique message of an NTAG 424 DNA (spec §4.4, §5; NXP AN12196 §3): the decrypted PICC block and the MAC over it.
 * These are pure functions over bytes; `authenticate.ts` chooses the keys.
 */
import { cmacOnce } from './aes.ts'
import { utf8ToBytes } from '@noble/hashes/utils.js'
import { constantTimeEqual } from '../../lib/bytes.ts'
import { toHex, littleEndian } from '../bytes.ts'

/** The input of the chip's MAC: empty, or its own PICC text (AN12196 §3.4.4.2, chosen by SDMMACInputOffset). */
export const macInputs = ['empty', 'picc'] as const
export type MacInput = (typeof macInputs)[number]

/** The reason why a tap is not genuine, for the log and metrics only. The public answer says `counterfeit`. */
export type CounterfeitReason =
  | 'unknown_batch'
  | 'bad_cmac'
  | 'bad_picc_tag'
  | 'counter_zero'
  | 'revoked_batch'
  | 'other_batch'
  | 'placeholders'
  | 'counter_not_mirrored'
  | 'uid_not_mirrored'

/** A PICC block by its tag byte. Chips can send the first three forms; only the first is accepted. */
export type PiccBlock =
  | { readonly form: 'uid and counter'; readonly uid: Uint8Array; readonly counter: number }
  | { readonly form: 'uid only'; readonly uid: Uint8Array; readonly counter: null }
  | { readonly form: 'counter only'; readonly uid: null; readonly counter: number }
  | { readonly form: 'other' }

/** Returns whether a PICC block may begin with this byte. It alone rules out most wrong keys. */
export function isPiccTag(byte: number): boolean {
  return byte === 0xc7 || byte === 0x87 || byte === 0x40
}

/** Parses a decrypted PICC block: tag byte, UID (7), counter (3, least significant first), random padding (ignored). */
export function readPicc(plain: Uint8Array): PiccBlock {
  switch (plain[0] ?? 0) {
    case 0xc7:
      return { form: 'uid and counter', uid: plain.slice(1, 8), counter: counterAt(plain, 8) }
    case 0x87:
      return { form: 'uid only', uid: plain.slice(1, 8), counter: null }
    case 0x40:
      return { form: 'counter only', uid: null, counter: counterAt(plain, 1) }
    default:
      return other
  }
}

/** Returns SV2 of AN12196 §3.3: the constant, the mirrored values, then zeros to 16 bytes. */
export function sessionVector(uid: Uint8Array | null, counter: number | null): Uint8Array {
  const vector = new Uint8Array(16)
  vector.set(sessionMacConstant)
  if (uid !== null) vector.set(uid, 6)
  if (counter !== null) vector.set(littleEndian(counter, 3), uid === null ? 6 : 13)
  return vector
}

/** Returns the bytes that the MAC covers. The chip mirrors upper-case hex, whatever the case in the request. */
export function macInputBytes(kind: MacInput, picc: Uint8Array): Uint8Array {
  return kind === 'empty' ? nothing : utf8ToBytes(`${toHex(picc)}&cmac=`)
}

/** Returns whether `cmac` is the MAC of this session key over this input, in constant time. */
export function isMacValid(sessionKey: Uint8Array, input: Uint8Array, cmac: Uint8Array): boolean {
  return constantTimeEqual(sunMac(sessionKey, input), cmac)
}

/** Computes the 8-byte MAC as the chip does. The verifier compares it (`isMacValid`) and never returns it. */
export function sunMac(sessionKey: Uint8Array, input: Uint8Array): Uint8Array {
  return oddBytes(cmacOnce(sessionKey, input))
}

/** AN12196 truncates a 16-byte MAC to its odd-indexed bytes, not to its first half. */
export function oddBytes(mac: Uint8Array): Uint8Array {
  const odd = new Uint8Array(mac.length >> 1)
  for (let index = 0; index < odd.length; index++) odd[index] = mac[2 * index + 1] ?? 0
  return odd
}

function counterAt(plain: Uint8Array, at: number): number {
  return (plain[at] ?? 0) | ((plain[at + 1] ?? 0) << 8) | ((plain[at + 2] ?? 0) << 16)
}

const other = { form: 'other' } as const
const nothing = new Uint8Array(0)
const sessionMacConstant = [0x3c, 0xc3, 0x00, 0x01, 0x00, 0x80]
