import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import {
  attestationKeyId,
  type AttestationTrust,
  easAttestation,
  type PublishedKey,
  type StateCode,
  verifyAttestation,
} from '../src/index.ts'
import {
  contract,
  easOf,
  gateway,
  inOldForm,
  issuedAt as timestamp,
  sold,
  stranger,
  withMembers,
} from './_attestation.ts'
import { failed, leavesOf } from './_report.ts'

const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n
const now = 1_795_227_320
const key: PublishedKey = {
  address: gateway.address,
  keyId: attestationKeyId(gateway.address),
  validFrom: timestamp - 1_000,
  validUntil: null,
  status: 'active',
}
const trust: AttestationTrust = { signer: gateway.address, tokenId: 1042n, contract, now }
const whole = await sold()

describe('verifyAttestation', () => {
  it('accepts what the gateway sold, and reports its contents', () => {
    const report = verifyAttestation(whole, { ...trust, keys: { keys: [key] } })
    assert.ok(report.ok, failed(report).join())
    assert.deepEqual(report.attested, {
      tokenId: 1042n,
      state: 3,
      chainId: 84532,
      timestamp,
      blockNumber: 31_337_042,
      blockHash: `0x${'ab'.repeat(32)}`,
      verifyingContract: contract,
      signer: gateway.address.toLowerCase(),
      authentic: true,
      flagged: false,
      flags: 0,
      ownerCommitment: null,
    })
    assert.deepEqual([report.outcome, report.unsigned], ['agrees', []])
  })

  it('returns the owner commitment and the flag bits that are signed', async () => {
    const ownerCommitment = `0x${'0c'.repeat(32)}` as const
    const report = verifyAttestation(await sold({ state: 4, flags: 0x24, ownerCommitment }), trust)
    assert.ok(report.ok, failed(report).join())
    const { flags, flagged, authentic, ownerCommitment: found } = report.attested
    assert.deepEqual([flags, flagged, authentic, found], [0x24, true, false, ownerCommitment])
  })

  it('accepts every state that is attested, and any token id', async () => {
    const ids = fc.bigInt({ min: 0n, max: 2n ** 256n - 1n })
    const states = fc.constantFrom<StateCode>(1, 2, 3, 4, 5, 6)
    const bits = fc.nat({ max: 255 })
    await fc.assert(
      fc.asyncProperty(ids, states, bits, async (tokenId, state, flags) => {
        assert.deepEqual(failed(verifyAttestation(await sold({ tokenId, state, flags }), { ...trust, tokenId })), [])
      }),
      { numRuns: 25 },
    )
  })

  it('needs no payment in what was kept', () => {
    const { payment: _, ...kept } = whole
    assert.deepEqual(failed(verifyAttestation(kept, trust)), [])
  })

  it('takes addresses in any case of letters', () => {
    const lower = JSON.parse(JSON.stringify(whole).replaceAll(gateway.address, gateway.address.toLowerCase()))
    lower.attestation.eip712.domain.verifyingContract = contract.toLowerCase()
    lower.attestation.v2.domain.verifyingContract = contract.toLowerCase()
    assert.deepEqual(failed(verifyAttestation(lower, trust)), [])
  })

  const { payment: _payment, ...signedParts } = whole
  const paths = leavesOf(signedParts)
  it(`refuses a change of any of its ${paths.length} fields`, () => {
    assert.ok(paths.length >= 80)
    const values = fc.oneof(fc.jsonValue(), fc.constantFrom(undefined, 'CLAIMED', 4, '1043', whole.attestation.digest))
    fc.assert(
      fc.property(fc.constantFrom(...paths), values, (path, value) => {
        const forged = structuredClone(whole)
        fc.pre(JSON.stringify(replace(forged, path, value)) !== JSON.stringify(value))
        assert.equal(verifyAttestation(forged, trust).ok, false, path.join('.'))
      }),
      { numRuns: 1_200 },
    )
  })

  it('refuses a field less and a field more, wherever', () => {
    for (const path of [
      [],
      ['chainRef'],
      ['attestation'],
      ['attestation', 'eip712'],
      ['attestation', 'v2'],
      ...paths,
    ]) {
      const forged = structuredClone(whole)
      const at: unknown = path.reduce((value: unknown, name) => Reflect.get(Object(value), name), forged)
      if (typeof at === 'object' && at !== null) Reflect.set(at, 'recalled', false)
      else Reflect.deleteProperty(Object(parentOf(forged, path)), path.at(-1) ?? '')
      assert.equal(verifyAttestation(forged, trust).ok, false, path.join('.'))
    }
  })

  it('refuses either signature when it is another’s, and its mirrored form', async () => {
    const other = await sold({ account: stranger })
    const eip712 = { ...whole.attestation.eip712, signature: other.attestation.eip712.signature }
    const forgeries = [
      { signature: other.attestation.signature },
      { eip712 },
      { v2: other.attestation.v2 },
      { signature: mirrored(whole.attestation.signature) },
      { eip712: { ...eip712, signature: mirrored(whole.attestation.eip712.signature) } },
    ]
    for (const forged of [...forgeries.map((members) => withMembers(whole, members)), other])
      assert.equal(verifyAttestation(forged, trust).ok, false)
  })

  it('never throws, whatever it is given', () => {
    fc.assert(
      fc.property(fc.anything(), fc.anything(), (body, keys) => {
        assert.equal(verifyAttestation(body, { keys }).ok, false)
        assert.equal(verifyAttestation({ ...whole, attestation: body }, { keys }).ok, false)
        assert.equal(verifyAttestation(whole, { keys, now }).ok, false)
      }),
    )
  })

  it('refuses NONE, which is never attested', async () => {
    assert.deepEqual(failed(verifyAttestation(await sold({ state: 0 }), trust)), ['attestation.v2.message'])
    const old = inOldForm(await sold({ state: 0 }))
    assert.deepEqual(failed(verifyAttestation(old, trust)), ['attestation.eip712.message'])
  })

  it('refuses another chain, though it is signed', async () => {
    const { ok } = verifyAttestation(await sold({ chainId: 1 }), trust)
    assert.equal(ok, false)
  })
})

