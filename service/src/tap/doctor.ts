/**
 * `tag doctor` (spec §4.4): says why an address does not verify, by trying what people get wrong: roles of the two keys,
 * factory or published keys, another derivation, slot or MAC input, mirrors that were left out. It names no key and no MAC.
 */
import { createAesKey, embeddedKey, type AesKeyRef } from './aes.ts'
import { hexOf, textBytes } from './bytes.ts'
import { derivations, fileKeyOf, type Derivation } from './derivations.ts'
import { readAddress, type AddressFinding, type Reading } from './doctor-address.ts'
import type { TagBatch } from './keys.ts'
import { publishedKeys } from './published-keys.ts'
import { macHolds, macInputBytes, readPicc, sessionVector, type MacInput } from './sun.ts'

type Finding = Readonly<{ code: AddressFinding['code'] | keyof typeof texts; text: string }>

/** `ok` means that this verifier accepts the tap, replay aside. The other fields are `null` where no key explained the address. */
export type Diagnosis = Readonly<{
  ok: boolean
  findings: readonly Finding[]
  tagByte: string | null
  uid: string | null
  counter: number | null
  batchId: string | null
  /** `text` is everything from the block to the MAC as it stands in the address. */
  macInput: MacInput | 'text' | null
  scheme: Derivation | null
  fileKeyNo: number | null
}>

/** `uids` are UIDs the operator suspects, for addresses that hide them. Needs no network and no database. */
export async function diagnose(
  address: string,
  { batches, uids = [] }: { batches: readonly TagBatch[]; uids?: readonly Uint8Array[] },
): Promise<Diagnosis> {
  const { findings, readings } = readAddress(address)
  const metas = await metaSuspects(batches, uids)
  let opened: TagBatch | null = null
  for (const reading of readings) {
    for (const meta of metas) {
      const plain = await meta.key.ecbDecrypt(reading.picc)
      const block = readPicc(plain)
      if (block.form === 'other') continue
      const files = await fileSuspects(batches, block.uid === null ? uids : [block.uid])
      const match = await bestMatch(reading, meta, files, block)
      if (match !== null) {
        const found = [...findings, ...match.mistakes]
        return { ok: found.length === 0, findings: found, tagByte: hexOf(plain.subarray(0, 1)), ...match.facts }
      }
      if (meta.role === 'meta' && block.form === 'uid and counter') opened ??= meta.batch
    }
  }
  const rest = readings.length === 0 ? [] : [finding(opened === null ? 'unknown_keys' : 'unknown_file_key')]
  return { ...nothingKnown, batchId: opened?.id ?? null, findings: [...findings, ...rest] }
}

const texts = {
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

async function metaSuspects(batches: readonly TagBatch[], uids: readonly Uint8Array[]): Promise<readonly Suspect[]> {
  const swapped = (await fileSuspects(batches, uids)).filter(({ role }) => role === 'file')
  return [...batches.map(metaOf), ...swapped, ...knownKeys()]
}

/** Every key that could have signed for one of these UIDs. */
async function fileSuspects(batches: readonly TagBatch[], uids: readonly Uint8Array[]): Promise<readonly Suspect[]> {
  const suspects: Suspect[] = []
  for (const batch of batches) {
    for (const uid of uids) {
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
  return [...suspects, ...knownKeys()]
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

/** `null` where the scheme cannot be applied to this master. */
async function derived(batch: TagBatch, uid: Uint8Array): Promise<AesKeyRef | null> {
  try {
    const key = await fileKeyOf(batch, uid)
    return key === null ? batch.fileMaster : createAesKey(key)
  } catch (error) {
    if (error instanceof RangeError) return null
    throw error
  }
}

type Block = Exclude<ReturnType<typeof readPicc>, { form: 'other' }>

/** The combination of file key and MAC input that fits with the fewest mistakes. */
async function bestMatch(reading: Reading, meta: Suspect, files: readonly Suspect[], block: Block) {
  let best: { mistakes: Finding[]; facts: Omit<Diagnosis, 'ok' | 'findings' | 'tagByte'> } | null = null
  const vector = sessionVector(block.uid, block.counter)
  for (const file of files) {
    for (const macInput of ['empty', 'picc', 'text'] as const) {
      const input = macInput === 'text' ? textBytes(reading.between) : macInputBytes(macInput, reading.picc)
      if (!(await holds(file.key, vector, input, reading))) continue
      const found = mistakes(meta, file, macInput, block)
      if (best !== null && best.mistakes.length <= found.length) continue
      const facts = {
        uid: block.uid === null ? null : hexOf(block.uid),
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

async function holds(key: AesKeyRef, vector: Uint8Array, input: Uint8Array, { cmac }: Reading): Promise<boolean> {
  try {
    return macHolds(await key.cmac(vector), input, cmac)
  } catch (error) {
    if (error instanceof RangeError) return false
    throw error
  }
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
