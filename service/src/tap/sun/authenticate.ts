/**
 * Finds the batch whose keys made a tap (spec §4.4, §5): decrypts the PICC data with each metaRead key, keeps what reads as a PICC
 * block (1 in 256 does by chance), derives the tag's key and lets the MAC decide. It stores nothing; see `replay-ledger.ts`.
 */
import { randomBytes } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { an10922, deriveFileKey, diversificationInput } from '../keys/derivations.ts'
import type { KeyRing, TagBatch } from '../keys/batch.ts'
import { createAesKey, type AesKey, type AesKeyRef } from './aes.ts'
import { isMacValid, macInputBytes, readPicc, sessionVector, type CounterfeitReason } from './sun.ts'

export type Authenticated =
  | { readonly genuine: true; readonly batch: TagBatch; readonly uid: Uint8Array; readonly counter: number }
  | { readonly genuine: false; readonly reason: CounterfeitReason }

/** `picc` has 16 bytes, `cmac` 8. */
export type Authenticate = (picc: Uint8Array, cmac: Uint8Array) => Promise<Authenticated>

/** Expanded file keys of tags by the master that they were derived from, and UID. The least recently used leaves first. */
export type FileKeyCache = Readonly<{
  get: (master: AesKeyRef, uid: Uint8Array) => AesKey | undefined
  /** Takes over the key, and destroys it when it leaves. */
  set: (master: AesKeyRef, uid: Uint8Array, key: AesKey) => void
  size: () => number
}>

/**
 * Creates a cache of at most `max` keys (about 1 kB each). A key that leaves is overwritten, because it signs for one tag (spec §5).
 * A master is identified as an object, not by the id of its batch, so that nothing derived from a replaced key is found again.
 */
export function createFileKeyCache(max = 10_000): FileKeyCache {
  const keys = new LRUCache<string, AesKey>({ max, dispose: (key) => key.destroy() })
  const prefixes = new WeakMap<AesKeyRef, string>()
  let masters = 0
  function prefixOf(master: AesKeyRef): string {
    const known = prefixes.get(master)
    if (known !== undefined) return known
    const prefix = `${(masters += 1)} `
    prefixes.set(master, prefix)
    master.destroyed?.addEventListener('abort', () => forget(prefix), { once: true })
    return prefix
  }
  function forget(prefix: string): void {
    for (const name of Array.from(keys.keys()).filter((each) => each.startsWith(prefix))) keys.delete(name)
  }
  const nameOf = (master: AesKeyRef, uid: Uint8Array) => prefixOf(master) + String.fromCharCode(...uid)
  return {
    get: (master, uid) => keys.get(nameOf(master, uid)),
    set: (master, uid, key) => {
      if (master.destroyed?.aborted === true) key.destroy()
      else keys.set(nameOf(master, uid), key)
    },
    size: () => keys.size,
  }
}

/**
 * Creates the check of a tap. It throws only what a remote key store throws.
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
  const known = uid === null ? undefined : fileKeys?.get(batch.fileMaster, uid)
  if (known !== undefined) return isMacValid(known.cmac(vector), input, cmac)
  if (batch.derivation === 'direct') return isMacValid(await batch.fileMaster.cmac(vector), input, cmac)
  // A diversified key needs the UID, so a tap without one cannot be checked.
  if (uid === null) return false
  const derived = await deriveFileKey(batch, uid)
  if (derived === null) return false
  const key = createAesKey(derived)
  derived.fill(0)
  const isValid = isMacValid(key.cmac(vector), input, cmac)
  // Only keys of tags whose MAC is valid are cached, so that forged taps cannot evict those of real tags.
  if (isValid && fileKeys !== null) fileKeys.set(batch.fileMaster, uid, key)
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