describe('what verifyAttestation decides from', () => {
  const changes: [field: string, value: unknown][] = [
    ['flagged', true],
    ['authentic', false],
    ['state', 'CLAIMED'],
    ['state_code', 4],
    ['assetId', '1043'],
  ]
  for (const [field, value] of changes)
    it(`is what is signed: a changed ${field} differs, and the report names that field only`, () => {
      const report = verifyAttestation({ ...whole, [field]: value }, trust)
      assert.deepEqual([report.ok, report.outcome, failed(report)], [false, 'differs', [field]])
    })

  it('is what is signed: so it is with each field of the block', () => {
    const other = { chain_id: 1, contract: stranger.address, token_id: '1', block_number: 1, block_hash: '0x' }
    for (const [field, value] of Object.entries(other)) {
      const chainRef = { ...whole.chainRef, [field]: value }
      assert.deepEqual(failed(verifyAttestation({ ...whole, chainRef }, trust)), [`chainRef.${field}`])
    }
  })

  it('is not a signed contradiction', async () => {
    const report = verifyAttestation(await sold({ state: 4, flagged: true }), trust)
    assert.deepEqual(failed(report), ['flagged', 'attestation.v2.message', 'attestation.v2.signature'])
  })

  it('leaves the old form undecided, and names what is not signed', async () => {
    const old = inOldForm(await sold({ state: 4 }))
    for (const shown of [{}, { authentic: false, flagged: true }]) {
      const report = verifyAttestation({ ...old, ...shown }, trust)
      assert.deepEqual([report.ok, report.outcome], [false, 'undecided'])
      assert.deepEqual(
        [report.unsigned, failed(report)],
        [
          ['authentic', 'flagged'],
          ['authentic', 'flagged'],
        ],
      )
      assert.ok('attested' in report)
      assert.deepEqual([report.attested.state, report.attested.signer], [4, gateway.address.toLowerCase()])
      assert.ok(!('flagged' in report.attested) && !('authentic' in report.attested))
    }
  })

  it('is not what an old form shows against its own state, or with another signature', async () => {
    const old = inOldForm(await sold({ state: 5 }))
    for (const shown of [{ flagged: false }, { authentic: true }, { flagged: 1 }, { state_code: 4 }]) {
      const report = verifyAttestation({ ...old, ...shown }, trust)
      assert.deepEqual([report.outcome, 'attested' in report], ['differs', false])
    }
    const strangers = inOldForm(await sold({ account: stranger }))
    assert.equal(verifyAttestation(strangers, trust).outcome, 'differs')
  })
})

describe('the EAS attestation beside the second form', async () => {
  const { facts, signature, eas } = await easOf(whole)
  const both = withMembers(whole, { eas })

  it('is accepted as it was made', () => assert.deepEqual(failed(verifyAttestation(both, trust)), []))

  it('is refused with a change of any of its fields', () => {
    for (const path of leavesOf(eas)) {
      const forged = structuredClone(both)
      replace(forged, ['attestation', 'eas', ...path], '0x01')
      assert.equal(verifyAttestation(forged, trust).outcome, 'differs', path.join('.'))
    }
    for (const other of [{}, [], 'x', { sig: null }, { ...eas, more: 1 }])
      assert.equal(verifyAttestation(withMembers(whole, { eas: other }), trust).outcome, 'differs')
  })

  it('is refused in the old form, and with the signature of another fact', async () => {
    assert.equal(verifyAttestation(inOldForm(both), trust).outcome, 'differs')
    const later = easAttestation({ ...facts, issuedAt: timestamp + 1 }, { signer: gateway.address, signature })
    assert.equal(verifyAttestation(withMembers(whole, { eas: later }), trust).outcome, 'differs')
  })
})

