/**
 * A PKCS#11 token in its own thread (PKCS#11 2.40; spec §5). Each operation opens a session where there is none and blocks the thread. Keys
 * are found by their label. A failed operation can leave its session busy for ever, so the next one opens a new session.
 */
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { unsafe } from '@noble/ciphers/aes.js'
import { type Curve, curves, KeyStoreError } from '../key.ts'
import { type Attribute, cka, ckf, ckk, ckm, cko, ckr, ckuUser, curveRows, ed25519Name } from './standard.ts'
import type { Handle, Module } from './standard.ts'

export type Pkcs11Options = Readonly<{
  /** Path of the module's shared library. */
  module: string
  token: string
  /** Path of a file whose first line is the PIN of the user. It is read at each login and not kept. */
  pinFile: string
  /** Folder of `pkcs11js` where it is not among the service's packages; null: it is. */
  packageFolder: string | null
}>

/** The public part of a signing key. */
export type PublicKey = Readonly<{ name: string; curve: Curve; publicKey: Uint8Array }>

export type Operations = ReturnType<typeof openOperations>

/** Creates the operations; the first one logs in. Operations throw a KeyStoreError, or an error of the module. */
export function openOperations(module: Module, options: Pkcs11Options) {
  let session: Session | null = null
  /** False where another user of the module in this process has initialized it. */
  let isOurs = false

  /** Initializes the module and logs in. After a failure the next attempt begins anew, because a removed token needs that. */
  function open(): Session {
    isOurs ||= accepting(ckr.alreadyInitialized, () => module.C_Initialize())
    try {
      return openSession(module, options)
    } catch (error) {
      finalize()
      throw error
    }
  }

  function finalize(): void {
    if (isOurs) module.C_Finalize()
    isOurs = false
  }

  function run<T>(operation: (session: Session) => T): T {
    const current = (session ??= open())
    try {
      return operation(current)
    } catch (error) {
      if (!(error instanceof KeyStoreError)) {
        session = null
        closeSession(module, current)
      }
      throw error
    }
  }

  return {
    login: () => run(() => undefined),
    signingKey: (name: string): PublicKey | null =>
      run((opened) => (opened.privateKey(name) === null ? null : publicKeyOf(opened, name))),
    signingKeys: (prefix: string): PublicKey[] =>
      run((opened) => {
        const labels = opened
          .find([{ type: cka.CLASS, value: cko.PRIVATE_KEY }])
          .map((key) => opened.attribute(key, cka.LABEL).toString())
        const wanted = labels.filter((label) => label.startsWith(prefix))
        return wanted.sort().map((name) => publicKeyOf(opened, name))
      }),
    hasAesKey: (name: string): boolean => run((opened) => opened.secretKey(name) !== null),
    supports: (curve: Curve): boolean => run(({ mechanisms }) => mechanisms.has(curveRows[curve].generate)),
    generateSigningKey: (name: string, curve: Curve): PublicKey =>
      run((opened) => {
        assertFree(name, opened.privateKey(name))
        const { parameters, generate } = curveRows[curve]
        assertMechanism(opened, generate, `makes no ${curve} keys`)
        const names = namesOf(name)
        module.C_GenerateKeyPair(
          opened.handle,
          { mechanism: generate },
          [...names, { type: cka.EC_PARAMS, value: Buffer.from(parameters, 'hex') }, { type: cka.VERIFY, value: true }],
          [...names, ...secret, { type: cka.SIGN, value: true }],
        )
        return publicKeyOf(opened, name)
      }),
    generateAesKey: (name: string): void =>
      run((opened) => {
        assertFree(name, opened.secretKey(name))
        assertMechanism(opened, ckm.AES_KEY_GEN, 'makes no AES keys')
        const uses = [cka.ENCRYPT, cka.DECRYPT, cka.SIGN].map((type) => ({ type, value: true }))
        const template = [...namesOf(name), ...secret, ...uses, { type: cka.VALUE_LEN, value: 16 }]
        module.C_GenerateKey(opened.handle, { mechanism: ckm.AES_KEY_GEN }, template)
      }),
    sign: (name: string, curve: Curve, input: Uint8Array): Uint8Array =>
      run(({ handle, privateKey }) => {
        module.C_SignInit(handle, { mechanism: curveRows[curve].sign }, known(name, privateKey(name)))
        return Uint8Array.from(module.C_Sign(handle, Buffer.from(input), Buffer.alloc(64)))
      }),
    ecbDecrypt: (name: string, block: Uint8Array): Uint8Array =>
      run(({ handle, secretKey }) => {
        module.C_DecryptInit(handle, { mechanism: ckm.AES_ECB }, known(name, secretKey(name)))
        return Uint8Array.from(module.C_Decrypt(handle, Buffer.from(block), Buffer.alloc(16)))
      }),
    cmac: (name: string, message: Uint8Array): Uint8Array =>
      run(({ handle, secretKey, mechanisms }) => {
        const key = known(name, secretKey(name))
        if (mechanisms.has(ckm.AES_CMAC)) {
          module.C_SignInit(handle, { mechanism: ckm.AES_CMAC }, key)
          return Uint8Array.from(module.C_Sign(handle, Buffer.from(message), Buffer.alloc(16)))
        }
        return cmacOfBlocks((block) => {
          module.C_EncryptInit(handle, { mechanism: ckm.AES_ECB }, key)
          return module.C_Encrypt(handle, Buffer.from(block), Buffer.alloc(16))
        }, message)
      }),
    close: (): void => {
      if (session !== null) closeSession(module, session)
      session = null
      finalize()
      module.close()
    },
  }
}

