/** Attestation keys (spec §4.8): where they come from, and how one follows another without making old proofs worthless. */
import { openEmptyPglite } from '../../support/database/pglite.ts'
import assert from 'node:assert/strict'
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { attestationKeyId, verifyAttestation, type Hex } from '@touchstone/verdict'
import { hexToBytes } from 'viem'
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts'
import { isPublishedAddress, publishedAccounts } from '../../../src/domain/published-accounts.ts'
import { openAttestationKeys, type AttestationKeys, type KeyChange } from '../../../src/payments/attestation/keys.ts'
import { type Database } from '../../../src/db/database.ts'
import { migrate } from '../../../src/db/migrate.ts'
import { attestedContract, proofBy } from '../../support/attestation.ts'
import { until } from '../../support/wait.ts'

describe('attestation keys', () => {
  let dataDir: string
  let database: Database
  let clock = 1_795_227_313_000
  const now = () => clock
  const secondsLater = (seconds: number) => void (clock += seconds * 1000)
  before(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'touchstone-attestation-'))
    database = await openEmptyPglite()
    await migrate(database)
  })
  after(async () => {
    await database.close()
    await rm(dataDir, { recursive: true })
  })

  const openKeys = (more: Partial<Parameters<typeof openAttestationKeys>[0]> = {}) =>
    openAttestationKeys({
      folder: join(dataDir, 'keys'),
      database,
      isPublicKnowledge: isPublishedAddress,
      now,
      ...more,
    })

  const isBelieved = (proof: unknown, keys: AttestationKeys) =>
    verifyAttestation(proof, { keys: keys.published(), tokenId: 1042n, contract: attestedContract, now: now() / 1000 })
      .ok

  it('are made once, and stay for ever', async () => {
    const keys = await openKeys()
    const { address, keyId } = keys.active()
    assert.deepEqual(keys.published(), [
      { address, keyId, validFrom: clock / 1000, validUntil: null, status: 'active' },
    ])
    secondsLater(60)
    const again = await openKeys()
    assert.equal(again.active().address, address)
    assert.deepEqual(again.published(), keys.published())
    assert.ok(isBelieved(await proofBy(again, now), keys))
  })

  it('follow one another without a gap: announced, active, retired', async () => {
    const keys = await openKeys()
    const elsewhere = await openKeys()
    const old = keys.active()
    const oldProof = await proofBy(keys, now)
    secondsLater(10)
    const next = listed(await keys.add())
    assert.equal(next.status, 'next')
    assert.equal(keys.active().address, old.address)
    secondsLater(10)
    assert.equal(listed(await keys.switchTo(next.keyId)).status, 'active')
    assert.equal(keys.active().address, next.address)
    assert.deepEqual(
      keys.published().map(({ keyId, status, validUntil }) => [keyId, status, validUntil]),
      [
        [old.keyId, 'retired', clock / 1000 + 120],
        [next.keyId, 'active', null],
      ],
    )
    assert.ok(isBelieved(oldProof, keys) && isBelieved(await proofBy(keys, now), keys))

    // Another process, with a copy of the folder from before, signs validly until it has heard of the change.
    assert.equal(elsewhere.active().address, old.address)
    secondsLater(60)
    assert.ok(isBelieved(await proofBy(elsewhere, now), keys))
    elsewhere.published()
    await until(() => elsewhere.published().some(({ status }) => status === 'retired'))
    await assert.rejects(elsewhere.active().sign(`0x${'12'.repeat(32)}`), /may no longer sign/)
    assert.equal((await openKeys()).active().address, next.address)
  })

  it('that were stolen count for nothing, and another one takes over at once', async () => {
    const keys = await openKeys()
    const stolen = keys.active()
    const proof = await proofBy(keys, now)
    assert.ok(isBelieved(proof, keys))
    const revoked = listed(await keys.revoke(stolen.keyId, clock / 1000 - 5))
    assert.deepEqual([revoked.status, revoked.validUntil], ['revoked', clock / 1000 - 5])
    assert.equal(isBelieved(proof, keys), false)
    assert.notEqual(keys.active().address, stolen.address)
    assert.ok(isBelieved(await proofBy(keys, now), keys))
    assert.match(refusal(await keys.revoke(stolen.keyId)), /revoked already/)
    assert.match(refusal(await keys.switchTo(stolen.keyId)), /is revoked: add a new one/)
    assert.notEqual((await openKeys()).active().address, stolen.address)
  })

  it('say what cannot be done', async () => {
    const keys = await openKeys()
    const { keyId } = keys.active()
    assert.match(refusal(await keys.switchTo(keyId)), /signs already/)
    assert.match(refusal(await keys.retire(keyId)), /signs at the moment/)
    for (const change of [keys.switchTo, keys.retire, keys.revoke])
      assert.match(refusal(await change('attest-0')), /There is no key attest-0/)
    assert.match(refusal(await keys.add(publishedAccounts(1)[0]?.address)), /publicly known/)
    const foreign = listed(await keys.add(privateKeyToAddress(generatePrivateKey())))
    assert.match(refusal(await keys.add(foreign.address)), /listed already/)
    assert.match(refusal(await keys.switchTo(foreign.keyId)), /not in this data folder/)
    assert.equal(listed(await keys.retire(foreign.keyId)).status, 'retired')
    assert.match(refusal(await keys.retire(foreign.keyId)), /is retired already/)
  })

  it('may be configured: announced first, active with the restart, and the old one retired by hand', async () => {
    const privateKeys = [generatePrivateKey(), generatePrivateKey()] as [Hex, Hex]
    const [first, second] = privateKeys.map(attestationIdOf) as [string, string]
    const before_ = await openKeys({ privateKey: hexToBytes(privateKeys[0]) })
    const files = await readdir(join(dataDir, 'keys'))
    assert.equal(before_.active().keyId, first)
    assert.match(refusal(await before_.add()), /announce the next one by its address/)
    assert.equal(listed(await before_.add(privateKeyToAddress(privateKeys[1]))).status, 'next')
    assert.match(refusal(await before_.switchTo(second)), /configure the next one, restart/)
    const proof = await proofBy(before_, now)

    const after_ = await openKeys({ privateKey: hexToBytes(privateKeys[1]) })
    assert.equal(after_.active().keyId, second)
    assert.equal(listed(await after_.retire(first)).status, 'retired')
    assert.ok(isBelieved(proof, after_) && isBelieved(await proofBy(after_, now), after_))
    await assert.rejects(
      openKeys({ privateKey: hexToBytes(privateKeys[0]) }),
      /is retired, so its signatures are no longer valid/,
    )
    assert.deepEqual(await readdir(join(dataDir, 'keys')), files)

    listed(await after_.revoke(second))
    await assert.rejects(proofBy(after_, now), /signer_unavailable/)
  })

  it('are refused when they are publicly known, except in a demonstration', async () => {
    const [account] = publishedAccounts(1)
    const privateKey = account?.getHdKey().privateKey ?? new Uint8Array()
    await assert.rejects(openKeys({ privateKey }), /publicly known/)
    assert.equal((await openKeys({ privateKey, demo: true })).active().address, account?.address)
  })

  it('may come from a keystore; what is wrong with one is one sentence without its secrets', async () => {
    const [keystore, password] = [join(dataDir, 'keystore.json'), join(dataDir, 'password')]
    await writeFile(keystore, JSON.stringify(lightKeystore))
    await writeFile(password, 'foobar\nanother line')
    const source = { keystore, keystorePasswordFile: password }
    await assert.rejects(
      openKeys(source),
      /keystore\.json cannot be used: the password is wrong, or the file is damaged\.$/,
    )
    await writeFile(password, '\n')
    assert.equal((await openKeys(source)).active().address.toLowerCase(), `0x${lightKeystore.address}`)
    await assert.rejects(openKeys({ keystore }), /needs ATTESTATION_KEYSTORE_PASSWORD_FILE/)
    await assert.rejects(openKeys({ ...source, privateKey: new Uint8Array(32) }), /Configure one attestation key/)
    await assert.rejects(openKeys({ privateKey: new Uint8Array(32) }), /ATTESTATION_KEY holds no private key/)
  })
})

