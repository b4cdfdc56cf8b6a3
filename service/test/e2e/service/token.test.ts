/** The service with its private keys in a PKCS#11 token, SoftHSM2. */
import assert from 'node:assert/strict'
import { createECDH, randomBytes } from 'node:crypto'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { compactVerify, decodeProtectedHeader, importJWK } from 'jose'
import { recoverMessageAddress } from 'viem'
import { privateKeyToAddress } from 'viem/accounts'
import { attestationSigner, type Hex, type PublishedKey } from '@touchstone/verdict'
import { openIssuer } from '../../../src/passport/signing/issuer.ts'
import { openKeySource } from '../../../src/payments/attestation/source.ts'
import { readConfig } from '../../../src/app/config/config.ts'
import { facilitatorAccounts, openRoleKeys } from '../../../src/app/keys.ts'
import { openTagKeyStore } from '../../../src/tap/keys/store.ts'
import { createDemoTag } from '../../../src/tap/provisioning/software-tag.ts'
import { createQueue } from '../../../src/lib/async/concurrency.ts'
import { createAesKey } from '../../../src/tap/sun/aes.ts'
import { createAuthenticate } from '../../../src/tap/sun/authenticate.ts'
import { readPicc } from '../../../src/tap/sun/sun.ts'
import { testFolder } from '../../support/folder.ts'
import { newUid, parametersOf, testTemplate } from '../../support/tap/tags.ts'
import { storedEthereumKey } from '../../../src/keys/ethereum.ts'
import { openToken } from '../../../src/keys/pkcs11/token.ts'
import type { KeyStore } from '../../../src/keys/key.ts'
import { startDev, touchstone } from '../../support/processes/cli.ts'
import { findInMemory } from '../../support/processes/memory.ts'
import { createToken, type ImportedKey, skipToken, type TestToken } from '../../support/softhsm.ts'

