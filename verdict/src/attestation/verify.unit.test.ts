/** The report of an attestation, line by line: what is compared, under which name, with what. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { contract, easOf, gateway, inOldForm, issuedAt, sold, stranger, withMembers } from '../../test/_attestation.ts'
import { failed, leavesOf, rowsOf } from '../../test/_report.ts'
import { attestationKeyId, type PublishedKey } from './keys.ts'
import { type AttestationReport, type AttestationTrust, verifyAttestation } from './verify.ts'

const signer = gateway.address.toLowerCase()
const now = issuedAt + 7
const trust: AttestationTrust = { signer: gateway.address, tokenId: 1042n, contract, now }
const whole = await sold()
const old = inOldForm(whole)
/** The report on the form with other members of its attestation. */
const changed = (members: object) => verifyAttestation(withMembers(whole, members), trust)

const keysOk = 'the keys of an attestation'
const noSignature = 'no signature of 65 bytes with low s'

/** The rows of the forms' keys, with the number of keys that is found. */
const keyRows = (attestation: number) => [
  ['keys', '13 keys', keysOk],
  ['chainRef', '5 keys', keysOk],
  ['attestation', `${attestation} keys`, keysOk],
  ['attestation.eip712', '5 keys', keysOk],
]
const plainRows = [
  ['version', '1', '1'],
  ['assetId', '1042', '1042'],
  ['chain', 'base-sepolia', 'base-sepolia'],
  ['state', 'ACTIVATED', 'ACTIVATED'],
  ['state_code', '3', '3'],
]
const networkRows = [
  ['network', 'base-sepolia', 'base-sepolia'],
  ['audit_status', 'unaudited', 'unaudited'],
  ['production_ready', 'false', 'false'],
]
const refRows = Object.entries({ ...whole.chainRef, chain_id: 84532, token_id: '1042' }).map(([name, value]) => [
  `chainRef.${name}`,
  String(value),
  String(value),
])
const rawRows = [
  ['attestation.message', 'an object', 'the same'],
  ['attestation.encoding', whole.attestation.encoding, 'abi.encode(uint256,uint8,uint256,uint64)'],
  ['attestation.digest', whole.attestation.digest, whole.attestation.digest],
  ['attestation.signature', signer, signer],
  ['attestation.keyId', `attest-${signer.slice(2, 18)}`, `attest-${signer.slice(2, 18)}`],
]
const typedRows = (field: string, primaryType: string) => [
  [`${field}.domain`, 'an object', 'the same'],
  [`${field}.types`, 'an object', 'the same'],
  [`${field}.primaryType`, primaryType, primaryType],
  [`${field}.message`, 'an object', 'the same'],
  [`${field}.signature`, signer, signer],
]
const trustRows = [
  ['token asked for', '1042', '1042'],
  ['contract trusted', contract, contract],
  ['age', '7 s', 'at most 300 s'],
  ['signer trusted', signer, gateway.address],
]

describe('the report of an attestation', () => {
  it('has a row for each field, with what is shown and what is signed', () => {
    const report = verifyAttestation(whole, trust)
    assert.deepEqual(rowsOf(report.checks), [
      ...keyRows(8),
      ['attestation.v2', '5 keys', keysOk],
      ...plainRows,
      ['authentic', 'true', 'true'],
      ['flagged', 'false', 'false'],
      ...networkRows,
      ...refRows,
      ...rawRows,
      ...typedRows('attestation.eip712', 'AssetState'),
      ...typedRows('attestation.v2', 'AssetAttestation'),
      ...trustRows,
    ])
    assert.deepEqual([report.ok, report.outcome, report.unsigned], [true, 'agrees', []])
    assert.ok('attested' in report && report.attested.ownerCommitment === null)
    assert.ok(report.checks.every(({ ok }) => ok))
  })

  it('has the rows of what is signed in the old form, and two that stay open', () => {
    const report = verifyAttestation(old, trust)
    assert.deepEqual(rowsOf(report.checks), [
      ...keyRows(7),
      ...plainRows,
      ...networkRows,
      ...refRows,
      ['authentic', 'true', 'not signed in this form'],
      ['flagged', 'false', 'not signed in this form'],
      ...rawRows,
      ...typedRows('attestation.eip712', 'AssetState'),
      ...trustRows,
    ])
    assert.deepEqual([report.ok, report.outcome, report.unsigned], [false, 'undecided', ['authentic', 'flagged']])
    const open = report.checks.filter(({ ok }) => !ok)
    assert.deepEqual(
      open.map(({ field, undecided }) => [field, undecided]),
      [
        ['authentic', true],
        ['flagged', true],
      ],
    )
    assert.ok('attested' in report)
    assert.deepEqual(report.attested, {
      tokenId: 1042n,
      state: 3,
      chainId: 84532,
      timestamp: issuedAt,
      blockNumber: 31_337_042,
      blockHash: whole.chainRef.block_hash,
      verifyingContract: contract,
      signer,
    })
  })
})

