/**
 * Finds the batch whose keys made a tap (spec §4.4, §5). Decrypts the PICC data with each metaRead key, keeps what reads as a PICC block (3
 * in 256 do by chance), derives the tag's key and lets the MAC decide. It stores nothing; see `replay-ledger.ts`.
 */
import { randomBytes } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { deriveFileKey } from '../keys/derivations.ts'
import type { KeyRing, TagBatch } from '../keys/batch.ts'
import { cmacOnce, createAesKey, wordsOf, type AesKey, type AesKeyRef } from './aes.ts'
import { macUnits, slowUnits, type SearchBudget } from './search-budget.ts'
import {
  isMacValid,
  isPiccTag,
  macInputBytes,
  readPicc,
  sessionVector,
  type CounterfeitReason,
  type PiccBlock,
} from './sun.ts'

export type Authenticated =
  | { readonly genuine: true; readonly batch: TagBatch; readonly uid: Uint8Array; readonly counter: number }
  | {
      readonly genuine: false
      readonly reason: CounterfeitReason
      /** The batch whose metaRead key made the block of an NXP chip, for the log only. A wrong key does so once in 65536 times. */
      readonly batchId?: string
    }
  /** No likely batch made the tap, and the others were not tried. It is no verdict. */
  | { readonly genuine: false; readonly reason: 'not_searched' }

/** `hint` is the link's parameter `b`. `maySearch` false: only the likely batches are tried. */
type AuthenticateOptions = { readonly hint?: string | undefined; readonly maySearch?: boolean | undefined }

/** `picc` has 16 bytes, `cmac` 8. */
export type Authenticate = (picc: Uint8Array, cmac: Uint8Array, options?: AuthenticateOptions) => Promise<Authenticated>

type FileKeyCache = ReturnType<typeof createFileKeyCache>

/**
 * Creates a cache of expanded file keys of tags that are slow to derive, at most `max` (about 1 kB each). The least recently used leaves
 * first, and is overwritten, because it signs for one tag (spec §5). A master is identified as an object, not by the id of its batch, so
 * that nothing derived from a replaced key is found again.
 */
export function createFileKeyCache(max = 10_000) {
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
    get: (master: AesKeyRef, uid: Uint8Array): AesKey | undefined => keys.get(nameOf(master, uid)),
    /** Takes over the key, and destroys it when it leaves. */
    set: (master: AesKeyRef, uid: Uint8Array, key: AesKey): void => {
      if (master.destroyed?.aborted === true) key.destroy()
      else keys.set(nameOf(master, uid), key)
    },
    size: () => keys.size,
  }
}

/**
 * Creates the check of a tap. The likely batches are tried first, at a cost that does not grow with the ring; a search among all others
 * and slow derivations of tags that are not known yet draw on `budget`, by default without limit. It throws only what a remote key store throws.
 */
export function createAuthenticate({
  keys,
  fileKeys = createFileKeyCache(),
  budget = unlimited,
}: {
  keys: Pick<KeyRing, 'candidates' | 'likely' | 'hit'>
  fileKeys?: FileKeyCache
  budget?: SearchBudget
}): Authenticate {
  return async (picc, cmac, { hint, maySearch = true } = {}) => {
    if (isZero(picc) || isZero(cmac)) return counterfeit('placeholders')
    let reason = 'unknown_batch' as CounterfeitReason
    let batchId: string | undefined
    // A wrong key yields a UID of another maker far more often than a chip has one. So these are checked last.
    const unusual: Candidate[] = []
    const words = wordsOf(picc)

    async function check({ batch, block }: Candidate): Promise<Authenticated | null> {
      if (!(await isSigned(batch, block.uid, block.counter, picc, cmac, fileKeys))) {
        if (reason !== 'bad_cmac') reason = block.form === 'uid and counter' ? 'bad_cmac' : 'bad_picc_tag'
        if (block.form === 'uid and counter' && block.uid[0] === nxpMaker) batchId = batch.id
        return null
      }
      // Genuine but misconfigured chips: their addresses could be replayed or belong to any tag of the batch.
      if (block.form === 'uid only') return counterfeit('counter_not_mirrored', batch.id)
      if (block.form === 'counter only') return counterfeit('uid_not_mirrored', batch.id)
      if (block.counter === 0) return counterfeit('counter_zero', batch.id)
      if (batch.status === 'revoked') return counterfeit('revoked_batch', batch.id)
      keys.hit(batch)
      return { genuine: true, batch, uid: block.uid, counter: block.counter }
    }

    async function tryBatches(batches: Iterable<TagBatch>, isPaid: (units: number) => boolean) {
      for (const batch of batches) {
        if (batch.meta.firstByte !== undefined && !isPiccTag(batch.meta.firstByte(words))) continue
        const decrypted = batch.meta.ecbDecrypt(picc)
        const block = readPicc(decrypted instanceof Uint8Array ? decrypted : await decrypted)
        if (block.form === 'other') continue
        if (block.uid?.[0] !== nxpMaker) {
          unusual.push({ batch, block })
          continue
        }
        if (!isPaid(macUnits)) return refuse(notSearched)
        const found = await checkSlowly({ batch, block })
        if (found !== null) return found
      }
      return null
    }

    /** A slow derivation is paid when it found nothing: genuine taps spend nothing, however many arrive at once. */
    async function checkSlowly(candidate: Candidate): Promise<Authenticated | null> {
      if (!isSlow(candidate, fileKeys)) return check(candidate)
      if (!maySearch || !budget.spend(0)) return refuse(notSearched)
      let found: Authenticated | null = null
      try {
        return (found = await check(candidate))
      } finally {
        if (found === null) budget.spend(slowUnits)
      }
    }

    /** The response time must not reveal whether one of our metaRead keys fitted. */
    function refuse(answer: Authenticated): Authenticated {
      if (reason !== 'bad_cmac') spendTimeOfOneMac(picc, cmac)
      return answer
    }

    const likely = keys.likely(hint)
    const found = await tryBatches(likely, () => true)
    if (found !== null) return found

    const all = keys.candidates()
    if (all.length > likely.length || unusual.length > 0) {
      let paid = 0
      const isPaid = (units: number) => {
        paid += units
        return maySearch && budget.spend(units)
      }
      const genuine = (answer: Authenticated) => {
        budget.refund(paid)
        return answer
      }
      if (!isPaid(all.length - likely.length)) return refuse(notSearched)
      const tried = new Set(likely)
      const rest = all.filter((batch) => !tried.has(batch))
      const late = await tryBatches(rest, isPaid)
      if (late !== null) return late === notSearched ? late : genuine(late)
      for (const candidate of unusual) {
        if (!isPaid(macUnits)) return refuse(notSearched)
        const checked = await checkSlowly(candidate)
        if (checked !== null) return checked === notSearched ? checked : genuine(checked)
      }
    }
    return refuse(counterfeit(reason, batchId))
  }
}