type Session = ReturnType<typeof sessionOf>

function openSession(module: Module, { token, pinFile }: Pkcs11Options): Session {
  const slot = module.C_GetSlotList(true).find((id) => labelOf(module, id) === token)
  if (slot === undefined) throw new KeyStoreError(`The PKCS#11 module has no token named ${token}.`)
  const handle = module.C_OpenSession(slot, ckf.SERIAL_SESSION | ckf.RW_SESSION)
  accepting(ckr.loggedIn, () => module.C_Login(handle, ckuUser, readPin(pinFile)))
  return sessionOf(module, handle, new Set(module.C_GetMechanismList(slot)))
}

function sessionOf(module: Module, handle: Handle, mechanisms: ReadonlySet<number>) {
  function find(template: Attribute[]): Handle[] {
    module.C_FindObjectsInit(handle, template)
    const found: Handle[] = []
    for (;;) {
      const some = module.C_FindObjects(handle, 100)
      found.push(...some)
      if (some.length === 0 || found.length >= mostObjects) break
    }
    module.C_FindObjectsFinal(handle)
    return found
  }
  // A handle of a key is valid only in its own session.
  const handles = new Map<string, Handle>()
  /** Returns null when there is none. Throws a KeyStoreError when there are several. */
  const findOne = (name: string, template: Attribute[]): Handle | null => {
    const id = `${template.map(({ value }) => String(value)).join(' ')} ${name}`
    const cached = handles.get(id)
    if (cached !== undefined) return cached
    const [key, other] = find([...template, { type: cka.LABEL, value: name }])
    if (other !== undefined) throw new KeyStoreError(`The PKCS#11 token holds several keys named ${name}: keep one.`)
    if (key !== undefined) handles.set(id, key)
    return key ?? null
  }
  return {
    handle,
    mechanisms,
    find,
    attribute: (object: Handle, type: number) =>
      module.C_GetAttributeValue(handle, object, [{ type }])[0]?.value ?? Buffer.alloc(0),
    privateKey: (name: string) => findOne(name, [{ type: cka.CLASS, value: cko.PRIVATE_KEY }]),
    secretKey: (name: string) =>
      findOne(name, [
        { type: cka.CLASS, value: cko.SECRET_KEY },
        { type: cka.KEY_TYPE, value: ckk.AES },
      ]),
  }
}

const mostObjects = 10_000

/** Returns false when the call fails with this result, which means that there is nothing to do. */
function accepting(result: string, call: () => void): boolean {
  try {
    call()
    return true
  } catch (error) {
    if (error instanceof Error && error.message.includes(result)) return false
    throw error
  }
}

function readPin(path: string): string {
  try {
    return readFileSync(path, 'utf8').split(/\r?\n/)[0] ?? ''
  } catch (error) {
    const { code = 'unknown reason' } = error as NodeJS.ErrnoException
    throw new KeyStoreError(`The PIN file ${path} cannot be read (${code}).`)
  }
}