describe('a changed attestation', () => {
  const others = { string: 'other', number: 1, boolean: (value: unknown) => value !== true } as const
  const leaves = leavesOf(old).filter(([first]) => first !== 'payment')

  it('differs in the old form with any field changed that is signed', () => {
    for (const path of leaves) {
      const forged = structuredClone(old)
      const parent = Object(
        path.slice(0, -1).reduce((value: unknown, name) => Reflect.get(Object(value), name), forged),
      )
      const name = path.at(-1) ?? ''
      const value: unknown = Reflect.get(parent, name)
      const other = typeof value === 'boolean' ? !value : others[typeof value as 'string' | 'number']
      Reflect.set(parent, name, other)
      const report = verifyAttestation(forged, trust)
      assert.deepEqual([report.ok, report.outcome], [false, 'differs'], path.join('.'))
    }
  })

  it('shows no signer where the signature is none, and names each row that needs it', () => {
    const report = changed({ signature: `${whole.attestation.signature}00` })
    assert.deepEqual(failedRows(report), [
      ['attestation.signature', signer, noSignature],
      ['attestation.keyId', attestationKeyId(gateway.address), noSignature],
      ['signer trusted', 'none', gateway.address],
    ])
    assert.deepEqual([report.outcome, report.unsigned], ['differs', []])
    const capitals = whole.attestation.signature.toUpperCase().replace('X', 'x')
    assert.equal(failed(changed({ signature: capitals }))[0], 'attestation.signature')
    const typed = { ...whole.attestation.eip712, signature: '0x' }
    const v2 = { ...whole.attestation.v2, signature: 7 }
    assert.deepEqual(failedRows(changed({ eip712: typed, v2 })), [
      ['attestation.eip712.signature', signer, noSignature],
      ['attestation.v2.signature', signer, noSignature],
    ])
  })

  it('without a trusted signer is not trusted, even where its own rows agree', () => {
    const untrusted = verifyAttestation(whole, { now })
    assert.deepEqual(failedRows(untrusted), [['signer trusted', signer, 'no trusted signer was given']])
    assert.deepEqual([untrusted.ok, untrusted.outcome], [false, 'differs'])
    assert.deepEqual(failedRows(verifyAttestation(whole, { ...trust, signer: stranger.address })), [
      ['signer trusted', signer, stranger.address],
    ])
    const unpinned = verifyAttestation(whole, { now, signer: gateway.address })
    assert.deepEqual(rowsOf(unpinned.checks).slice(-4), [
      ['token asked for', '1042', 'not pinned by the caller'],
      ['contract trusted', contract, 'not pinned by the caller'],
      ['age', '7 s', 'at most 300 s'],
      ['signer trusted', signer, gateway.address],
    ])
    assert.deepEqual(failedRows(verifyAttestation(whole, { ...trust, tokenId: 'x' })), [
      ['token asked for', '1042', 'no token id'],
    ])
  })

  it('names the rows of a signer that is written otherwise, or is no address', () => {
    const of = (claimed: unknown) => failed(changed({ signer: claimed }))
    assert.deepEqual(of(signer), [])
    const rows = ['attestation.signature', 'attestation.eip712.signature', 'attestation.v2.signature']
    for (const claimed of [stranger.address, 'x', null, undefined])
      assert.ok(rows.every((row) => of(claimed).includes(row)))
  })

  it('may write the contract of a domain in any case of letters, but nothing else', () => {
    const of = (verifyingContract: string, name = 'Touchstone') => {
      const { eip712 } = whole.attestation
      const typed = { ...eip712, domain: { ...eip712.domain, verifyingContract, name } }
      return failed(changed({ eip712: typed }))
    }
    assert.deepEqual(of(contract.toLowerCase()), [])
    const message = { ...whole.attestation.message, timestamp: issuedAt + 1 }
    assert.deepEqual(failedRows(changed({ message })), [['attestation.message', 'an object', 'another']])
    assert.deepEqual(of(stranger.address), ['attestation.eip712.domain'])
    assert.deepEqual(of('0x'), ['attestation.eip712.domain'])
    assert.deepEqual(of(contract, 'touchstone'), ['attestation.eip712.domain'])
    for (const domain of [null, 'x', [], {}, { ...whole.attestation.eip712.domain, verifyingContract: 7 }]) {
      const typed = { ...whole.attestation.eip712, domain }
      assert.deepEqual(failed(changed({ eip712: typed })), ['attestation.eip712.domain'])
    }
  })

  it('says which unsigned fields its state excludes', async () => {
    const flagged = inOldForm(await sold({ state: 5 }))
    const rows = (shown: object) => failedRows(verifyAttestation({ ...flagged, ...shown }, trust)).slice(0, 2)
    const impossible = 'impossible in this state'
    const open = 'not signed in this form'
    assert.deepEqual(rows({}), [
      ['authentic', 'false', open],
      ['flagged', 'true', open],
    ])
    assert.deepEqual(rows({ flagged: false }), [
      ['authentic', 'false', impossible],
      ['flagged', 'false', impossible],
    ])
    const claimed = inOldForm(await sold({ state: 4 }))
    const found = (authentic: unknown, isFlagged: unknown) =>
      verifyAttestation({ ...claimed, authentic, flagged: isFlagged }, trust).outcome
    assert.equal(found(true, false), 'undecided')
    assert.equal(found(false, true), 'undecided')
    assert.equal(found(true, true), 'differs')
    assert.equal(found(false, false), 'differs')
    assert.equal(found(undefined, undefined), 'differs')
  })

  it('is dated by the clock where the caller gives no time', async () => {
    const seconds = Math.floor(Date.now() / 1000)
    const { signer: trusted } = trust
    assert.equal(verifyAttestation(await sold({ issued: seconds }), { signer: trusted }).ok, true)
    const before = verifyAttestation(await sold({ issued: seconds - 400 }), { signer: trusted })
    assert.deepEqual(failed(before), ['age'])
    assert.match(before.checks.find(({ field }) => field === 'age')?.claimed ?? '', /^4\d\d s$/)
  })

  it('has an age in whole seconds, rounded down', () => {
    const age = (at: number) => verifyAttestation(whole, { ...trust, now: issuedAt + at }).checks.at(-2)
    assert.deepEqual(age(300.9), { field: 'age', ok: true, claimed: '300 s', found: 'at most 300 s' })
    assert.deepEqual(age(-60.1), { field: 'age', ok: false, claimed: '-61 s', found: 'at most 300 s' })
    assert.equal(age(301)?.ok, false)
    assert.equal(age(-60)?.ok, true)
  })
})

