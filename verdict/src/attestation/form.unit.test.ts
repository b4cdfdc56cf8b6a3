/** The form of an attestation of unknown origin: which part is missing, unknown or of another type. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { contract, gateway, inOldForm, issuedAt, sold } from '../../test/_attestation.ts'
import { rowsOf } from '../../test/_report.ts'
import { type AttestationTrust, verifyAttestation } from './verify.ts'

const trust: AttestationTrust = { signer: gateway.address, tokenId: 1042n, contract, now: issuedAt + 7 }
const whole = await sold()
const old = inOldForm(whole)

const keysWrong = 'missing or unknown keys'

describe('the form of an attestation', () => {
  it('ends at the first part that is no object, and names it', () => {
    const text = (field: string, claimed: string) => [[field, claimed, 'not a JSON object']]
    const { chainRef, attestation } = whole
    const parts: [body: unknown, rows: string[][]][] = [
      [1, text('body', '1')],
      [[], text('body', 'an object')],
      [{ ...whole, chainRef: 'x' }, text('chainRef', 'x')],
      [{ chainRef }, text('attestation', 'undefined')],
      [{ chainRef, attestation: { ...attestation, eip712: true } }, text('attestation.eip712', 'true')],
      [{ chainRef, attestation: { ...attestation, v2: 3 } }, text('attestation.v2', '3')],
    ]
    for (const [body, rows] of parts) {
      const report = verifyAttestation(body, trust)
      assert.deepEqual(rowsOf(report.checks), rows)
      assert.deepEqual([report.ok, report.outcome, report.unsigned], [false, 'differs', ['authentic', 'flagged']])
    }
  })

  it('counts the keys where some are missing or unknown', () => {
    const empty = { chainRef: {}, attestation: { eip712: {}, v2: {} } }
    const rows = [
      ['keys', '2 keys', keysWrong],
      ['chainRef', '0 keys', keysWrong],
      ['attestation', '2 keys', keysWrong],
      ['attestation.eip712', '0 keys', keysWrong],
    ]
    const unsigned = 'not what a gateway signs'
    assert.deepEqual(rowsOf(verifyAttestation(empty, trust).checks), [
      ...rows,
      ['attestation.v2', '0 keys', keysWrong],
      ['attestation.v2.message', 'an object', unsigned],
    ])
    const without = { chainRef: {}, attestation: { eip712: {}, eas: {} } }
    assert.deepEqual(rowsOf(verifyAttestation(without, trust).checks), [
      ...rows,
      ['attestation.eas', 'an object', 'only beside attestation.v2'],
      ['attestation.eip712.message', 'an object', unsigned],
    ])
  })

  const missing = [
    ...Object.keys(whole).filter((key) => key !== 'payment' && key !== 'attestation' && key !== 'chainRef'),
    ...Object.keys(whole.chainRef).map((key) => `chainRef.${key}`),
    ...Object.keys(old.attestation)
      .filter((key) => key !== 'eip712')
      .map((key) => `attestation.${key}`),
    ...['eip712', 'v2'].flatMap((form) =>
      ['types', 'primaryType', 'signature'].map((key) => `attestation.${form}.${key}`),
    ),
  ]
  it(`says that a key is missing, whichever of ${missing.length} it is, and that one is unknown`, () => {
    for (const name of missing) {
      const path = name.split('.')
      const key = path.pop() ?? ''
      for (const [unknown, count] of [
        [false, -1],
        [true, 1],
      ] as const) {
        const forged: unknown = structuredClone(whole)
        const object = Object(path.reduce((value: unknown, part) => Reflect.get(Object(value), part), forged))
        const before = Object.keys(object).length
        if (unknown) Reflect.set(object, `${key}2`, 1)
        else Reflect.deleteProperty(object, key)
        const field = path.length === 0 ? 'keys' : path.join('.')
        const row = verifyAttestation(forged, trust).checks.find((check) => check.field === field)
        assert.deepEqual(row, { field, ok: false, claimed: `${before + count} keys`, found: keysWrong }, name)
      }
    }
  })
})

describe('an attestation whose signed message is no statement', () => {
  const { domain, message } = whole.attestation.v2
  const wrong: readonly (readonly [where: 'message' | 'domain', change: Record<string, unknown>])[] = [
    ...[undefined, 7, '', '0x7', '-1', String(2n ** 256n)].map((tokenId) => ['message', { tokenId }] as const),
    ...[undefined, 0, 7, '3', 1.5].map((state) => ['message', { state }] as const),
    ...[undefined, -1, 1.5, '1', 2 ** 53].map((blockNumber) => ['message', { blockNumber }] as const),
    ...[undefined, '0x', `0x${'AB'.repeat(32)}`, `0x${'ab'.repeat(33)}`].map(
      (blockHash) => ['message', { blockHash }] as const,
    ),
    ...[undefined, '0x', 7].map((verifyingContract) => ['domain', { verifyingContract }] as const),
  ]
  const second: typeof wrong = [
    ...[undefined, -1, 256, 1.5, '0'].map((flags) => ['message', { flags }] as const),
    ...[undefined, null, '0x', `0x${'ab'.repeat(33)}`].map(
      (ownerCommitment) => ['message', { ownerCommitment }] as const,
    ),
    ...[undefined, -1, '1', 0.5].map((issuedAt) => ['message', { issuedAt }] as const),
  ]
  const first: typeof wrong = [undefined, -1, '1', 0.5].map((timestamp) => ['message', { timestamp }] as const)

  it('is unreadable in both forms, whichever member is wrong', () => {
    for (const [where, change] of [...wrong, ...second]) {
      const v2 = { ...whole.attestation.v2, [where]: { ...whole.attestation.v2[where], ...change } }
      assert.deepEqual(unreadable({ ...whole, attestation: { ...whole.attestation, v2 } }), 'attestation.v2.message')
    }
    for (const [where, change] of [...wrong, ...first]) {
      const { eip712 } = old.attestation
      const typed = { ...eip712, [where]: { ...eip712[where], ...change } }
      assert.deepEqual(
        unreadable({ ...old, attestation: { ...old.attestation, eip712: typed } }),
        'attestation.eip712.message',
      )
    }
    for (const nothing of [null, 'x', [], undefined]) {
      for (const v2 of [
        { ...whole.attestation.v2, domain: nothing, message },
        { ...whole.attestation.v2, domain, message: nothing },
      ])
        assert.equal(unreadable({ ...whole, attestation: { ...whole.attestation, v2 } }), 'attestation.v2.message')
      const eip712 = { ...old.attestation.eip712, message: nothing }
      assert.equal(unreadable({ ...old, attestation: { ...old.attestation, eip712 } }), 'attestation.eip712.message')
    }
  })

  it('may have the lowest and the highest values', async () => {
    const ownerCommitment = `0x${'0c'.repeat(32)}` as const
    const owned = verifyAttestation(await sold({ ownerCommitment }), trust)
    assert.equal('attested' in owned && owned.attested.ownerCommitment, ownerCommitment)
    for (const sale of [
      { tokenId: 0n, state: 1, flags: 0, issued: 0 },
      { tokenId: 2n ** 256n - 1n, state: 6, flags: 255, issued: 1 },
    ] as const) {
      const report = verifyAttestation(await sold(sale), { signer: gateway.address, contract, now: sale.issued })
      assert.equal(report.ok, true)
      assert.ok('attested' in report)
      const { tokenId, state, flags, timestamp } = report.attested
      assert.deepEqual({ tokenId, state, flags, issued: timestamp }, sale)
    }
  })

  function unreadable(body: unknown): string | undefined {
    const { checks, outcome } = verifyAttestation(body, trust)
    assert.equal(outcome, 'differs')
    const last = checks.at(-1)
    assert.deepEqual([last?.ok, last?.claimed, last?.found], [false, 'an object', 'not what a gateway signs'])
    return last?.field
  }
})