/** go-ethereum, accounts/keystore/testdata/very-light-scrypt.json. */
const lightKeystore = {
  address: '45dea0fb0bba44f4fcf290bba71fd57d7117cbb8',
  crypto: {
    cipher: 'aes-128-ctr',
    ciphertext: 'b87781948a1befd247bff51ef4063f716cf6c2d3481163e9a8f42e1f9bb74145',
    cipherparams: { iv: 'dc4926b48a105133d2f16b96833abf1e' },
    kdf: 'scrypt',
    kdfparams: {
      dklen: 32,
      n: 2,
      p: 1,
      r: 8,
      salt: '004244bbdc51cadda545b1cfa43cff9ed2ae88e08c61f1479dbb45410722f8f0',
    },
    mac: '39990c1684557447940d4c69e06b1b82b2aceacb43f284df65c956daf3046b85',
  },
  id: 'ce541d8d-c79b-40f8-9f8c-20f59616faba',
  version: 3,
}

function attestationIdOf(privateKey: Hex): string {
  return attestationKeyId(privateKeyToAddress(privateKey))
}

function listed(change: KeyChange) {
  assert.ok(!('refused' in change), 'refused' in change ? change.refused : '')
  return change
}

function refusal(change: KeyChange): string {
  assert.ok('refused' in change, 'it should have been refused')
  return change.refused
}