describe('whom verifyAttestation trusts', () => {
  it('is set by the caller: by default it trusts no signer', () => {
    assert.deepEqual(failed(verifyAttestation(whole, { now })), ['signer trusted'])
    assert.deepEqual(failed(verifyAttestation(whole, { now, signer: stranger.address })), ['signer trusted'])
  })

  it('is asked about one token of one contract', () => {
    assert.deepEqual(failed(verifyAttestation(whole, { ...trust, tokenId: '1043' })), ['token asked for'])
    assert.deepEqual(failed(verifyAttestation(whole, { ...trust, tokenId: 'x' })), ['token asked for'])
    assert.deepEqual(failed(verifyAttestation(whole, { ...trust, contract: stranger.address })), ['contract trusted'])
  })

  const published: Record<string, [keys: unknown, ok: boolean, issued?: number]> = {
    'the active key': [[key], true],
    'a key among others': [
      { keys: [{ ...key, address: stranger.address, keyId: attestationKeyId(stranger.address) }, key] },
      true,
    ],
    'an announced key that is not active yet': [[{ ...key, status: 'next' }], false],
    'a key whose time begins later, though the timestamp says so too': [
      [{ ...key, validFrom: now + 1 }],
      false,
      now + 1,
    ],
    'a retired key that signed on its last second': [[{ ...key, status: 'retired', validUntil: timestamp }], true],
    'a retired key that signed afterwards': [[{ ...key, status: 'retired', validUntil: timestamp - 1 }], false],
    'a key that signed before it was made': [[{ ...key, validFrom: timestamp + 1 }], false],
    'a revoked key, whatever its window': [[{ ...key, status: 'revoked' }], false],
    'a key that is listed twice, once as revoked': [[key, { ...key, status: 'revoked' }], false],
    'no key at all': [{ keys: [] }, false],
    'a key of another name': [[{ ...key, keyId: 'attest-1' }], false],
    'a key without status': [[{ ...key, status: undefined }], false],
    'a window that is no number': [[{ ...key, validFrom: String(key.validFrom) }], false],
    'a list that is too long': [Array.from({ length: 201 }, () => key), false],
    'no document': [null, false],
  }
  for (const [name, [keys, ok, issued]] of Object.entries(published))
    it(`${ok ? 'is' : 'is not'} ${name}`, async () => {
      const proof = issued === undefined ? whole : await sold({ issued })
      const report = verifyAttestation(proof, { keys, now })
      assert.deepEqual(failed(report), ok ? [] : ['key published'])
    })

  it('is trusted for five minutes, unless the caller says otherwise', () => {
    const at = (age: number, more: AttestationTrust = {}) =>
      failed(verifyAttestation(whole, { ...trust, now: timestamp + age, ...more }))
    assert.deepEqual(at(300), [])
    assert.deepEqual(at(301), ['age'])
    assert.deepEqual(at(31), [])
    assert.deepEqual(at(31, { maxAgeSeconds: 30 }), ['age'])
    assert.deepEqual(at(1e9, { maxAgeSeconds: Infinity }), [])
    assert.deepEqual(at(-60), [])
    assert.deepEqual(at(-61, { maxAgeSeconds: Infinity }), ['age'])
    assert.deepEqual(at(0, { maxAgeSeconds: NaN }), ['age'])
  })
})

/** The same signature in its other form: s in the upper half, v turned. */
function mirrored(text: string): string {
  const s = order - BigInt(`0x${text.slice(66, 130)}`)
  return `0x${text.slice(2, 66)}${s.toString(16).padStart(64, '0')}${text.endsWith('1b') ? '1c' : '1b'}`
}

function parentOf(root: unknown, path: readonly string[]): unknown {
  return path.slice(0, -1).reduce((value: unknown, name) => Reflect.get(Object(value), name), root)
}

/** Sets a leaf and answers what stood there. */
function replace(root: unknown, path: readonly string[], value: unknown): unknown {
  const parent = Object(parentOf(root, path))
  const name = path.at(-1) ?? ''
  const before: unknown = Reflect.get(parent, name)
  Reflect.set(parent, name, value)
  return before
}
