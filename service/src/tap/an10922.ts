/**
 * Key diversification of NXP AN10922 §2.2 for AES-128, within the lengths where it equals CMAC(master, 01 || M):
 * 16 to 31 bytes. A shorter M is padded differently there, so it is refused here instead of giving another key.
 */
import type { AesKeyRef, Bytes } from './aes.ts'
import { join, textBytes } from './bytes.ts'

/** Derives a key from `master` for the diversification input `input`; throws a `RangeError` outside 16 to 31 bytes. */
export function an10922(master: Pick<AesKeyRef, 'cmac'>, input: Uint8Array): Bytes {
  if (input.length < 16 || input.length > 31) throw new RangeError('A diversification input has 16 to 31 bytes.')
  return master.cmac(join(aes128Constant, input))
}

/** M of a tag key: UID (7), the NDEF application's name (AID), the key's slot, the operator's system id (1 to 16 ASCII). */
export function diversificationInput(uid: Uint8Array, keyNo: number, systemId: string): Uint8Array {
  return join(uid, applicationId, [keyNo], textBytes(systemId))
}

const aes128Constant = [0x01]
const applicationId = [0xd2, 0x76, 0x00, 0x00, 0x85, 0x01, 0x01]