/** Returns the label without its padding: the standard fills 32 characters with spaces, some tools with zeros. */
function labelOf(module: Module, slot: Handle): string {
  return (module.C_GetTokenInfo(slot).label.split('\0')[0] ?? '').trim()
}

function closeSession(module: Module, { handle }: Session): void {
  try {
    module.C_CloseSession(handle)
  } catch {
    // The token was removed, and the session with it.
  }
}

/** Reads the public half, which has the label and the id of the private one. */
function publicKeyOf(session: Session, name: string): PublicKey {
  const key = known(name, session.privateKey(name))
  const [half] = session.find([
    { type: cka.CLASS, value: cko.PUBLIC_KEY },
    { type: cka.LABEL, value: name },
    { type: cka.ID, value: session.attribute(key, cka.ID) },
  ])
  if (half === undefined)
    throw new KeyStoreError(`The PKCS#11 token lacks the public key of ${name}: it needs the same label and CKA_ID.`)
  const parameters = session.attribute(half, cka.EC_PARAMS).toString('hex')
  const wanted = parameters === ed25519Name ? curveRows.Ed25519.parameters : parameters
  const curve = curves.find((each) => curveRows[each].parameters === wanted)
  if (curve === undefined)
    throw new KeyStoreError(`The key ${name} of the PKCS#11 token is on no curve of ${curves.join(', ')}.`)
  const point = session.attribute(half, cka.EC_POINT)
  const { publicBytes } = curveRows[curve]
  // The point is a DER OCTET STRING; some modules return its bytes alone.
  const publicKey = point.length === publicBytes + 2 ? point.subarray(2) : point
  if (publicKey.length !== publicBytes)
    throw new KeyStoreError(`The public key of ${name} in the PKCS#11 token has ${publicKey.length} bytes.`)
  return { name, curve, publicKey: Uint8Array.from(publicKey) }
}

/** Attributes of a key that stays in the token. */
const secret: Attribute[] = [
  { type: cka.PRIVATE, value: true },
  { type: cka.SENSITIVE, value: true },
  { type: cka.EXTRACTABLE, value: false },
]

function namesOf(name: string): Attribute[] {
  return [
    { type: cka.TOKEN, value: true },
    { type: cka.LABEL, value: name },
    { type: cka.ID, value: randomBytes(16) },
  ]
}

function known(name: string, key: Handle | null): Handle {
  if (key !== null) return key
  throw new KeyStoreError(`The PKCS#11 token has no key named ${name}.`)
}

function assertFree(name: string, key: Handle | null): void {
  if (key !== null) throw new KeyStoreError(`The PKCS#11 token has a key named ${name} already.`)
}

function assertMechanism({ mechanisms }: Session, mechanism: number, fault: string): void {
  if (!mechanisms.has(mechanism)) throw new KeyStoreError(`The PKCS#11 token ${fault}.`)
}

/** Builds AES-CMAC (RFC 4493 §2.4) of single blocks, for tokens without CKM_AES_CMAC, such as the YubiHSM 2. */
export function cmacOfBlocks(encrypt: (block: Uint8Array) => Uint8Array, message: Uint8Array): Uint8Array {
  const count = Math.max(1, Math.ceil(message.length / 16))
  const isWhole = message.length === count * 16
  // `dbl` doubles a block in its place, for the subkeys (RFC 4493 §2.3).
  const k1 = unsafe.dbl(Uint8Array.from(encrypt(new Uint8Array(16))))
  const padded = new Uint8Array(count * 16)
  padded.set(message)
  if (!isWhole) padded[message.length] = 0x80
  let state: Uint8Array = new Uint8Array(16)
  for (let index = 0; index < count; index++) {
    let block = xor(state, padded.subarray(index * 16, index * 16 + 16))
    if (index === count - 1) block = xor(block, isWhole ? k1 : unsafe.dbl(k1))
    state = Uint8Array.from(encrypt(block))
  }
  return state
}

function xor(left: Uint8Array, right: Uint8Array): Uint8Array {
  return Uint8Array.from(left, (byte, index) => byte ^ (right[index] ?? 0))
}