describe('keys that are made in a token', { skip: skipToken }, () => {
  let token: TestToken
  let keyStore: KeyStore & AsyncDisposable
  const folder = testFolder()
  before(async () => {
    token = createToken()
    keyStore = await openToken(token.options)
  })
  after(async () => {
    await keyStore[Symbol.asyncDispose]()
  })

  it('are made by a command that prints their addresses', async () => {
    const run = async (...args: string[]) =>
      touchstone(['hsm', ...args], { ...token.env, KEYS: token.setting, DATA_DIR: folder }).ended
    const made = await run('generate', 'operator', 'facilitator', 'facilitator-2')
    assert.deepEqual([made.exit, made.err], [0, ''])
    assert.match(made.out, /^operator  secp256k1  0x[0-9a-fA-F]{40}\nfacilitator  .*\nfacilitator-2  .*\n$/)
    const again = await run('generate', 'operator')
    assert.deepEqual([again.exit, again.err], [1, 'touchstone: The PKCS#11 token has a key named operator already.\n'])
    const listed = (await run('list')).out
    for (const address of made.out.match(/0x[0-9a-fA-F]{40}/g) ?? []) assert.ok(listed.includes(address))
    const accounts = await facilitatorAccounts(readConfig({}), () => keyStore)
    assert.deepEqual(
      accounts.map(({ address }) => address),
      made.out.match(/0x[0-9a-fA-F]{40}/g)?.slice(1),
    )
  })

  it('are those of single roles where they have their names, and the operator is the rest', async () => {
    const issuer = await keyStore.generateSigningKey('operator-issuer', 'secp256k1')
    const keys = await openRoleKeys(readConfig({}), (name) => (name === 'operator' ? keyStore : null))
    assert.deepEqual(
      keys.map(({ role, from }) => `${role} ${from}`),
      [
        'issuer operator-issuer',
        ...['binder', 'qa', 'guardian', 'recycler', 'relayer'].map((role) => `${role} operator`),
      ],
    )
    assert.equal(keys[0]?.account.address, storedEthereumKey(issuer).address)
    const signed = await keys[0]?.account.signMessage({ message: 'mint' })
    assert.equal(await recoverMessageAddress({ message: 'mint', signature: signed ?? '0x' }), keys[0]?.account.address)
  })

  it('sign passports, through two starts at once, a restart and a rotation; the file holds public halves only', async () => {
    const alone = createQueue()
    const open = () => openIssuer({ folder, signing: true, keyStore, alone })
    const signed = async () => {
      const issuer = await open()
      const signer = issuer.signerFor('did:web:verify.example')
      const { proof } = await signer.addProof({ name: 'item' }, 0)
      const jws = await signer.signJwt({ name: 'item' })
      return { issuer, kid: proof.verificationMethod, jws }
    }
    const [first] = await Promise.all([signed(), open()])
    assert.equal(first.kid, 'did:web:verify.example#key-2')
    const again = await signed()
    assert.deepEqual(
      again.issuer.keys().map(({ publicJwk }) => publicJwk),
      first.issuer.keys().map(({ publicJwk }) => publicJwk),
    )
    const [es256] = again.issuer.keys()
    await compactVerify(first.jws, await importJWK({ ...es256?.publicJwk }, 'ES256'))
    await again.issuer.change({ kind: 'rotate' })
    assert.equal((await signed()).kid, 'did:web:verify.example#key-4')
    const file = JSON.parse(await readFile(join(folder, 'issuer.jwks.json'), 'utf8')) as { keys: object[] }
    assert.equal(file.keys.length, 4)
    for (const key of file.keys) assert.ok(!('d' in key))
  })

  it('never sign passports again that were revoked after a backup, when its file is restored and the keys are rotated', async () => {
    const path = join(folder, 'issuer.jwks.json')
    const issuer = await openIssuer({ folder, signing: true, keyStore })
    const backup = await readFile(path)
    assert.equal(await issuer.change({ kind: 'rotate' }), null)
    const stolen = issuer.keys().filter(({ status }) => status === 'active')
    for (const { id } of stolen)
      assert.equal(await issuer.change({ kind: 'revoke', id, at: '2026-11-20T08:00:00Z' }), null)
    await writeFile(path, backup)
    await issuer.reload()
    assert.equal(await issuer.change({ kind: 'rotate' }), null)
    const halves = new Set(issuer.keys().map(({ publicJwk }) => publicJwk.x))
    assert.deepEqual(
      stolen.filter(({ publicJwk }) => halves.has(publicJwk.x)),
      [],
    )
  })

  it('verify taps with one call for a new tag, and cost forged links none unless they read as a chip by chance', async () => {
    let calls = 0
    const counting: KeyStore = {
      ...keyStore,
      aesKey: async (name) => {
        const key = await keyStore.aesKey(name)
        return key && { ...key, cmac: (message) => ((calls += 1), key.cmac(message)) }
      },
    }
    const keyFile = { kek: Uint8Array.from(randomBytes(32)), demo: true }
    const shared = { putBatch: async () => true, batches: async () => [] }
    const store = await openTagKeyStore({ folder, keyFile, shared, keyStore })
    assert.ok((await store.create({ id: 'watches', demo: true })).ok)
    const reopened = await openTagKeyStore({ folder, keyFile, shared, keyStore: counting })
    const batch = reopened.record('watches') ?? assert.fail()
    assert.equal(batch.fileMaster, null)
    await assert.rejects(openTagKeyStore({ folder, keyFile, shared }), /are in a PKCS#11 token: name it in KEYS/)
    const authenticate = createAuthenticate({ keys: reopened.keys })
    const bytes = (text: string) => Uint8Array.from(Buffer.from(text, 'hex'))

    const [uid, fileMaster] = [newUid(), reopened.fileMaster('watches')]
    const tag = await createDemoTag({ batch, fileMaster, uid, template: testTemplate(batch) })
    calls = 0
    for (let count = 0; count < 3; count++) {
      const { picc, cmac } = parametersOf(tag.tap())
      assert.ok((await authenticate(bytes(picc), bytes(cmac))).genuine)
    }
    assert.equal(calls, 1)

    calls = 0
    let likeChips = 0
    const meta = createAesKey(batch.metaKey ?? assert.fail())
    for (let count = 0; count < 2_000; count++) {
      const picc = Uint8Array.from(randomBytes(16))
      if (readPicc(meta.ecbDecrypt(picc)).form !== 'other') likeChips += 1
      assert.ok(!(await authenticate(picc, Uint8Array.from(randomBytes(8)))).genuine)
    }
    assert.ok(calls <= likeChips && likeChips < 200, `${calls} calls, ${likeChips} of 2000 read as a chip`)
  })

  it('sign attestations, and another process finds them in their order', async () => {
    const open = () => openKeySource({ folder, keyStore, isPublicKnowledge: () => false }, 1_000)
    const [source, other] = [await open(), await open()]
    assert.deepEqual(source.own(), [])
    const made = [await source.make?.(1_001), await source.make?.(1_002)].map((key) => key?.key.address)
    await other.reload()
    assert.deepEqual(
      other.own().map(({ key }) => key.address),
      made,
    )
    const hash: Hex = `0x${'12'.repeat(32)}`
    const key = other.own()[1]?.key ?? assert.fail()
    assert.equal(attestationSigner(hash, await key.sign(hash)), key.address.toLowerCase())
  })
})

describe('npm start with every key in a token', { skip: skipToken }, () => {
  let token: TestToken
  const dataDir = testFolder()
  let env: Record<string, string>
  let running: Awaited<ReturnType<typeof startDev>> | undefined
  before(async () => {
    token = createToken()
    token.importKeys(imported)
    env = { ...token.env, DATA_DIR: dataDir, KEYS: token.setting, PASSPORT_SIGNING: 'on' }
  })
  after(async () => {
    await running?.stop('SIGKILL')
  })

  /** Keys that the test knows, to search for; the service makes the others. */
  const imported = [
    ...['operator', 'attester', 'facilitator', 'attestation-1'].map((name) => pairOf(name, 'secp256k1')),
    pairOf('issuer-key-1', 'prime256v1'),
    ...['tag/demo/file', 'tag/demo/app'].map((name) => ({ name, value: Uint8Array.from(randomBytes(16)) })),
  ]

  /** Uses every key once, and returns what the public knows of them. */
  async function useKeys({ urls, said }: Awaited<ReturnType<typeof startDev>>) {
    const [tap = ''] = said().match(/http:\S+picc=\S+/g) ?? []
    assert.match(await (await fetch(tap)).text(), /<body data-tap="tapped"/)
    const paid = await touchstone(['pay', '3', '--gateway', urls.gateway], {}).ended
    assert.equal(paid.exit, 0, paid.err)
    const { keys } = (await (await fetch(`${urls.gateway}/.well-known/attestation.json`)).json()) as {
      keys: PublishedKey[]
    }
    const { pathname, search } = new URL(tap)
    const passport = await fetch(`${urls.verification}/api/dpp${pathname}${search}`, {
      headers: { accept: 'application/vc+jwt' },
    })
    assert.equal(passport.headers.get('content-type'), 'application/vc+jwt')
    return { keys, signedBy: decodeProtectedHeader(await passport.text()).kid?.split('#')[1] }
  }

  it('mints, taps, sells and signs; after a SIGKILL it goes on with the same keys, none of which is in its memory', async () => {
    running = await startDev(env)
    const before = await useKeys(running)
    assert.equal(before.signedBy, 'key-1')
    const attestation = imported.find(({ name }) => name === 'attestation-1') ?? assert.fail()
    const address = privateKeyToAddress(`0x${Buffer.from(attestation.value).toString('hex').padStart(64, '0')}`)
    assert.deepEqual(
      before.keys.map((key) => key.address),
      [address],
    )
    await running.stop('SIGKILL')
    running = await startDev(env)
    assert.deepEqual(await useKeys(running), before)
    const known = JSON.parse(await readFile(join(dataDir, 'keys', 'demo.json'), 'utf8')) as { kek: string }
    const secrets = imported.map(({ name, value }) => [name, value] as const)
    const searched = new Map([...secrets, ['TAG_KEK', Uint8Array.from(Buffer.from(known.kek, 'hex'))]])
    assert.deepEqual(
      [...findInMemory(running.child.pid ?? 0, searched)],
      ['TAG_KEK'],
      'only what is no key of the token',
    )
    assert.equal(await running.stop(), 0)
    const kept = await readFile(join(dataDir, 'keys', 'issuer.jwks.json'), 'utf8')
    assert.ok(!kept.includes('"d"'))
    assert.deepEqual((await readdir(dataDir)).includes('station'), false)
  })
})

/** A pair of keys to import. */
function pairOf(name: string, curve: 'secp256k1' | 'prime256v1'): ImportedKey {
  const pair = createECDH(curve)
  const point = Buffer.concat([Buffer.of(4, 65), pair.generateKeys()])
  const parameters = Buffer.from(curve === 'secp256k1' ? '06052b8104000a' : '06082a8648ce3d030107', 'hex')
  return { name, value: pair.getPrivateKey(), pair: { parameters, point } }
}
