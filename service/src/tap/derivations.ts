/**
 * How the key that signs a tap follows from a batch's master and the tag's UID (spec §4.4; decisions 4.4).
 * `an10922` is ours; the others read tags that were personalised by other systems.
 */
import { createHmac, pbkdf2 } from 'node:crypto'
import { promisify } from 'node:util'
import { cmacOnce, createAesKey, type AesKeyRef, type Bytes } from './aes.ts'
import { an10922, diversificationInput } from './an10922.ts'
import { join, littleEndian, textBytes } from './bytes.ts'

export const derivations = ['an10922', 'sdm-backend', 'sdm-backend-legacy', 'boltcard', 'tagit-sdm', 'direct'] as const
export type Derivation = (typeof derivations)[number]

/** What a derivation reads of a batch. */
export type DerivationInput = Readonly<{
  derivation: Derivation
  derivationVersion?: number
  systemId: string
  fileKeyNo: number
  fileMaster: AesKeyRef
}>

/**
 * The tag's own fileRead key. `null` for `direct`, where the stored key itself signs and nothing is derived.
 * Throws a `RangeError` where a scheme needs the master's bytes and the key store does not give them.
 */
export function fileKeyOf(batch: DerivationInput, uid: Uint8Array): Bytes | null {
  return fileKeys[batch.derivation](batch, uid)
}

/** The metaRead key that an import scheme derives from its master, or `null` where metaRead is a key of its own. */
export async function metaKeyOf(derivation: Derivation, master: Uint8Array): Promise<Uint8Array | null> {
  switch (derivation) {
    case 'sdm-backend':
      return hmac(master, piccDataKey).subarray(0, 16)
    case 'sdm-backend-legacy':
      return stretched(master, join(textBytes('key_no_uid'), [1]))
    case 'boltcard':
      return cmacOnce(master, boltcardConstant(0x77))
    case 'tagit-sdm':
      return master.slice()
    case 'an10922':
    case 'direct':
      return null
  }
}

/** The keys of a Bolt Card by its deterministic scheme: the card key and the five slots. */
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
  'sdm-backend': (batch, uid) => {
    const master = secretOf(batch)
    const slotMaster = hmac(master, join(slotMasterKey, [batch.fileKeyNo])).subarray(0, 16)
    return cmacOnce(slotMaster, join([1], hmac(hmac(master, divBaseKey), uid).subarray(0, 16)))
  },
  'sdm-backend-legacy': (batch, uid) => stretched(secretOf(batch), join(textBytes('key'), uid, [batch.fileKeyNo])),
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

function secretOf({ derivation, fileMaster }: DerivationInput): Uint8Array {
  const secret = fileMaster.secret?.()
  if (secret === undefined) throw new RangeError(`The scheme ${derivation} needs an embedded master key.`)
  return secret
}

function hmac(key: Uint8Array, message: Uint8Array): Uint8Array {
  return Uint8Array.from(createHmac('sha256', key).update(message).digest())
}

/** PBKDF2-HMAC-SHA512 with 5000 rounds; asynchronous because it takes milliseconds. */
async function stretched(master: Uint8Array, salt: Uint8Array): Promise<Uint8Array> {
  return promisify(pbkdf2)(master, salt, 5000, 16, 'sha512')
}

const piccDataKey = textBytes('PICCDataKey')
const slotMasterKey = textBytes('SlotMasterKey')
const divBaseKey = textBytes('DivBaseKey')
const tagitLabel = textBytes('TAGIT-SDM')
