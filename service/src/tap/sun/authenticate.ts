/**
 * Finds the batch whose keys made a tap (spec §4.4, §5): decrypts the PICC data with each metaRead key, keeps what reads as a PICC
 * block (1 in 256 does by chance), derives the tag's key and lets the MAC decide. It stores nothing; see `replay-ledger.ts`.
 */
import { randomBytes } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { an10922, deriveFileKey, diversificationInput } from '../keys/derivations.ts'
import type { KeyRing, TagBatch } from '../keys/batch.ts'
import { createAesKey, type AesKey } from './aes.ts'
import { isMacValid, macInputBytes, readPicc, sessionVector, type CounterfeitReason } from './sun.ts'

export type Authenticated =
  | { readonly genuine: true; readonly batch: TagBatch; readonly uid: Uint8Array; readonly counter: number }
  | { readonly genuine: false; readonly reason: CounterfeitReason }

/** `picc` has 16 bytes, `cmac` 8. */
export type Authenticate = (picc: Uint8Array, cmac: Uint8Array) => Promise<Authenticated>

/** Expanded file keys of tags by batch and UID, least recently used out first. */
type FileKeyCache = LRUCache<string, AesKey>

/** Creates a cache of at most `max` keys (about 1 kB each). A key that leaves is overwritten, because it signs for one tag (spec §5). */
export function createFileKeyCache(max = 10_000): FileKeyCache {
  return new LRUCache({ max, dispose: (key) => key.destroy() })
}

/**
 * Creates the check of a tap. `fileKeys` belong to these batches: other keys under the same ids need another cache.
 * It throws only what a remote key store throws.
 */
export function createAuthenticate({
  keys,
  fileKeys = createFileKeyCache(),
}: {
  keys: Pick<KeyRing, 'candidates' | 'hit'>
  fileKeys?: FileKeyCache | null
}): Authenticate {
  return async (picc, cmac) => {
    if (isZero(picc) || isZero(cmac)) return counterfeit('placeholders')
    let reason: CounterfeitReason = 'unknown_batch'
    for (const batch of keys.candidates()) {
      const decrypted = batch.meta.ecbDecrypt(picc)
      const block = readPicc(decrypted instanceof Uint8Array ? decrypted : await decrypted)
      if (block.form === 'other') continue
      if (!(await isSigned(batch, block.uid, block.counter, picc, cmac, fileKeys))) {
        if (reason !== 'bad_cmac') reason = block.form === 'uid and counter' ? 'bad_cmac' : 'bad_picc_tag'
        continue
      }
      // Genuine but misconfigured chips: their addresses could be replayed or belong to any tag of the batch.
      if (block.form === 'uid only') return counterfeit('counter_not_mirrored')
      if (block.form === 'counter only') return counterfeit('uid_not_mirrored')
      if (block.counter === 0) return counterfeit('counter_zero')
      if (batch.status === 'revoked') return counterfeit('revoked_batch')
      keys.hit(batch)
      return { genuine: true, batch, uid: block.uid, counter: block.counter }
    }
    // The response time must not reveal whether one of our metaRead keys fitted.
    if (reason !== 'bad_cmac') spendTimeOfOneMac(picc, cmac)
    return counterfeit(reason)
  }
}

async function isSigned(
  batch: TagBatch,
  uid: Uint8Array | null,
  counter: number | null,
  picc: Uint8Array,
  cmac: Uint8Array,
  fileKeys: FileKeyCache | null,
): Promise<boolean> {
  const vector = sessionVector(uid, counter)
  const input = macInputBytes(batch.macInput, picc)
  const name = uid === null ? null : `${batch.id} ${String.fromCharCode(...uid)}`
  const known = name === null ? undefined : fileKeys?.get(name)
  if (known !== undefined) return isMacValid(known.cmac(vector), input, cmac)
  if (batch.derivation === 'direct') return isMacValid(await batch.fileMaster.cmac(vector), input, cmac)
  // A diversified key needs the UID, so a tap without one cannot be checked.
  if (uid === null || name === null) return false
  const derived = await deriveFileKey(batch, uid)
  if (derived === null) return false
  const key = createAesKey(derived)
  derived.fill(0)
  const isValid = isMacValid(key.cmac(vector), input, cmac)
  // Only keys of tags whose MAC is valid are cached, so that forged taps cannot evict those of real tags.
  if (isValid && fileKeys !== null) fileKeys.set(name, key)
  else key.destroy()
  return isValid
}

function spendTimeOfOneMac(picc: Uint8Array, cmac: Uint8Array): void {
  const uid = picc.slice(0, 7)
  const derived = an10922(randomMaster, diversificationInput(uid, 2, 'touchstone'))
  if (!(derived instanceof Uint8Array)) return
  const key = createAesKey(derived)
  isMacValid(key.cmac(sessionVector(uid, 1)), new Uint8Array(0), cmac)
  key.destroy()
}

const randomMaster = createAesKey(randomBytes(16))

function isZero(bytes: Uint8Array): boolean {
  return bytes.every((byte) => byte === 0)
}

function counterfeit(reason: CounterfeitReason): Authenticated {
  return { genuine: false, reason }
}
