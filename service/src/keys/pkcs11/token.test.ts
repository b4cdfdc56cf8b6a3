/** Keys in a real PKCS#11 token, SoftHSM2. */
import assert from 'node:assert/strict'
import { execFile, execFileSync } from 'node:child_process'
import { createCipheriv, createECDH, createHash, createPublicKey, randomBytes, verify } from 'node:crypto'
import { after, before, describe, it } from 'node:test'
import { writeFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { cmac } from '@noble/ciphers/aes.js'
import { keccak256 } from 'viem'
import { privateKeyToAddress } from 'viem/accounts'
import { testFolder } from '../../../test/support/folder.ts'
import { createToken, skipToken, type TestToken } from '../../../test/support/softhsm.ts'
import { until } from '../../../test/support/wait.ts'
import type { ServiceError } from '../../lib/errors.ts'
import { recoverSigner } from '../../lib/secp256k1.ts'
import { storedEthereumKey } from '../ethereum.ts'
import { type KeyStore, KeyStoreError } from '../key.ts'
import { cmacOfBlocks } from './session.ts'
import { openToken } from './token.ts'

const encryptBlock = (key: Uint8Array) => (block: Uint8Array) =>
  createCipheriv('aes-128-ecb', key, null).setAutoPadding(false).update(block)
const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex')

describe('keys in a PKCS#11 token', { skip: skipToken }, () => {
  let token: TestToken
  let store: KeyStore & AsyncDisposable
  const master = Uint8Array.from(randomBytes(16))
  const ecdh = createECDH('secp256k1')
  const publicPoint = ecdh.generateKeys()

  before(async () => {
    token = createToken()
    const secp256k1 = {
      parameters: Buffer.from('06052b8104000a', 'hex'),
      point: Buffer.concat([Buffer.of(4, 65), publicPoint]),
    }
    const twice = Uint8Array.from(randomBytes(16))
    token.importKeys([
      { name: 'master', value: master },
      { name: 'imported', value: ecdh.getPrivateKey(), pair: secp256k1 },
      { name: 'twice', value: twice },
      { name: 'twice', value: twice },
    ])
    store = await openToken(token.options)
  })
  after(() => store[Symbol.asyncDispose]())

  it('decrypt and make MACs as the same AES key in software', async () => {
    const stored = (await store.aesKey('master')) ?? assert.fail()
    for (const length of [1, 16, 17, 31, 32, 64]) {
      const message = Uint8Array.from(randomBytes(length))
      assert.equal(hex(await stored.cmac(message)), hex(cmac(message, master)))
    }
    const block = Uint8Array.from(randomBytes(16))
    assert.equal(hex(await stored.ecbDecrypt(encryptBlock(master)(block))), hex(block))
  })

  it('sign for an Ethereum address, with a low s, whatever half the token chose', async () => {
    const key = storedEthereumKey((await store.signingKey('imported')) ?? assert.fail())
    assert.equal(key.address, privateKeyToAddress(`0x${ecdh.getPrivateKey('hex').padStart(64, '0')}`))
    for (let count = 0; count < 12; count++) {
      const digest = keccak256(randomBytes(32))
      assert.equal(recoverSigner(digest, await key.sign(digest)), key.address.toLowerCase())
    }
  })

  it('are made in the token, once for each name, and sign on every curve', async () => {
    for (const curve of ['secp256k1', 'P-256', 'Ed25519'] as const) {
      assert.ok(await store.supports(curve))
      const made = await store.generateSigningKey(`made-${curve}`, curve)
      const found = (await store.signingKey(`made-${curve}`)) ?? assert.fail()
      assert.deepEqual([found.curve, hex(found.publicKey)], [curve, hex(made.publicKey)])
      await assert.rejects(store.generateSigningKey(`made-${curve}`, curve), /has a key named made-\S+ already/)
      const text = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64url')
      const [x = '', y = ''] = [found.publicKey.subarray(-64, -32), found.publicKey.subarray(-32)].map(text)
      const jwk = curve === 'Ed25519' ? { kty: 'OKP', crv: curve, x: y } : { kty: 'EC', crv: curve, x, y }
      const message = randomBytes(50)
      const input = curve === 'Ed25519' ? message : createHash('sha256').update(message).digest()
      const key = createPublicKey({ key: jwk, format: 'jwk' })
      const digest = curve === 'Ed25519' ? null : 'sha256'
      assert.ok(verify(digest, message, { key, dsaEncoding: 'ieee-p1363' }, await found.sign(input)))
    }
    const names = (await store.signingKeys('made-')).map(({ name }) => name)
    assert.deepEqual(names, ['made-Ed25519', 'made-P-256', 'made-secp256k1'])
    await store.generateAesKey('made-aes')
    assert.equal((await (await store.aesKey('made-aes'))?.cmac(new Uint8Array(3)))?.length, 16)
    await assert.rejects(store.generateAesKey('made-aes'), /already/)
  })

  it('are null where there is none of the name, and a fault where there are several', async () => {
    assert.equal(await store.signingKey('none'), null)
    assert.equal(await store.aesKey('none'), null)
    await assert.rejects(store.aesKey('twice'), /several keys named twice: keep one/)
  })

  it('work on after an operation that failed', async () => {
    const key = (await store.aesKey('master')) ?? assert.fail()
    await assert.rejects(key.ecbDecrypt(new Uint8Array(5)), { code: 'KEY_STORE_UNAVAILABLE' })
    assert.equal(hex(await key.cmac(new Uint8Array(16))), hex(cmac(new Uint8Array(16), master)))
  })

  it('fail to open with one sentence that holds no PIN', async () => {
    await store[Symbol.asyncDispose]()
    const other = `${token.options.pinFile}-other`
    writeFileSync(other, '9999\n')
    const rejects = async (change: object, sentence: RegExp) =>
      assert.rejects(openToken({ ...token.options, ...change }), (error: Error) => {
        assert.match(error.message, sentence)
        return error instanceof KeyStoreError && !error.message.includes('9999')
      })
    await rejects({ pinFile: other }, /check its label and PIN/)
    await rejects({ pinFile: `${other}-none` }, /PIN file \S+ cannot be read \(ENOENT\)/)
    await rejects({ token: 'elsewhere' }, /no token named elsewhere/)
    await rejects({ module: '/no/such/library.so' }, /\/no\/such\/library\.so cannot be loaded/)
    await rejects({ packageFolder: '/no/such/package' }, /npm install pkcs11js/)
    await assert.rejects(store.aesKey('master'), { code: 'KEY_STORE_UNAVAILABLE' })
    store = await openToken(token.options)
    assert.ok(await store.aesKey('master'))
  })

  it('stay in it: the module gives out no key that was made there', async () => {
    await store[Symbol.asyncDispose]()
    for (const name of ['made-secp256k1', 'made-P-256', 'made-Ed25519', 'made-aes'])
      assert.deepEqual(token.protectionOf(name), [{ isPrivate: true, isSensitive: true, isExtractable: false }], name)
    store = await openToken(token.options)
  })
})

/** Makes a package in the place of pkcs11js. It runs `onSearch` when a key is looked for; SoftHSM2 cannot be made to hang or fail. */
async function packageThat(onSearch: string) {
  const folder = testFolder()
  const [index, pinFile] = ['index.js', 'pin'].map((name) => join(folder, name)) as [string, string]
  await writeFile(pinFile, '1234')
  await writeFile(
    index,
    `const inFolder = (name) => require('node:path').join(__dirname, name)
    exports.PKCS11 = class {
      load() {}
      close() {}
      C_Initialize() {}
      C_Finalize() {}
      C_GetSlotList = () => [Buffer.alloc(1)]
      C_GetTokenInfo = () => ({ label: 'touchstone' })
      C_GetMechanismList = () => []
      C_OpenSession = () => Buffer.alloc(1)
      C_Login() {}
      C_CloseSession() {}
      C_FindObjectsInit() { ${onSearch} }
      C_FindObjects = () => []
      C_FindObjectsFinal() {}
    }`,
  )
  return { folder, options: { module: 'none', token: 'touchstone', pinFile, packageFolder: folder } }
}

describe('a token whose thread ends', () => {
  for (const [onSearch, message] of [
    ['process.exit()', 'The PKCS#11 token is closed.'],
    ["process.nextTick(() => { throw new Error('lost') })", 'The thread of the PKCS#11 token failed.'],
  ] as const)
    it(`fails the calls that wait for it, and later ones, at once: ${message}`, async () => {
      const { options } = await packageThat(onSearch)
      await using store = await openToken(options, { operationMs: 240_000 })
      const [, second] = await Promise.allSettled([store.signingKey('operator'), store.signingKey('operator')])
      const later = await store.aesKey('master').catch((error: unknown) => error)
      for (const error of [(second as PromiseRejectedResult).reason, later] as ServiceError[])
        assert.deepEqual([error.code, error.message], ['KEY_STORE_UNAVAILABLE', message])
    })
})

describe('a token that hangs', () => {
  it('costs its callers the deadline and the event loop nothing, and works again when it answers', async () => {
    const { folder, options } = await packageThat(`
      while (!require('node:fs').existsSync(inFolder('released')))
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10)`)
    await using store = await openToken(options, { operationMs: 50 })
    await assert.rejects(store.signingKey('operator'), {
      code: 'KEY_STORE_UNAVAILABLE',
      message: 'The PKCS#11 token did not answer within 50 ms.',
    })
    await writeFile(join(folder, 'released'), '')
    await until(async () => (await store.signingKey('operator').catch(() => 'late')) === null)
  })

  it('keeps no process from its end, whether that closes the token or not', async () => {
    // No writer ever opens the pipe: unlike a wait in JavaScript, nothing but a signal interrupts that.
    const { folder, options } = await packageThat(`require('node:fs').openSync(inFolder('pipe'))`)
    execFileSync('mkfifo', [join(folder, 'pipe')])
    const ended = async (name: string, last: string) => {
      const program = join(folder, name)
      const text = `
        const { openToken } = await import(${JSON.stringify(import.meta.resolve('./token.ts'))})
        const store = await openToken(${JSON.stringify(options)}, { operationMs: 50 })
        const isLate = await store.signingKey('operator').then(() => false, () => true)
        if (!isLate) process.exit(3)
        ${last}`
      await writeFile(program, text)
      return new Promise<unknown>((resolve) => {
        execFile(process.execPath, [program], { timeout: 240_000, killSignal: 'SIGKILL' }, (error, _out, err) =>
          resolve(error === null ? 0 : (error.signal ?? err)),
        )
      })
    }
    assert.deepEqual(
      await Promise.all([
        ended('exits.mjs', 'process.exit()'),
        ended('closes.mjs', 'await store[Symbol.asyncDispose]()'),
      ]),
      ['SIGTERM', 'SIGTERM'],
    )
  })
})

describe('AES-CMAC of single blocks', () => {
  it('equals RFC 4493 for every kind of length', () => {
    const key = Buffer.from('2b7e151628aed2a6abf7158809cf4f3c', 'hex')
    for (const length of [0, 1, 15, 16, 17, 31, 32, 40, 64]) {
      const message = Uint8Array.from(randomBytes(length))
      assert.equal(hex(cmacOfBlocks(encryptBlock(key), message)), hex(cmac(message, key)))
    }
  })
})
