/** Constants of PKCS#11 2.40 and 3.0 (pkcs11t.h), and the part of the package `pkcs11js` that is used here. */
import type { Curve } from '../key.ts'

export const ckf = { RW_SESSION: 0x2, SERIAL_SESSION: 0x4 } as const
export const cko = { PUBLIC_KEY: 2, PRIVATE_KEY: 3, SECRET_KEY: 4 } as const
export const ckk = { AES: 0x1f } as const
export const cka = {
  CLASS: 0x0,
  TOKEN: 0x1,
  PRIVATE: 0x2,
  LABEL: 0x3,
  KEY_TYPE: 0x100,
  ID: 0x102,
  SENSITIVE: 0x103,
  ENCRYPT: 0x104,
  DECRYPT: 0x105,
  SIGN: 0x108,
  VERIFY: 0x10a,
  VALUE_LEN: 0x161,
  EXTRACTABLE: 0x162,
  EC_PARAMS: 0x180,
  EC_POINT: 0x181,
} as const
export const ckm = { ECDSA: 0x1041, AES_KEY_GEN: 0x1080, AES_ECB: 0x1081, AES_CMAC: 0x108a, EDDSA: 0x1057 } as const
export const ckuUser = 1

/** Result codes that end an attempt, by their names in the messages of `pkcs11js`. */
export const ckr = { alreadyInitialized: 'CKR_CRYPTOKI_ALREADY_INITIALIZED', loggedIn: 'CKR_USER_ALREADY_LOGGED_IN' }

/** A curve by its object identifier in DER, its mechanisms, and the bytes of a public key. */
type CurveRow = Readonly<{ parameters: string; generate: number; sign: number; publicBytes: number }>
const ecKeyPairGen = 0x1040
const edwardsKeyPairGen = 0x1055
export const curveRows: Readonly<Record<Curve, CurveRow>> = {
  secp256k1: { parameters: '06052b8104000a', generate: ecKeyPairGen, sign: ckm.ECDSA, publicBytes: 65 },
  'P-256': { parameters: '06082a8648ce3d030107', generate: ecKeyPairGen, sign: ckm.ECDSA, publicBytes: 65 },
  Ed25519: { parameters: '06032b6570', generate: edwardsKeyPairGen, sign: ckm.EDDSA, publicBytes: 32 },
}
/** PKCS#11 3.0 §2.3.3 also allows a curve by its name, as a PrintableString. */
export const ed25519Name = '130c656477617264733235353139'

export type Handle = Buffer
export type Attribute = { type: number; value: number | string | boolean | Buffer }

/** The part of `pkcs11js` that is used here. Every call blocks its thread. */
export type Module = {
  load: (path: string) => void
  close: () => void
  C_Initialize: () => void
  C_Finalize: () => void
  C_GetSlotList: (withToken: boolean) => Handle[]
  C_GetTokenInfo: (slot: Handle) => { label: string }
  C_GetMechanismList: (slot: Handle) => number[]
  C_OpenSession: (slot: Handle, flags: number) => Handle
  C_CloseSession: (session: Handle) => void
  C_Login: (session: Handle, user: number, pin: string) => void
  C_FindObjectsInit: (session: Handle, template: Attribute[]) => void
  C_FindObjects: (session: Handle, most: number) => Handle[]
  C_FindObjectsFinal: (session: Handle) => void
  C_GetAttributeValue: (session: Handle, object: Handle, template: { type: number }[]) => { value: Buffer }[]
  C_GenerateKey: (session: Handle, mechanism: Mechanism, template: Attribute[]) => Handle
  C_GenerateKeyPair: (
    session: Handle,
    mechanism: Mechanism,
    publicTemplate: Attribute[],
    privateTemplate: Attribute[],
  ) => { publicKey: Handle; privateKey: Handle }
  C_EncryptInit: (session: Handle, mechanism: Mechanism, key: Handle) => void
  C_Encrypt: (session: Handle, data: Buffer, out: Buffer) => Buffer
  C_DecryptInit: (session: Handle, mechanism: Mechanism, key: Handle) => void
  C_Decrypt: (session: Handle, data: Buffer, out: Buffer) => Buffer
  C_SignInit: (session: Handle, mechanism: Mechanism, key: Handle) => void
  C_Sign: (session: Handle, data: Buffer, out: Buffer) => Buffer
}

type Mechanism = { mechanism: number }
