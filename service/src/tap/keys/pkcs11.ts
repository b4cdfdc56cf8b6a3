/**
 * Tag keys in a hardware security module (spec §4.4, §5) by PKCS#11 2.40: AES-ECB for the PICC block, CKM_AES_CMAC for derivations.
 * The optional package `pkcs11js` is compiled on the machine: `npm install pkcs11js`.
 */
import { ServiceError } from '../../lib/errors.ts'
import type { AesKeyRef } from '../sun/aes.ts'

export type Pkcs11Options = Readonly<{
  /** Path of the module's shared library. */
  library: string
  tokenLabel: string
  pin: string
  /** Path of `pkcs11js` when it is not among the service's packages. */
  packagePath?: string
}>

export type Pkcs11KeyStore = Disposable &
  Readonly<{
    /** Returns the secret AES key with this label. Throws `INTERNAL` when there is none or several. */
    key: (label: string) => AesKeyRef
    close: () => void
  }>

/** Opens a session. Throws `INTERNAL` with a sentence for the operator that never holds the PIN. */
export async function openPkcs11(options: Pkcs11Options): Promise<Pkcs11KeyStore> {
  const { PKCS11 } = await load(options.packagePath ?? 'pkcs11js')
  const token = new PKCS11()
  const close = () => {
    token.C_Finalize()
    token.close()
  }
  try {
    token.load(options.library)
    token.C_Initialize()
  } catch (error) {
    throw new ServiceError('INTERNAL', 'The PKCS#11 module cannot be used.', { cause: error })
  }
  try {
    const session = openSession(token, options)
    return { key: (label) => openKey(token, session, label), close, [Symbol.dispose]: close }
  } catch (error) {
    close()
    throw error instanceof ServiceError ? error : new ServiceError('INTERNAL', notOpened, { cause: error })
  }
}

/** Runs operations. A failed one can leave its session busy for ever, so the next one gets a new session. */
type Session = { readonly run: <T>(operation: (session: Handle) => T) => T }

function openSession(token: Module, { tokenLabel, pin }: Pkcs11Options): Session {
  const open = () => {
    const slot = token.C_GetSlotList(true).find((id) => labelOf(token, id) === tokenLabel)
    if (slot === undefined) throw new ServiceError('INTERNAL', `The PKCS#11 module has no token named ${tokenLabel}.`)
    const handle = token.C_OpenSession(slot, ckf.SERIAL_SESSION)
    token.C_Login(handle, ckuUser, pin)
    return handle
  }
  let current: Handle | null = open()
  return {
    run: (operation) => {
      const session = (current ??= open())
      try {
        return operation(session)
      } catch (error) {
        current = null
        closeQuietly(token, session)
        throw error instanceof ServiceError
          ? error
          : new ServiceError('INTERNAL', 'The PKCS#11 token did not answer.', { cause: error })
      }
    },
  }
}

/** Returns the label without its padding: the standard fills 32 characters with spaces, some tools with zeros. */
function labelOf(token: Module, slot: Handle): string {
  return (token.C_GetTokenInfo(slot).label.split('\0')[0] ?? '').trim()
}

function closeQuietly(token: Module, session: Handle): void {
  try {
    token.C_CloseSession(session)
  } catch {
    // The token was removed, and the session with it.
  }
}

function openKey(token: Module, { run }: Session, label: string): AesKeyRef {
  const find = (session: Handle): Handle => {
    token.C_FindObjectsInit(session, [
      { type: cka.CLASS, value: ckoSecretKey },
      { type: cka.KEY_TYPE, value: ckkAes },
      { type: cka.LABEL, value: label },
    ])
    const found = token.C_FindObjects(session, 2)
    token.C_FindObjectsFinal(session)
    const [key] = found
    if (key !== undefined && found.length === 1) return key
    throw new ServiceError('INTERNAL', `The PKCS#11 token must hold exactly one AES key named ${label}.`)
  }
  // A key handle is valid only in its own session.
  let known: { session: Handle; key: Handle } | undefined
  const keyIn = (session: Handle): Handle => {
    if (known?.session !== session) known = { session, key: find(session) }
    return known.key
  }
  run(keyIn)
  // A session allows one operation at a time. Calls are synchronous, so none is interrupted.
  return {
    ecbDecrypt: (block) =>
      run((session) => {
        token.C_DecryptInit(session, { mechanism: ckm.AES_ECB }, keyIn(session))
        return Uint8Array.from(token.C_Decrypt(session, Buffer.from(block), Buffer.alloc(16)))
      }),
    cmac: (message) =>
      run((session) => {
        token.C_SignInit(session, { mechanism: ckm.AES_CMAC }, keyIn(session))
        return Uint8Array.from(token.C_Sign(session, Buffer.from(message), Buffer.alloc(16)))
      }),
  }
}

const notOpened = 'The PKCS#11 token cannot be opened: check its label and PIN.'

async function load(packagePath: string): Promise<{ PKCS11: new () => Module }> {
  try {
    const loaded = (await import(packagePath)) as { PKCS11?: new () => Module; default?: { PKCS11: new () => Module } }
    const PKCS11 = loaded.PKCS11 ?? loaded.default?.PKCS11
    if (PKCS11 !== undefined) return { PKCS11 }
    throw new TypeError('it exports no PKCS11')
  } catch (error) {
    const message = 'Tag keys in a PKCS#11 module need the package pkcs11js: run npm install pkcs11js.'
    throw new ServiceError('INTERNAL', message, { cause: error })
  }
}

type Handle = Buffer
type Attribute = { type: number; value: number | string }

/** The part of `pkcs11js` that is used here. */
type Module = {
  load: (path: string) => void
  close: () => void
  C_Initialize: () => void
  C_Finalize: () => void
  C_GetSlotList: (withToken: boolean) => Handle[]
  C_GetTokenInfo: (slot: Handle) => { label: string }
  C_OpenSession: (slot: Handle, flags: number) => Handle
  C_CloseSession: (session: Handle) => void
  C_Login: (session: Handle, user: number, pin: string) => void
  C_FindObjectsInit: (session: Handle, template: Attribute[]) => void
  C_FindObjects: (session: Handle, most: number) => Handle[]
  C_FindObjectsFinal: (session: Handle) => void
  C_DecryptInit: (session: Handle, mechanism: { mechanism: number }, key: Handle) => void
  C_Decrypt: (session: Handle, data: Buffer, out: Buffer) => Buffer
  C_SignInit: (session: Handle, mechanism: { mechanism: number }, key: Handle) => void
  C_Sign: (session: Handle, data: Buffer, out: Buffer) => Buffer
}

// PKCS#11 2.40, pkcs11t.h
const ckf = { SERIAL_SESSION: 0x4 } as const
const cka = { CLASS: 0x0, LABEL: 0x3, KEY_TYPE: 0x100 } as const
const ckm = { AES_ECB: 0x1081, AES_CMAC: 0x108a } as const
const ckoSecretKey = 4
const ckkAes = 0x1f
const ckuUser = 1