/** A batch whose metaRead key makes a PICC block of the link. */
type Candidate = { readonly batch: TagBatch; readonly block: Exclude<PiccBlock, { form: 'other' }> }

/** First byte of a UID: NXP by ISO/IEC 7816-6, the maker of every NTAG 424 DNA. */
const nxpMaker = 0x04

const unlimited: SearchBudget = { spend: () => true, refund: () => {} }

const notSearched = { genuine: false, reason: 'not_searched' } as const

/** A diversified key is derived from the UID, so that a block without one is cheap. */
function isSlow({ batch, block: { uid } }: Candidate, fileKeys: FileKeyCache): boolean {
  return uid !== null && isSlowToDerive(batch) && fileKeys.get(batch.fileMaster, uid) === undefined
}

async function isSigned(
  batch: TagBatch,
  uid: Uint8Array | null,
  counter: number | null,
  picc: Uint8Array,
  cmac: Uint8Array,
  fileKeys: FileKeyCache,
): Promise<boolean> {
  const vector = sessionVector(uid, counter)
  const input = macInputBytes(batch.macInput, picc)
  if (batch.derivation === 'direct') return isMacValid(await batch.fileMaster.cmac(vector), input, cmac)
  // A diversified key needs the UID, so a tap without one cannot be checked.
  if (uid === null) return false
  const isKept = isSlowToDerive(batch)
  const known = isKept ? fileKeys.get(batch.fileMaster, uid) : undefined
  if (known !== undefined) return isMacValid(known.cmac(vector), input, cmac)
  const bytes = deriveFileKey(batch, uid)
  const derived = bytes instanceof Uint8Array ? bytes : await bytes
  if (derived === null) return false
  const isValid = isMacValid(cmacOnce(derived, vector), input, cmac)
  // Only keys of tags whose MAC is valid are cached, so that forged taps cannot evict those of real tags.
  if (isValid && isKept) fileKeys.set(batch.fileMaster, uid, createAesKey(derived))
  derived.fill(0)
  return isValid
}

/** A key store elsewhere, and PBKDF2, take milliseconds. All others derive a key in less time than it takes to keep one. */
function isSlowToDerive({ derivation, fileMaster }: TagBatch): boolean {
  return derivation === 'sdm-backend-legacy' || fileMaster.secret === undefined
}

/** Derives a key, a session key and a MAC, over as many blocks as `isSigned` does. */
function spendTimeOfOneMac(picc: Uint8Array, cmac: Uint8Array): void {
  isMacValid(cmacOnce(randomMaster.cmac(diversified), picc), new Uint8Array(), cmac)
}

const randomMaster = createAesKey(randomBytes(16))
/** Two blocks, like the input of a diversification by AN10922. */
const diversified = randomBytes(32)

function isZero(bytes: Uint8Array): boolean {
  return bytes.every((byte) => byte === 0)
}

function counterfeit(reason: CounterfeitReason, batchId?: string): Authenticated {
  return { genuine: false, reason, ...(batchId !== undefined && { batchId }) }
}
