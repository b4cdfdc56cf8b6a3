/**
 * A real PKCS#11 token: SoftHSM2 with `pkcs11js`, where both are installed. `TEST_PKCS11JS` may name the package's folder,
 * `TEST_PKCS11_LIBRARY` another module.
 */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { after, before, describe, it } from 'node:test'
import { ServiceError } from '../../lib/errors.ts'
import { createAesKey } from '../sun/aes.ts'
import { createAuthenticate } from '../sun/authenticate.ts'
import { toHex } from '../bytes.ts'
import { createKeyRing } from './batch.ts'
import { openPkcs11, type Pkcs11KeyStore } from './pkcs11.ts'
import { testBatch, testBatches, testTag } from '../../../test/support/tap/tags.ts'

const library = process.env['TEST_PKCS11_LIBRARY'] ?? '/usr/lib/softhsm/libsofthsm2.so'
const packagePath = findPackage()
const skip =
  packagePath === null ? 'pkcs11js is not installed' : existsSync(library) ? false : 'SoftHSM2 is not installed'

describe('tag keys in a PKCS#11 token', { skip }, () => {
  let folder: string
  const batch = testBatch()
  let store: Pkcs11KeyStore
  const open = (change = {}) =>
    openPkcs11({ library, tokenLabel: 'touchstone', pin: '1234', packagePath: packagePath ?? '', ...change })

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'touchstone-hsm-'))
    mkdirSync(join(folder, 'tokens'))
    writeFileSync(
      join(folder, 'softhsm2.conf'),
      `directories.tokendir = ${join(folder, 'tokens')}\nlog.level = ERROR\n`,
    )
    process.env['SOFTHSM2_CONF'] = join(folder, 'softhsm2.conf')
    await importKeys({ meta: batch.metaKey ?? randomBytes(16), master: batch.fileMaster })
    store = await open()
  })
  after(() => {
    store.close()
    rmSync(folder, { recursive: true })
  })

  it('decrypt and sign as the same keys in software', async () => {
    const [remote, local] = [store.key('master'), createAesKey(batch.fileMaster)]
    for (const length of [1, 16, 17, 31, 32, 64]) {
      const message = Uint8Array.from(randomBytes(length))
      assert.equal(toHex(await remote.cmac(message)), toHex(local.cmac(message)))
    }
    const block = Uint8Array.from(randomBytes(16))
    assert.equal(toHex(await remote.ecbDecrypt(block)), toHex(local.ecbDecrypt(block)))
    assert.equal(remote.secret, undefined)
  })

  it('verify the taps of their batch', async () => {
    const [loaded] = await testBatches(batch)
    assert.ok(loaded)
    const keys = createKeyRing([{ ...loaded, meta: store.key('meta'), fileMaster: store.key('master') }])
    const authenticate = createAuthenticate({ keys })
    const tag = await testTag(batch)
    for (let count = 0; count < 3; count++) {
      const { picc, cmac } = tag.next()
      const found = await authenticate(Buffer.from(picc, 'hex'), Buffer.from(cmac, 'hex'))
      assert.ok(found.genuine && toHex(found.uid) === toHex(tag.uid))
    }
  })

  it('are missed by name', () => {
    assert.throws(() => store.key('no such key'), /exactly one AES key named no such key/)
  })

  it('work on after an operation that failed', async () => {
    const key = store.key('master')
    assert.throws(() => key.ecbDecrypt(new Uint8Array(5)), ServiceError)
    assert.equal(
      toHex(await key.cmac(new Uint8Array(16))),
      toHex(createAesKey(batch.fileMaster).cmac(new Uint8Array(16))),
    )
  })

  it('fail to open with one sentence that holds no PIN', async () => {
    store.close()
    const said = (error: unknown) => error instanceof ServiceError && !error.message.includes('9999')
    await assert.rejects(open({ pin: '9999' }), said)
    await assert.rejects(open({ pin: '9999' }), /label and PIN/)
    await assert.rejects(open({ tokenLabel: 'elsewhere' }), /no token named elsewhere/)
    await assert.rejects(open({ library: '/no/such/library.so' }), /PKCS#11 module cannot be used/)
    store = await open()
    assert.equal(toHex(await store.key('master').cmac(new Uint8Array(16))).length, 32)
  })
})

describe('without the package', () => {
  it('names the package to install', async () => {
    await assert.rejects(
      openPkcs11({ library, tokenLabel: 'x', pin: 'x', packagePath: 'no-such-package' }),
      /npm install pkcs11js/,
    )
  })
})

function findPackage(): string | null {
  const require = createRequire(import.meta.url)
  try {
    return pathToFileURL(require.resolve(process.env['TEST_PKCS11JS'] ?? 'pkcs11js')).href
  } catch {
    return null
  }
}

/** A new token with these keys, made through the module itself. */
async function importKeys(keys: Record<string, Uint8Array>): Promise<void> {
  // The package is optional, so it is loaded by name and has no types here.
  const { default: pkcs11js } = (await import(packagePath ?? '')) as { default: { PKCS11: new () => TokenWriter } }
  const token = new pkcs11js.PKCS11()
  token.load(library)
  token.C_Initialize()
  const [slot] = token.C_GetSlotList(true)
  assert.ok(slot)
  token.C_InitToken(slot, '5678', 'touchstone')
  const session = token.C_OpenSession(slot, 0x6)
  token.C_Login(session, 0, '5678')
  token.C_InitPIN(session, '1234')
  token.C_Logout(session)
  token.C_Login(session, 1, '1234')
  for (const [label, value] of Object.entries(keys)) {
    const attributes = {
      0x0: 4,
      0x100: 0x1f,
      0x1: true,
      0x3: label,
      0x105: true,
      0x108: true,
      0x10a: true,
      0x11: Buffer.from(value),
    }
    token.C_CreateObject(
      session,
      Object.entries(attributes).map(([type, content]) => ({ type: Number(type), value: content })),
    )
  }
  token.C_CloseSession(session)
  token.C_Finalize()
  token.close()
}

type TokenWriter = {
  load: (path: string) => void
  close: () => void
  C_Initialize: () => void
  C_Finalize: () => void
  C_GetSlotList: (withToken: boolean) => Buffer[]
  C_OpenSession: (slot: Buffer, flags: number) => Buffer
  C_CloseSession: (session: Buffer) => void
  C_InitToken: (slot: Buffer, pin: string, label: string) => string
  C_InitPIN: (session: Buffer, pin: string) => void
  C_Login: (session: Buffer, user: number, pin: string) => void
  C_Logout: (session: Buffer) => void
  C_CreateObject: (session: Buffer, attributes: { type: number; value: unknown }[]) => Buffer
}
