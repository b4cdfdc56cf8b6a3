/**
 * Diagnosis of a URL that does not verify, for `tag doctor` (spec §4.4). It tries the usual mistakes: roles of the two keys, factory or
 * published keys, another derivation, slot or MAC input, missing mirrors. It reveals no key and no MAC.
 */
import { type AesKeyRef, createAesKey, embeddedKey } from '../sun/aes.ts'
import { utf8ToBytes } from '@noble/hashes/utils.js'
import { parseHex } from '../../lib/bytes.ts'
import { toHex } from '../bytes.ts'
import { type Derivation, derivations, deriveFileKey } from '../keys/derivations.ts'
import type { TagBatch } from '../keys/batch.ts'
import { publishedKeys } from '../keys/published.ts'
import { longestTapQuery, parseTapBytes, parseTapUrl } from '../parameters.ts'
import { isMacValid, type MacInput, macInputBytes, readPicc, sessionVector } from '../sun/sun.ts'

type Finding = Readonly<{ code: keyof typeof texts | 'placeholder_length'; text: string }>

/** `ok` means that this verifier accepts the tap, replay aside. The other fields are `null` when no key explains the URL. */
export type Diagnosis = Readonly<{
  ok: boolean
  findings: readonly Finding[]
  tagByte: string | null
  uid: string | null
  counter: number | null
  batchId: string | null
  /** `text` is everything in the URL from the block to the MAC. */
  macInput: MacInput | 'text' | null
  scheme: Derivation | null
  fileKeyNo: number | null
}>

type Suspects = Readonly<{ batches: readonly TagBatch[]; uids?: readonly Uint8Array[]; onUid?: () => void }>

/**
 * Diagnoses a URL without network and database. `uids` are UIDs that the operator suspects, for URLs that hide them. The keys of each take
 * milliseconds; `onUid` is called before them, and may throw.
 */
export async function diagnoseTagUrl(address: string, { batches, uids = [], onUid }: Suspects): Promise<Diagnosis> {
  const { findings, readings } = readAddress(address)
  const metas = await metaSuspects(batches, uids, onUid)
  let opened: TagBatch | null = null
  for (const reading of readings) {
    for (const meta of metas) {
      const plain = await meta.key.ecbDecrypt(reading.picc)
      const block = readPicc(plain)
      if (block.form === 'other') continue
      const files = await fileSuspects(batches, block.uid === null ? uids : [block.uid], onUid)
      const match = await bestMatch(reading, meta, files, block)
      if (match !== null) {
        const found = [...findings, ...match.mistakes]
        return { ok: found.length === 0, findings: found, tagByte: toHex(plain.subarray(0, 1)), ...match.facts }
      }
      // Any key decrypts one block in 256 to this form, and one in 65,536 to a UID of NXP besides.
      if (meta.role === 'meta' && block.form === 'uid and counter' && block.uid?.[0] === 4) opened ??= meta.batch
    }
  }
  const rest = readings.length === 0 ? [] : [finding(opened === null ? 'unknown_keys' : 'unknown_file_key')]
  return { ...nothingKnown, batchId: opened?.id ?? null, findings: [...findings, ...rest] }
}

const texts = {
  not_an_address: `This is not a URL with a query of at most ${longestTapQuery} characters.`,
  nothing_mirrored: 'The address carries no PICC block of 32 and no MAC of 16 hex digits.',
  repeated_parameter: 'The address carries picc or cmac more than once: the verifier accepts each once.',
  placeholders: 'The address still shows placeholder zeros: SDM is off, or the chip mirrors to other offsets.',
  parameter_names: 'The parameters have other names; this verifier reads picc and cmac.',
  wrong_offsets:
    'The mirrored values do not start right after picc= and cmac=: the offsets in the file settings do not fit the address.',
  swapped_keys: 'The two keys have changed roles: the chip encrypts with the file key and signs with the metaRead key.',
  one_key_twice: 'The chip has the metaRead key in both slots.',
  factory_keys: 'The chip still has a factory key (all zeros) in slot 1 or 2.',
  published_keys: 'The chip has a key from a published example.',
  wrong_derivation: 'The file key was derived by another scheme than the batch says.',
  wrong_slot: 'The file key was derived for another key slot than the batch says.',
  mixed_batches: 'The chip has the metaRead key of one batch and the file key of another.',
  wrong_mac_input: 'The MAC covers another input than the batch says: SDMMACInputOffset does not fit.',
  counter_not_mirrored: 'The chip does not mirror its counter (tag byte 87): addresses could be replayed.',
  uid_not_mirrored: 'The chip does not mirror its UID (tag byte 40): its key cannot be found.',
  counter_zero: 'The counter is 0; a chip counts before its first read.',
  revoked_batch: 'The batch is revoked.',
  unknown_file_key:
    'The metaRead key opens the block, but no key explains the MAC: an altered address, or another file key.',
  unknown_keys:
    'No key of these batches, no factory key and no published key explains the address. If keys may be swapped, give the UID.',
} as const

