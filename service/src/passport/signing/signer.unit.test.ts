/** Signed passports, checked by the libraries that others use. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { _checkCredential, verifyCredential } from '@digitalbazaar/vc'
import { compactVerify, decodeProtectedHeader, importJWK, jwtVerify } from 'jose'
import { catchAllTerms, expanded, loaderWith, passportErrors } from '../../../test/support/passport/documents.ts'
import { baseUrl, did, now, sampleInput } from '../../../test/support/passport/fixtures.ts'
import { changed, documentsOf, keysOf, proofSuite } from '../../../test/support/passport/issuer.ts'
import { passportOf } from '../credential.ts'
import { didDocument } from '../did-document.ts'
import { generateIssuerKeys } from './issuer-keys.ts'
import { createSigner, snapshotClaims, snapshotOf } from './signer.ts'

const text = await generateIssuerKeys()
const rotated = await changed(text, { kind: 'rotate' })
const passport = passportOf(sampleInput())
const at = { list: 1, index: 94_567 }
const snapshot = snapshotOf(passport, { now, baseUrl, at, profile: 'untp' })
const signer = createSigner({ did, keys: keysOf(text) })

function verifyProof(credential: object, keys = keysOf(text), at = now) {
  // The signed entries have a status; their lists are checked in status-list.unit.test.ts.
  const checkStatus = async () => ({ verified: true })
  return verifyCredential({
    credential,
    suite: proofSuite(),
    documentLoader: loaderWith(documentsOf(keys)),
    now: new Date(at),
    checkStatus,
  })
}

function keyFor(jws: string, keys = keysOf(text)) {
  const { kid } = decodeProtectedHeader(jws)
  const method = didDocument({ baseUrl, did, keys }).verificationMethod?.find(({ id }) => id === kid)
  return importJWK(method !== undefined && 'publicKeyJwk' in method ? { ...method.publicKeyJwk } : {}, 'ES256')
}

async function verifyJws(jws: string, keys = keysOf(text)): Promise<unknown> {
  const { payload } = await compactVerify(jws, await keyFor(jws, keys), { algorithms: ['ES256'] })
  return JSON.parse(Buffer.from(payload).toString())
}

describe('a signed snapshot', () => {
  it('says that it is signed, ends after a day and names its status; the unsigned passport is untouched', () => {
    const before = JSON.stringify(passport)
    const { description, validUntil, credentialStatus } = snapshotOf(passport, { now, baseUrl, at, profile: 'untp' })
    assert.match(description, /^Signed passport/)
    assert.equal(validUntil, '2026-11-21T09:30:20Z')
    assert.deepEqual(credentialStatus, {
      id: `${baseUrl}/api/status/suspension/1#94567`,
      type: 'BitstringStatusListEntry',
      statusPurpose: 'suspension',
      statusListIndex: 94_567,
      statusListCredential: `${baseUrl}/api/status/suspension/1`,
    })
    assert.equal(JSON.stringify(passport), before)
    assert.match(passport.description, /^Unsigned passport/)
  })

  it('has a form with the two statuses of W3C, which names no schema because UNTP rejects it', async () => {
    const credential = snapshotOf(passport, { now, baseUrl, at, profile: 'w3c' })
    assert.deepEqual(
      [credential.credentialStatus]
        .flat()
        .map(({ statusPurpose, statusListIndex }) => [statusPurpose, statusListIndex]),
      [
        ['suspension', '94567'],
        ['revocation', '94567'],
      ],
    )
    assert.ok(!('credentialSchema' in credential))
    assert.deepEqual(
      passportErrors(credential).map((error) => error.split(' ')[0]),
      ['/credentialStatus'],
    )
    _checkCredential({ credential, now: new Date(now) })
    assert.deepEqual(catchAllTerms(await expanded(credential)), [])
  })
})

describe('application/vc+jwt', () => {
  it('is a JWS over the credential with the header of VC-JOSE-COSE', async () => {
    const jws = await signer.signJwt(snapshot)
    assert.deepEqual(decodeProtectedHeader(jws), { alg: 'ES256', typ: 'vc+jwt', cty: 'vc', kid: `${did}#key-1` })
    assert.deepEqual(await verifyJws(jws), JSON.parse(JSON.stringify(snapshot)))
  })

  it('ends for a library for JWT when the passport does, and is still UNTP and JSON-LD', async () => {
    const claims = snapshotClaims(snapshot)
    assert.deepEqual([passportErrors(claims), catchAllTerms(await expanded(claims))], [[], []])
    const jws = await signer.signJwt(claims)
    const end = Date.parse(snapshot.validUntil)
    const verifyAt = async (at: number) => jwtVerify(jws, await keyFor(jws), { currentDate: new Date(at) })
    await verifyAt(end - 1_000)
    await assert.rejects(verifyAt(end), { code: 'ERR_JWT_EXPIRED' })
  })

  it('fails after one flipped byte, wherever it is', async () => {
    const jws = await signer.signJwt(snapshot)
    for (const part of [0, 1, 2]) {
      const parts = jws.split('.').map((each) => Buffer.from(each, 'base64url'))
      const bytes = parts[part] ?? Buffer.alloc(0)
      const at = bytes.length >> 1
      bytes[at] = (bytes[at] ?? 0) ^ 1
      await assert.rejects(verifyJws(parts.map((each) => each.toString('base64url')).join('.')))
    }
  })

  it('signed before a rotation verifies after it, and fails with a key of the same name', async () => {
    const jws = await signer.signJwt(snapshot)
    await verifyJws(jws, keysOf(rotated))
    await assert.rejects(verifyJws(jws, keysOf(await generateIssuerKeys())))
    assert.equal(
      decodeProtectedHeader(await createSigner({ did, keys: keysOf(rotated) }).signJwt(snapshot)).kid,
      `${did}#key-3`,
    )
  })
})

describe('the signature of a document', () => {
  it('is over its RFC 8785 form, however its members are ordered', async () => {
    const jws = await signer.signDocument({ b: 1, a: { d: 'é', c: 2 } })
    assert.ok(jws)
    const payload = Buffer.from('{"a":{"c":2,"d":"é"},"b":1}').toString('base64url')
    const whole = `${jws.protected}.${payload}.${jws.signature}`
    await verifyJws(whole)
    assert.deepEqual(decodeProtectedHeader(whole), { alg: 'ES256', typ: 'JOSE', kid: `${did}#key-1` })
    assert.equal(await createSigner({ did, keys: [] }).signDocument({}), null)
  })
})

describe('application/vc', () => {
  it('has an embedded eddsa-jcs-2022 proof that verifies', async () => {
    const signed = await signer.addProof(snapshot, now)
    const { verified, error } = await verifyProof(signed)
    assert.ok(verified, String(error))
    assert.equal(signed.proof.verificationMethod, `${did}#key-2`)
    assert.equal(signed.proof.created, '2026-11-20T09:30:20Z')
    assert.deepEqual(signed.proof['@context'], snapshot['@context'], 'VC-DI-EDDSA §3.3.1')
  })

  it('fails after a changed value, a changed proof and its end', async () => {
    const signed = await signer.addProof(snapshot, now)
    const { proofValue } = signed.proof
    const otherLast = proofValue.endsWith('2') ? '3' : '2'
    const broken = [
      { ...signed, name: `${signed.name} ` },
      { ...signed, validUntil: '2027-11-21T09:30:20Z' },
      { ...signed, proof: { ...signed.proof, created: '2026-11-20T09:30:21Z' } },
      { ...signed, proof: { ...signed.proof, proofValue: proofValue.slice(0, -1) + otherLast } },
    ]
    for (const credential of broken) assert.equal((await verifyProof(credential)).verified, false)
    assert.equal((await verifyProof(signed, keysOf(text), now + 25 * 3_600_000)).verified, false)
  })

  it('signed before a rotation verifies after it, and not once its key is revoked', async () => {
    const signed = await signer.addProof(snapshot, now)
    assert.equal((await verifyProof(signed, keysOf(rotated))).verified, true)
    assert.equal(
      (
        await verifyProof(
          signed,
          keysOf(await changed(text, { kind: 'revoke', id: 'key-2', at: '2026-11-20T00:00:00Z' })),
        )
      ).verified,
      false,
    )
    assert.equal((await verifyProof(signed, keysOf(await generateIssuerKeys()))).verified, false)
  })
})

describe('a signer', () => {
  it('offers what it has keys for, and fails for the rest', async () => {
    assert.deepEqual(signer.forms, ['application/vc+jwt', 'application/vc'])
    const none = createSigner({ did, keys: [] })
    assert.deepEqual(none.forms, [])
    await assert.rejects(none.signJwt(snapshot), { code: 'INTERNAL' })
    await assert.rejects(none.addProof(snapshot, now), { code: 'INTERNAL' })
    const onlyEs256 = createSigner({ did, keys: keysOf(text).slice(0, 1) })
    assert.deepEqual(onlyEs256.forms, ['application/vc+jwt'])
  })
})
