/**
 * Derivation of a tag's keys from the master of its batch and its UID (spec §4.4; decisions 4.4).
 * `an10922` is ours; the other schemes serve tags that were personalised by other systems.
 */
import { createHmac, pbkdf2 } from 'node:crypto'
import { promisify } from 'node:util'
import { type AesKeyRef, type Bytes, cmacOnce, createAesKey, twoBlockMac } from '../sun/aes.ts'
import { utf8ToBytes } from '@noble/hashes/utils.js'
import { parseHex } from '../../lib/bytes.ts'
import { join, littleEndian } from '../bytes.ts'

export const derivations = [
  'an10922',
  'an10922-systemid',
  'an10922-uid',
  'sdm-backend',
  'sdm-backend-legacy',
  'boltcard',
  'tagit-sdm',
  'direct',
] as const
export type Derivation = (typeof derivations)[number]

/** A derivation as a command names it. `boltcard-v1` is `boltcard` with version 1 of its card keys. */
export type Scheme = Readonly<{ derivation: Derivation; derivationVersion?: number }>

export const schemeNames = [...derivations.filter((name) => name !== 'boltcard'), 'boltcard-v1', 'boltcard-v2'] as const

/** Parses the name of a scheme, or returns `null`. Every version from 0 to 4294967295 of `boltcard-v` is accepted. */
export function parseScheme(name: string): Scheme | null {
  const [, version] = /^boltcard-v(\d{1,10})$/.exec(name) ?? []
  if (version !== undefined)
    return Number(version) <= 0xffffffff ? { derivation: 'boltcard', derivationVersion: Number(version) } : null
  const derivation = derivations.find((known) => known === name && known !== 'boltcard')
  return derivation === undefined ? null : { derivation }
}

/** Formats a scheme as `parseScheme` reads it. */
export function formatScheme({ derivation, derivationVersion = 0 }: Scheme): string {
  return derivation === 'boltcard' ? `boltcard-v${derivationVersion}` : derivation
}

/** Returns whether a scheme derives no metaRead key: then the batch stores one of its own. */
export function hasOwnMetaKey(derivation: Derivation): boolean {
  return derivation === 'direct' || derivation.startsWith('an10922')
}

/** The part of a `TagBatch` that a derivation reads. */
type DerivationInput = Readonly<{
  derivation: Derivation
  derivationVersion?: number
  systemId: string
  fileKeyNo: number
  fileMaster: AesKeyRef
}>

/**
 * Derives the tag's own fileRead key. Returns `null` for `direct`, where the stored key itself signs.
 * Throws a `RangeError` when a scheme needs the master's bytes and the key store does not reveal them.
 */
export function deriveFileKey(batch: DerivationInput, uid: Uint8Array): Bytes | null {
  return fileKeys[batch.derivation](batch, uid)
}

/** Derives the metaRead key of an import scheme from its master. Returns `null` for schemes with an independent metaRead key. */
export async function deriveMetaKey(derivation: Derivation, master: Uint8Array): Promise<Uint8Array | null> {
  switch (derivation) {
    case 'sdm-backend':
      return hmac(master, piccDataKey).subarray(0, 16)
    case 'sdm-backend-legacy':
      return pbkdf2Key(master, join(utf8ToBytes('key_no_uid'), [1]))
    case 'boltcard':
      return cmacOnce(master, boltcardConstant(0x77))
    case 'tagit-sdm':
      return master.slice()
    case 'an10922':
    case 'an10922-systemid':
    case 'an10922-uid':
    case 'direct':
      return null
  }
}

/** Derives the keys of a Bolt Card by its deterministic scheme: the card key, its id and the five slots. */
export async function boltcardKeys(
  issuer: AesKeyRef,
  uid: Uint8Array,
  version: number,
): Promise<{ cardKey: Uint8Array; id: Uint8Array; slots: Uint8Array[] }> {
  const cardKey = await boltcardCardKey(issuer, uid, version)
  const card = createAesKey(cardKey)
  const slot = (no: number) => card.cmac(boltcardConstant(no))
  const slots = [slot(0x76), await issuer.cmac(boltcardConstant(0x77)), slot(0x78), slot(0x79), slot(0x7a)]
  return { cardKey, id: await issuer.cmac(join(boltcardConstant(0x7b), uid)), slots }
}