type Suspect = Readonly<{
  role: 'meta' | 'file' | 'factory' | 'published'
  key: AesKeyRef
  batch: TagBatch | null
  scheme: Derivation | null
  keyNo: number | null
}>

async function metaSuspects(
  batches: readonly TagBatch[],
  uids: readonly Uint8Array[],
  onUid?: () => void,
): Promise<readonly Suspect[]> {
  const swapped = (await fileSuspects(batches, uids, onUid)).filter(({ role }) => role === 'file')
  return [...batches.map(metaOf), ...swapped, ...knownKeys()]
}

/** Lists every key that could have signed for one of these UIDs. */
async function fileSuspects(
  batches: readonly TagBatch[],
  uids: readonly Uint8Array[],
  onUid = () => {},
): Promise<readonly Suspect[]> {
  const suspects: Suspect[] = []
  for (const batch of batches) {
    for (const uid of uids) {
      onUid()
      for (const scheme of [batch.derivation, ...derivations.filter((other) => other !== batch.derivation)]) {
        const keyNos =
          scheme === 'an10922'
            ? [batch.fileKeyNo, ...[0, 1, 2, 3, 4].filter((no) => no !== batch.fileKeyNo)]
            : [batch.fileKeyNo]
        for (const keyNo of keyNos) {
          const key = await derived({ ...batch, derivation: scheme, fileKeyNo: keyNo }, uid)
          if (key !== null) suspects.push({ role: 'file', key, batch, scheme, keyNo })
        }
      }
    }
    if (uids.length === 0)
      suspects.push({ role: 'file', key: batch.fileMaster, batch, scheme: 'direct', keyNo: batch.fileKeyNo })
    suspects.push(metaOf(batch))
  }
  return [...suspects.filter(({ key }) => isAes128(key)), ...knownKeys()]
}

/** Returns whether a chip can have a key: the master of `sdm-backend` may have 32 bytes. A key in a token has 16. */
function isAes128(key: AesKeyRef): boolean {
  return (key.secret?.().length ?? 16) === 16
}

function metaOf(batch: TagBatch): Suspect {
  return { role: 'meta', key: batch.meta, batch, scheme: null, keyNo: null }
}

function knownKeys(): Suspect[] {
  return publishedKeys().map((key, index) => ({
    role: index === 0 ? 'factory' : 'published',
    key: embeddedKey(key),
    batch: null,
    scheme: null,
    keyNo: null,
  }))
}

/** Returns `null` when the scheme cannot be applied to this master. */
async function derived(batch: TagBatch, uid: Uint8Array): Promise<AesKeyRef | null> {
  try {
    const key = await deriveFileKey(batch, uid)
    return key === null ? batch.fileMaster : createAesKey(key)
  } catch (error) {
    if (error instanceof RangeError) return null
    throw error
  }
}

type Block = Exclude<ReturnType<typeof readPicc>, { form: 'other' }>

/** Finds the combination of file key and MAC input that fits with the fewest mistakes. */
async function bestMatch(reading: Reading, meta: Suspect, files: readonly Suspect[], block: Block) {
  let best: { mistakes: Finding[]; facts: Omit<Diagnosis, 'ok' | 'findings' | 'tagByte'> } | null = null
  const vector = sessionVector(block.uid, block.counter)
  for (const file of files) {
    for (const macInput of ['empty', 'picc', 'text'] as const) {
      const input = macInput === 'text' ? utf8ToBytes(reading.between) : macInputBytes(macInput, reading.picc)
      if (!isMacValid(await file.key.cmac(vector), input, reading.cmac)) continue
      const found = mistakes(meta, file, macInput, block)
      if (best !== null && best.mistakes.length <= found.length) continue
      const facts = {
        uid: block.uid === null ? null : toHex(block.uid),
        counter: block.counter,
        batchId: file.batch?.id ?? meta.batch?.id ?? null,
        macInput,
        scheme: file.scheme,
        fileKeyNo: file.keyNo,
      }
      best = { mistakes: found, facts }
    }
  }
  return best
}

function mistakes(meta: Suspect, file: Suspect, macInput: MacInput | 'text', block: Block): Finding[] {
  const batch = file.batch ?? meta.batch
  const hasTwoBatches = meta.batch !== null && file.batch !== null && meta.batch.id !== file.batch.id
  const isDerived = file.role === 'file' && file.batch !== null
  const checks: readonly [boolean, keyof typeof texts][] = [
    [meta.role === 'file', 'swapped_keys'],
    [meta.role === 'meta' && file.role === 'meta', 'one_key_twice'],
    [meta.role === 'factory' || file.role === 'factory', 'factory_keys'],
    [meta.role === 'published' || file.role === 'published', 'published_keys'],
    [isDerived && file.scheme !== file.batch.derivation, 'wrong_derivation'],
    [
      isDerived &&
        file.scheme === 'an10922' &&
        file.scheme === file.batch.derivation &&
        file.keyNo !== file.batch.fileKeyNo,
      'wrong_slot',
    ],
    [hasTwoBatches, 'mixed_batches'],
    [batch === null ? macInput === 'text' : macInput !== batch.macInput, 'wrong_mac_input'],
    [block.form === 'uid only', 'counter_not_mirrored'],
    [block.form === 'counter only', 'uid_not_mirrored'],
    [block.counter === 0, 'counter_zero'],
    [batch?.status === 'revoked', 'revoked_batch'],
  ]
  return checks.filter(([isSo]) => isSo).map(([, code]) => finding(code))
}

