/**
 * A real PKCS#11 token: SoftHSM2 with `pkcs11js`, where both are installed. `TEST_PKCS11JS` may name the package's folder,
 * `TEST_PKCS11_LIBRARY` another module.
 */
import assert from 'node:assert/strict'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import type { Attribute, Handle, Module } from '../../src/keys/pkcs11/standard.ts'
import type { Pkcs11Options } from '../../src/keys/pkcs11/session.ts'
import { testFolder } from './folder.ts'

const library = process.env['TEST_PKCS11_LIBRARY'] ?? '/usr/lib/softhsm/libsofthsm2.so'
const packageFolder = findPackage()

/** A reason where the token cannot be made, unless `REQUIRE_SERVICES=1` asks for it. */
export const skipToken =
  process.env['REQUIRE_SERVICES'] === '1'
    ? false
    : packageFolder === null
      ? 'pkcs11js is not installed'
      : existsSync(library)
        ? false
        : 'SoftHSM2 is not installed'

const [soPin, pin] = ['5678', '1234']
const tokenLabel = 'touchstone'

export type TestToken = ReturnType<typeof createToken>

/** `value` is an AES key, or the private half of a pair. `parameters` and `point` are those of the curve, in DER. */
export type ImportedKey = Readonly<{
  name: string
  value: Uint8Array
  pair?: Readonly<{ parameters: Uint8Array; point: Uint8Array }>
}>

/** Initializes an empty token in a folder of its own. This process uses it too: SoftHSM2 reads the variable when it is initialized. */
export function createToken() {
  const folder = testFolder()
  mkdirSync(join(folder, 'tokens'))
  const conf = join(folder, 'softhsm2.conf')
  writeFileSync(conf, `directories.tokendir = ${join(folder, 'tokens')}\nlog.level = ERROR\n`)
  process.env['SOFTHSM2_CONF'] = conf
  const pinFile = join(folder, 'pin')
  writeFileSync(pinFile, `${pin}\n`, { mode: 0o600 })
  inModule((token) => {
    const [slot] = token.C_GetSlotList(true)
    assert.ok(slot)
    token.C_InitToken(slot, soPin, tokenLabel)
    const session = token.C_OpenSession(slot, rwSession)
    token.C_Login(session, ckuSo, soPin)
    token.C_InitPIN(session, pin)
  })
  const attributes = [`module=${library}`, `token=${tokenLabel}`, `pin-file=${pinFile}`, `package=${packageFolder}`]
  return {
    options: { module: library, token: tokenLabel, pinFile, packageFolder } satisfies Pkcs11Options,
    /** The setting KEYS for this token. */
    setting: `pkcs11:${attributes.join(';')}`,
    /** Environment variables of a process that uses the token. */
    env: { SOFTHSM2_CONF: conf },
    /** Imports keys into the token. It must not be open in this process. */
    importKeys: (keys: readonly ImportedKey[]) =>
      inModule((token) => {
        const session = openSession(token)
        for (const key of keys) for (const template of templatesOf(key)) token.C_CreateObject(session, template)
      }),
    /** Returns how the private or secret keys of a name are kept. The token must not be open in this process. */
    protectionOf(name: string) {
      const found: { isPrivate: boolean; isSensitive: boolean; isExtractable: boolean }[] = []
      inModule((token) => {
        const session = openSession(token)
        const has = (key: Handle, type: number) =>
          token.C_GetAttributeValue(session, key, [{ type }])[0]?.value[0] === 1
        for (const kind of [privateKey, secretKey]) {
          token.C_FindObjectsInit(session, [
            { type: 0x0, value: kind },
            { type: 0x3, value: name },
          ])
          for (const key of token.C_FindObjects(session, 10))
            found.push({ isPrivate: has(key, 0x2), isSensitive: has(key, 0x103), isExtractable: has(key, 0x162) })
          token.C_FindObjectsFinal(session)
        }
      })
      return found
    },
  }
}

function openSession(token: TokenWriter): Handle {
  const slot = token.C_GetSlotList(true).find((each) => token.C_GetTokenInfo(each).label.startsWith(tokenLabel))
  assert.ok(slot)
  const session = token.C_OpenSession(slot, rwSession)
  token.C_Login(session, ckuUser, pin)
  return session
}

/** Runs work with the initialized module. It is loaded by name because the package is optional and has no types here. */
function inModule(work: (token: TokenWriter) => void): void {
  const require = createRequire(import.meta.url)
  const { PKCS11 } = require(packageFolder ?? 'pkcs11js') as { PKCS11: new () => TokenWriter }
  const token = new PKCS11()
  token.load(library)
  token.C_Initialize()
  try {
    work(token)
  } finally {
    token.C_Finalize()
    token.close()
  }
}

/**
 * Attribute numbers are those of pkcs11t.h. They are class 0x0, token 0x1, private 0x2, label 0x3, value 0x11, key type 0x100, id 0x102 …
 */
function templatesOf({ name, value, pair }: ImportedKey): Attribute[][] {
  const template = (attributes: Readonly<Record<number, Attribute['value']>>): Attribute[] =>
    Object.entries({ 0x1: true, 0x3: name, ...attributes }).map(([type, content]) => ({
      type: Number(type),
      value: content,
    }))
  const secret = { 0x2: true, 0x103: true, 0x162: false, 0x11: Buffer.from(value) }
  if (pair === undefined) return [template({ 0x0: 4, 0x100: 0x1f, 0x104: true, 0x105: true, 0x108: true, ...secret })]
  const isEdwards = Buffer.from(pair.parameters).toString('hex') === '06032b6570'
  const both = { 0x100: isEdwards ? 0x40 : 3, 0x102: Buffer.from(name), 0x180: Buffer.from(pair.parameters) }
  return [
    template({ 0x0: 3, ...both, 0x108: true, ...secret }),
    template({ 0x0: 2, ...both, 0x10a: true, 0x181: Buffer.from(pair.point) }),
  ]
}

const [rwSession, ckuSo, ckuUser] = [0x6, 0, 1]
/** Classes of objects. */
const [privateKey, secretKey] = [3, 4]

function findPackage(): string | null {
  try {
    return dirname(createRequire(import.meta.url).resolve(process.env['TEST_PKCS11JS'] ?? 'pkcs11js'))
  } catch {
    return null
  }
}

/** `Module` with the calls that make a token and put a key into it. */
type TokenWriter = Module & {
  C_InitToken: (slot: Handle, pin: string, label: string) => string
  C_InitPIN: (session: Handle, pin: string) => void
  C_CreateObject: (session: Handle, attributes: Attribute[]) => Handle
}