const fileKeys: Readonly<Record<Derivation, (batch: DerivationInput, uid: Uint8Array) => Bytes | null>> = {
  an10922: ({ fileMaster, fileKeyNo, systemId }, uid) =>
    an10922(fileMaster, diversificationInput(uid, fileKeyNo, systemId)),
  'an10922-systemid': (batch, uid) => anyAn10922(batch, join(uid, systemIdBytes(batch.systemId) ?? [])),
  'an10922-uid': (batch, uid) => anyAn10922(batch, uid),
  'sdm-backend': (batch, uid) => {
    const master = masterBytes(batch)
    const slotMaster = hmac(master, join(slotMasterKey, [batch.fileKeyNo])).subarray(0, 16)
    return cmacOnce(slotMaster, join([1], hmac(hmac(master, divBaseKey), uid).subarray(0, 16)))
  },
  'sdm-backend-legacy': (batch, uid) => pbkdf2Key(masterBytes(batch), join(utf8ToBytes('key'), uid, [batch.fileKeyNo])),
  boltcard: async ({ fileMaster, derivationVersion = 0 }, uid) =>
    cmacOnce(await boltcardCardKey(fileMaster, uid, derivationVersion), boltcardConstant(0x78)),
  'tagit-sdm': ({ fileMaster }, uid) => fileMaster.cmac(join([1], tagitLabel, uid)),
  direct: () => null,
}

function boltcardCardKey(issuer: AesKeyRef, uid: Uint8Array, version: number): Bytes {
  return issuer.cmac(join(boltcardConstant(0x75), uid, littleEndian(version, 4)))
}

function boltcardConstant(last: number): Uint8Array {
  return Uint8Array.of(0x2d, 0x00, 0x3f, last)
}

function masterBytes({ derivation, fileMaster }: DerivationInput): Uint8Array {
  const secret = fileMaster.secret?.()
  if (secret === undefined) throw new RangeError(`The scheme ${derivation} needs an embedded master key.`)
  return secret
}

function hmac(key: Uint8Array, message: Uint8Array): Uint8Array {
  return Uint8Array.from(createHmac('sha256', key).update(message).digest())
}

/** Derives a key by PBKDF2-HMAC-SHA512 with 5000 rounds. It is asynchronous because it takes milliseconds. */
async function pbkdf2Key(master: Uint8Array, salt: Uint8Array): Promise<Uint8Array> {
  return promisify(pbkdf2)(master, salt, 5000, 16, 'sha512')
}

const piccDataKey = utf8ToBytes('PICCDataKey')
const slotMasterKey = utf8ToBytes('SlotMasterKey')
const divBaseKey = utf8ToBytes('DivBaseKey')
const tagitLabel = utf8ToBytes('TAGIT-SDM')

/**
 * Diversifies an AES-128 key by NXP AN10922 §2.2. M has 16 to 31 bytes, where the result equals CMAC(master, 01 || M). Throws a
 * `RangeError` for other lengths, because AN10922 pads a shorter M differently.
 */
export function an10922(master: Pick<AesKeyRef, 'cmac'>, input: Uint8Array): Bytes {
  if (input.length < 16 || input.length > 31) throw new RangeError('A diversification input has 16 to 31 bytes.')
  return master.cmac(join(aes128Constant, input))
}

/** Diversifies by any M of at most 31 bytes. A short one needs the master's bytes, because no CMAC is equal to it. */
function anyAn10922(batch: DerivationInput, input: Uint8Array): Bytes {
  if (input.length >= 16) return an10922(batch.fileMaster, input)
  return twoBlockMac(masterBytes(batch), join(aes128Constant, input))
}

/** Parses the system id of `an10922-systemid`: ASCII text, or bytes in hex after `0x`, at most 24. Returns `null` otherwise. */
export function systemIdBytes(text: string): Uint8Array | null {
  const bytes = text.startsWith('0x') ? parseHex(text.slice(2)) : /^[\x20-\x7e]*$/.test(text) ? utf8ToBytes(text) : null
  return bytes !== null && bytes.length >= 1 && bytes.length <= 24 ? bytes : null
}

/**
 * Builds M of a tag key. It has UID (7), name of the NDEF application (AID), slot of the key, system id of the operator (1 to 16 ASCII).
 */
export function diversificationInput(uid: Uint8Array, keyNo: number, systemId: string): Uint8Array {
  return join(uid, applicationId, [keyNo], Buffer.from(systemId, 'latin1'))
}

const aes128Constant = [0x01]
const applicationId = [0xd2, 0x76, 0x00, 0x00, 0x85, 0x01, 0x01]
