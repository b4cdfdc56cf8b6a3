/**
 * Finds the batch whose keys made a tap (spec §4.4, §5): decrypts with each metaRead key, keeps what reads as a PICC
 * block (1 in 256 does by chance), derives the tag's key and lets the MAC decide. No storage, no replay: that is `counter.ts`.
 */
import { randomBytes } from 'node:crypto'
import { createAesKey } from './aes.ts'
import { an10922, diversificationInput } from './an10922.ts'
import { fileKeyOf } from './derivations.ts'
import { createFileKeyCache, type FileKeyCache } from './file-key-cache.ts'
import type { TagBatch, TagKeyProvider } from './keys.ts'
import { macHolds, macInputBytes, readPicc, sessionVector, type CounterfeitReason } from './sun.ts'

export type Authenticated =
  | { readonly genuine: true; readonly batch: TagBatch; readonly uid: Uint8Array; readonly counter: number }
  | { readonly genuine: false; readonly reason: CounterfeitReason }

/** `picc` has 16 bytes, `cmac` 8. */
export type Authenticate = (picc: Uint8Array, cmac: Uint8Array, hint?: string) => Promise<Authenticated>

/** `fileKeys` belong to these batches: other keys under the same ids need another cache. Throws only what a remote key store throws. */
export function createAuthenticate({
  keys,
  fileKeys = createFileKeyCache(),
}: {
  keys: TagKeyProvider
  fileKeys?: FileKeyCache
}): Authenticate {
  return async (picc, cmac, hint) => {
    if (isZero(picc) || isZero(cmac)) return counterfeit('placeholders')
    let reason: CounterfeitReason = 'unknown_batch'
    for (const batch of keys.candidates(hint)) {
      const decrypted = batch.meta.ecbDecrypt(picc)
      const block = readPicc(decrypted instanceof Uint8Array ? decrypted : await decrypted)
      if (block.form === 'other') continue
      const holds = await signed(batch, block.uid, block.counter, picc, cmac, fileKeys)
      if (!holds) {
        if (reason !== 'bad_cmac') reason = block.form === 'uid and counter' ? 'bad_cmac' : 'bad_picc_tag'
        continue
      }
      // Genuine but misconfigured chips: their addresses could be replayed or belong to any tag of the batch.
      if (block.form === 'uid only') return counterfeit('counter_not_mirrored')
      if (block.form === 'counter only') return counterfeit('uid_not_mirrored')
      if (block.counter === 0) return counterfeit('counter_zero')
      if (batch.status === 'revoked') return counterfeit('revoked_batch')
      keys.hit?.(batch)
      return { genuine: true, batch, uid: block.uid, counter: block.counter }
    }
    // The time of an answer must not tell whether one of our metaRead keys fitted.
    if (reason !== 'bad_cmac') pretend(picc, cmac)
    return counterfeit(reason)
  }
}

async function signed(
  batch: TagBatch,
  uid: Uint8Array | null,
  counter: number | null,
  picc: Uint8Array,
  cmac: Uint8Array,
  fileKeys: FileKeyCache,
): Promise<boolean> {
  const vector = sessionVector(uid, counter)
  const input = macInputBytes(batch.macInput, picc)
  const known = uid === null ? undefined : fileKeys.get(batch, uid)
  if (known !== undefined) return macHolds(known.cmac(vector), input, cmac)
  if (batch.derivation === 'direct') return macHolds(await batch.fileMaster.cmac(vector), input, cmac)
  // A diversified key needs the UID, so a tap without one cannot be checked.
  if (uid === null) return false
  const derived = await fileKeyOf(batch, uid)
  if (derived === null) return false
  const key = createAesKey(derived)
  derived.fill(0)
  const holds = macHolds(key.cmac(vector), input, cmac)
  if (holds) fileKeys.put(batch, uid, key)
  else key.destroy()
  return holds
}

function pretend(picc: Uint8Array, cmac: Uint8Array): void {
  const uid = picc.slice(0, 7)
  const derived = an10922(pretendMaster, diversificationInput(uid, 2, 'touchstone'))
  if (!(derived instanceof Uint8Array)) return
  const key = createAesKey(derived)
  macHolds(key.cmac(sessionVector(uid, 1)), new Uint8Array(0), cmac)
  key.destroy()
}

const pretendMaster = createAesKey(randomBytes(16))

function isZero(bytes: Uint8Array): boolean {
  return bytes.every((byte) => byte === 0)
}

function counterfeit(reason: CounterfeitReason): Authenticated {
  return { genuine: false, reason }
}