const { eas } = await easOf(whole)

describe('the EAS attestation of a report', () => {
  const of = (given: unknown) => changed({ eas: given })
  const rows = (given: unknown) =>
    rowsOf(of(given).checks).filter(([field = '']) => field.startsWith('attestation.eas'))

  it('has two rows', () => {
    assert.deepEqual(rows(eas), [
      ['attestation.eas', 'an object', 'the same'],
      ['attestation.eas.signature', signer, signer],
    ])
    assert.deepEqual([of(eas).ok, of(null).ok], [true, true])
    assert.deepEqual(rows(null), [])
  })

  it('is refused with another signature, or with none', async () => {
    const strangers = await easOf(whole, stranger)
    assert.deepEqual(rows(strangers.eas), [
      ['attestation.eas', 'an object', 'the same'],
      ['attestation.eas.signature', signer, stranger.address.toLowerCase()],
    ])
    const { signature } = eas.sig
    const none: unknown[] = [
      { ...signature, r: '0x' },
      { ...signature, s: `${signature.s}00` },
      { ...signature, r: `${signature.r}00` },
      { ...signature, s: 1 },
      { ...signature, v: 26 },
      { ...signature, v: 29 },
      { ...signature, v: 0 },
      null,
      undefined,
    ]
    for (const changed of none)
      assert.deepEqual(rows({ ...eas, sig: { ...eas.sig, signature: changed } }), [
        ['attestation.eas', 'an object', noSignature],
      ])
    for (const given of [{ ...eas, sig: null }, {}, []])
      assert.deepEqual(rows(given), [['attestation.eas', 'an object', noSignature]])
    for (const given of ['x', 1]) assert.deepEqual(rows(given), [['attestation.eas', String(given), noSignature]])
    const other = { ...signature, v: 55 - signature.v }
    assert.equal(of({ ...eas, sig: { ...eas.sig, signature: other } }).outcome, 'differs')
  })

  it('needs the address of its signer', () => {
    const report = changed({ eas, signer: 'x' })
    const row = report.checks.find(({ field }) => field === 'attestation.eas')
    assert.deepEqual([row?.ok, row?.found], [false, noSignature])
  })

  it('is refused beside the old form', () => {
    const report = verifyAttestation(withMembers(old, { eas }), trust)
    assert.deepEqual([report.outcome, failed(report)[0]], ['differs', 'attestation.eas'])
  })
})

