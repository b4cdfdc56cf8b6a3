import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { DataIntegrityProof } from '@digitalbazaar/data-integrity'
import { createVerifyCryptosuite } from '@digitalbazaar/eddsa-jcs-2022-cryptosuite'
import { _checkCredential } from '@digitalbazaar/vc'
import { checkStatus, decodeList } from '@digitalbazaar/vc-bitstring-status-list'
import { expanded, loaderWith } from './_documents.ts'
import { baseUrl, did, now, sampleInput } from './_fixtures.ts'
import { passportOf } from './credential.ts'
import { didDocument } from './did-document.ts'
import { generateIssuerKeys, readIssuerKeys } from './issuer-keys.ts'
import { createSigner, snapshotOf } from './signing.ts'
import {
  createStatusIndexes,
  encodeList,
  listEntries,
  statusEntries,
  statusListCredential,
  type StatusIndex,
  type StatusStorage,
} from './status-list.ts'

const issuer = { did, name: 'Example Verification Service' }

/** A store that keeps the two rules of its table: one index a token, one token an index. */
function tableStorage() {
  const rows = new Map<bigint, StatusIndex>()
  const storage: StatusStorage = {
    find: async (tokenId) => rows.get(tokenId) ?? null,
    async claim(tokenId, at) {
      const isTaken = [...rows.values()].some(({ list, index }) => list === at.list && index === at.index)
      if (isTaken || rows.has(tokenId)) return false
      rows.set(tokenId, at)
      return true
    },
    count: async () => rows.size,
  }
  return { rows, storage }
}

describe('a status list', () => {
  it('is decoded bit by bit by the W3C list library', async () => {
    const set = [0, 1, 7, 8, 94_567, listEntries - 1]
    const list = await decodeList({ encodedList: encodeList(set) })
    assert.equal(list.length, 131_072)
    const found = Array.from({ length: list.length }, (_none, index) => index).filter((index) => list.getStatus(index))
    assert.deepEqual(found, set)
  })

  it('refuses an index outside of it', () => {
    for (const index of [-1, listEntries, 1.5, NaN]) assert.throws(() => encodeList([index]), { code: 'INTERNAL' })
  })

  it('is a credential of VCDM 2.0 with a short life', async () => {
    const credential = statusListCredential({ baseUrl, issuer, purpose: 'suspension', list: 1, set: [5], now })
    _checkCredential({ credential, now: new Date(now) })
    await expanded(credential)
    assert.equal(credential.id, 'https://verify.example/api/status/suspension/1')
    assert.equal(credential.credentialSubject.ttl, 300_000)
    assert.equal(credential.validUntil, '2026-11-20T10:30:20Z')
  })
})

describe('the status of a signed passport', () => {
  const keyText = generateIssuerKeys()
  const read = readIssuerKeys(keyText)
  const keys = read.ok ? read.keys : []
  const signer = createSigner({ did, keys })
  const index = 94_567
  const status = statusEntries(baseUrl, { list: 1, index })
  // The list library checks times against the clock of the machine.
  const today = Date.now()

  async function statusOf(suspended: readonly number[], revoked: readonly number[], forge = (list: object) => list) {
    const document = didDocument({ baseUrl, did, keys })
    const lists = [['suspension', suspended] as const, ['revocation', revoked] as const].map(([purpose, set]) => {
      const list = statusListCredential({ baseUrl, issuer, purpose, list: 1, set, now: today })
      return [list.id, forge(signer.addProof(list, today))] as const
    })
    const methods = (document.verificationMethod ?? []).map((method) => [
      method.id,
      { '@context': 'https://w3id.org/security/multikey/v1', ...method },
    ])
    const documentLoader = loaderWith({ [did]: document, ...Object.fromEntries(methods), ...Object.fromEntries(lists) })
    const credential = signer.addProof(
      snapshotOf(passportOf(sampleInput({ now: today })), { now: today, status }),
      today,
    )
    const suite = new DataIntegrityProof({ cryptosuite: createVerifyCryptosuite() })
    const { verified, results } = await checkStatus({ credential, documentLoader, suite })
    return {
      verified,
      set: (results ?? []).filter((each) => each.status).map((each) => each.credentialStatus.statusPurpose),
    }
  }

  it('is read from the signed lists', async () => {
    assert.deepEqual(await statusOf([], [index - 1, index + 1]), { verified: true, set: [] })
    assert.deepEqual(await statusOf([index], []), { verified: true, set: ['suspension'] })
    assert.deepEqual(await statusOf([index], [index]), { verified: true, set: ['suspension', 'revocation'] })
  })

  it('is not believed from a list that was changed after signing', async () => {
    const cleared = (list: object) => ({ ...list, validUntil: '2099-01-01T00:00:00Z' })
    assert.equal((await statusOf([index], [], cleared)).verified, false)
  })
})

describe('a status index', () => {
  it('is given once and for ever', async () => {
    const { storage } = tableStorage()
    const indexOf = createStatusIndexes(storage)
    assert.deepEqual(await indexOf(1n), await indexOf(1n))
    assert.notDeepEqual(await indexOf(1n), await indexOf(2n))
  })

  it('is random and another one when the first is taken', async () => {
    const { storage, rows } = tableStorage()
    const chosen = [7, 7, 7, 9]
    const indexOf = createStatusIndexes(storage, () => chosen.shift() ?? 0)
    await indexOf(1n)
    await indexOf(2n)
    assert.deepEqual(
      [...rows.values()],
      [
        { list: 1, index: 7 },
        { list: 1, index: 9 },
      ],
    )
  })

  it('is in the next list once the first is half full', async () => {
    const { storage } = tableStorage()
    const indexOf = createStatusIndexes({ ...storage, count: async () => listEntries / 2 })
    assert.equal((await indexOf(1n)).list, 2)
  })

  it('is what the other process claimed, when two ask at once', async () => {
    const { storage } = tableStorage()
    const indexOf = createStatusIndexes(storage)
    const [first, second] = await Promise.all([indexOf(1n), indexOf(1n)])
    assert.deepEqual(first, second)
  })

  it('ends with an error when the store refuses for ever', async () => {
    const indexOf = createStatusIndexes({ find: async () => null, claim: async () => false, count: async () => 0 })
    await assert.rejects(indexOf(1n), { code: 'INTERNAL' })
  })
})
