/** The service with its private keys in a PKCS#11 token, SoftHSM2. */
import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { compactVerify, importJWK } from 'jose'
import { attestationSigner, type Hex } from '@touchstone/verdict'
import { openIssuer } from '../../../src/passport/signing/issuer.ts'
import { openKeySource } from '../../../src/payments/attestation/source.ts'
import { openToken } from '../../../src/keys/pkcs11/token.ts'
import type { KeyStore } from '../../../src/keys/key.ts'
import { createToken, skipToken, type TestToken } from '../../support/softhsm.ts'

describe('keys that are made in a token', { skip: skipToken }, () => {
  let token: TestToken
  let keyStore: KeyStore & AsyncDisposable
  let folder: string
  before(async () => {
    token = createToken()
    keyStore = await openToken(token.options)
    folder = await mkdtemp(join(tmpdir(), 'touchstone-token-'))
  })
  after(async () => {
    await keyStore[Symbol.asyncDispose]()
    token[Symbol.dispose]()
    await rm(folder, { recursive: true })
  })

  it('sign passports, through a restart and a rotation; the file holds public halves only', async () => {
    const open = () => openIssuer({ folder, signing: true, keyStore })
    const signed = async () => {
      const issuer = await open()
      const signer = issuer.signerFor('did:web:verify.example')
      const { proof } = await signer.addProof({ name: 'item' }, 0)
      const jws = await signer.signJwt({ name: 'item' })
      return { issuer, kid: proof.verificationMethod, jws }
    }
    const first = await signed()
    assert.equal(first.kid, 'did:web:verify.example#key-2')
    const again = await signed()
    assert.deepEqual(
      again.issuer.keys().map(({ publicJwk }) => publicJwk),
      first.issuer.keys().map(({ publicJwk }) => publicJwk),
    )
    const [es256] = again.issuer.keys()
    await compactVerify(first.jws, await importJWK({ ...es256?.publicJwk }, 'ES256'))
    await again.issuer.rotate()
    assert.equal((await signed()).kid, 'did:web:verify.example#key-4')
    const file = JSON.parse(await readFile(join(folder, 'issuer.jwks.json'), 'utf8')) as { keys: object[] }
    assert.equal(file.keys.length, 4)
    for (const key of file.keys) assert.ok(!('d' in key))
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