describe('the published key of a report', () => {
  const key: PublishedKey = {
    address: gateway.address,
    keyId: attestationKeyId(gateway.address),
    validFrom: issuedAt,
    validUntil: issuedAt,
    status: 'retired',
  }
  const own = { ...key, address: stranger.address, keyId: attestationKeyId(stranger.address) }
  const row = (keys: unknown, more: AttestationTrust = {}) =>
    verifyAttestation(whole, { keys, now, ...more }).checks.at(-1)
  const refused = (found: string) => ({ field: 'key published', ok: false, claimed: signer, found })

  it('counts at the first and at the last second of its time', () => {
    const found = { field: 'key published', ok: true, claimed: signer, found: 'a published key, in its time' }
    assert.deepEqual(row([key]), found)
    assert.deepEqual(row({ keys: [own, { ...key, validUntil: null }] }), found)
    assert.deepEqual(row([{ ...key, validFrom: 0, validUntil: null, status: 'active' }]), found)
    assert.deepEqual(row([{ ...key, status: 'active' }], { now: issuedAt }), found)
    assert.deepEqual(row([{ ...key, status: 'next' }, key]), found)
    assert.deepEqual(row([{ ...key, validUntil: null, validFrom: now }, key]), found)
    assert.deepEqual(row([key, { ...key, validFrom: 0, validUntil: 1 }]), found)
    assert.deepEqual(row(Array.from({ length: 200 }, () => key)), found)
  })

  it('has no row of a trusted signer where the caller names none', () => {
    const { checks } = verifyAttestation(whole, { keys: [key], now })
    assert.deepEqual(
      checks.slice(-4).map(({ field }) => field),
      ['token asked for', 'contract trusted', 'age', 'key published'],
    )
  })

  it('is of the contract that the published document names, unless the caller names one', () => {
    const document = { contract, keys: [key] }
    const other = { ...document, contract: stranger.address }
    const failing = (trusted: AttestationTrust) => failed(verifyAttestation(whole, { now, ...trusted }))
    assert.deepEqual(failing({ keys: document }), [])
    assert.deepEqual(failing({ keys: other }), ['contract trusted'])
    assert.deepEqual(failing({ keys: { ...document, contract: 7 } }), ['contract trusted'])
    assert.deepEqual(failing({ keys: other, contract }), [])
  })

  it('is refused with the reason', () => {
    assert.deepEqual(row('x'), refused('the published keys cannot be read'))
    assert.deepEqual(row({ list: [key] }), refused('the published keys cannot be read'))
    assert.deepEqual(row([key, 1]), refused('the published keys cannot be read'))
    assert.deepEqual(row(Array.from({ length: 201 }, () => key)), refused('the published keys cannot be read'))
    assert.deepEqual(row([]), refused('not a published key'))
    assert.deepEqual(row([own]), refused('not a published key'))
    assert.deepEqual(row([key, { ...key, status: 'revoked' }]), refused('a revoked key'))
    const announced = refused('an announced key that does not sign yet; get the keys again')
    assert.deepEqual(row([{ ...key, status: 'next' }]), announced)
    assert.deepEqual(row([{ ...key, validFrom: now + 1, validUntil: null }]), announced)
    const outside = refused('a published key, outside its time')
    assert.deepEqual(row([{ ...key, validFrom: issuedAt + 1, validUntil: null }]), outside)
    assert.deepEqual(row([{ ...key, validFrom: 0, validUntil: issuedAt - 1 }]), outside)
  })

  it('and the trusted signer must both hold where both are given', () => {
    const both = verifyAttestation(whole, { ...trust, signer: stranger.address, keys: [key] })
    assert.deepEqual(failed(both), ['signer trusted'])
    assert.deepEqual(failed(verifyAttestation(whole, { ...trust, keys: [own] })), ['key published'])
  })
})

function failedRows({ checks }: AttestationReport): string[][] {
  return rowsOf(checks.filter(({ ok }) => !ok))
}