function finding(code: keyof typeof texts): Finding {
  return { code, text: texts[code] }
}

const nothingKnown = {
  ok: false,
  tagByte: null,
  uid: null,
  counter: null,
  batchId: null,
  macInput: null,
  scheme: null,
  fileKeyNo: null,
} as const

/** A possible tap. `between` is the text from PICC block to MAC, which a chip may feed into its MAC. */
type Reading = Readonly<{ picc: Uint8Array; cmac: Uint8Array; between: string }>

/**
 * Reads the text of the URL. Returns findings about template and mirror offsets that need no key, and the pairs of hex that could be PICC
 * block and MAC, likeliest first.
 */
function readAddress(address: string): { findings: readonly Finding[]; readings: readonly Reading[] } {
  if (!URL.canParse(address) || new URL(address).search.length > longestTapQuery + 1)
    return { findings: [finding('not_an_address')], readings: [] }
  const given = parseTapUrl(address)
  const isRepeated = [given.picc, given.cmac].some((values) => Array.isArray(values) && values.length > 1)
  const repeated = isRepeated ? [finding('repeated_parameter')] : []
  const picc = valueOf(address, 'picc')
  const cmac = valueOf(address, 'cmac')
  const isPlain =
    picc !== null && cmac !== null && parseHex(picc.text)?.length === 16 && parseHex(cmac.text)?.length === 8
  const tap = isPlain ? reading(address, picc.at, cmac.at) : parseTapBytes(address)
  if (tap !== null) {
    const isBlank = [tap.picc, tap.cmac].some((bytes) => bytes.every((byte) => byte === 0))
    if (isBlank) return { findings: [...repeated, finding('placeholders')], readings: [] }
    return { findings: repeated, readings: [{ between: '', ...tap }] }
  }
  const readings = allReadings(address)
  if (isRepeated) return { findings: repeated, readings }
  if (readings.length === 0)
    return { findings: [finding(/0{16}/.test(address) ? 'placeholders' : 'nothing_mirrored')], readings }
  const hasOtherNames =
    (picc === null || cmac === null) && /=[0-9a-fA-F]{32}(&|$)/.test(address) && /=[0-9a-fA-F]{16}(&|#|$)/.test(address)
  return {
    findings: [placeholderLength(picc?.text) ?? finding(hasOtherNames ? 'parameter_names' : 'wrong_offsets')],
    readings,
  }
}

function valueOf(address: string, name: string): { text: string; at: number } | null {
  const [before, text] = new RegExp(`^[^?#]*\\?(?:[^#]*?&)??${name}=([^&#]*)`).exec(address) ?? []
  return before === undefined || text === undefined ? null : { text, at: before.length - text.length }
}

/**
 * Detects a placeholder of another length. The chip writes 32 characters, so a shorter one loses the text after it and a longer one keeps
 * zeros.
 */
function placeholderLength(value: string | undefined): Finding | null {
  if (value === undefined || !/^[0-9A-F]{32}/.test(value)) return null
  const rest = value.slice(32)
  const eaten = [1, 2, 3, 4, 5].find((count) => rest.startsWith('&cmac='.slice(count)))
  const length = eaten !== undefined ? 32 - eaten : /^0+$/.test(rest) ? 32 + rest.length : null
  if (length === null) return null
  return { code: 'placeholder_length', text: `The picc placeholder has ${length} characters instead of 32.` }
}

/** Lists every 32 and every 16 hex digits that do not overlap, because wrong offsets put them anywhere. */
function allReadings(address: string): Reading[] {
  const start = address.indexOf('/', 8)
  const runs = [...address.matchAll(/[0-9a-fA-F]{16,}/g)].filter(({ index }) => start > 0 && index > start)
  const windows = (digits: number) =>
    runs.flatMap(({ 0: run, index }) => {
      const count = Math.min(run.length, 80) - digits + 1
      return count < 1 ? [] : Array.from({ length: count }, (_, shift) => index + shift)
    })
  const readings: Reading[] = []
  const macs = windows(16)
  for (const at of windows(32))
    for (const macAt of macs) {
      if (macAt < at + 32 && at < macAt + 16) continue
      if (readings.push(reading(address, at, macAt)) === 10_000) return readings
    }
  return readings
}

function reading(address: string, piccAt: number, macAt: number): Reading {
  const bytes = (at: number, digits: number) => parseHex(address.slice(at, at + digits)) ?? new Uint8Array(digits / 2)
  return { picc: bytes(piccAt, 32), cmac: bytes(macAt, 16), between: address.slice(piccAt, Math.max(piccAt, macAt)) }
}
