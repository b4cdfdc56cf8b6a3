import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { recorded } from '../../test/_recorded.ts'
import { isVerdict } from './form.ts'

const { verdict } = recorded
const { untrusted: _, ...bare } = verdict
const ref = (change: object) => ({ ...verdict, chainRef: { ...verdict.chainRef, ...change } })

describe('isVerdict', () => {
  it('accepts a verdict with and without texts, with and without an owner', () => {
    for (const value of [verdict, bare, { ...verdict, owner_commitment: null }, ref({ block_number: 0 })])
      assert.equal(isVerdict(value), true)
  })

  const states: [code: number, state: string, authentic: boolean, flagged: boolean][] = [
    [1, 'MINTED', true, false],
    [2, 'BOUND', false, true],
    [3, 'ACTIVATED', false, true],
    [4, 'CLAIMED', true, false],
    [5, 'FLAGGED', false, true],
    [6, 'RECYCLED', false, false],
    [6, 'RECYCLED', false, true],
  ]
  for (const [code, state, authentic, flagged] of states)
    it(`accepts ${state}${flagged ? ', flagged' : ''}, only with what follows from it`, () => {
      const of = { ...verdict, state, state_code: code, authentic, flagged }
      assert.equal(isVerdict(of), true)
      assert.equal(isVerdict({ ...of, authentic: !authentic }), false)
      assert.equal(isVerdict({ ...of, state_code: code + 1 }), false)
      assert.equal(isVerdict({ ...of, state: 'NONE' }), false)
      assert.equal(isVerdict({ ...of, flagged: !flagged }), code === 6)
    })

  const wrong: Record<string, readonly unknown[]> = {
    version: [1, '2', ''],
    token_id: ['06', 6, '7', ''],
    authentic: [1, null, 'true', false],
    state: [3, 'activated', 'MINTED', null],
    state_code: ['3', 0, 7, 3.5, null],
    flagged: [0, null, 'false', true],
    owner_commitment: ['', '0x', 7, verdict.owner_commitment?.toUpperCase(), `${verdict.owner_commitment}00`],
    chainRef: [null, [], 'x', {}],
    network: ['base', '', null],
    audit_status: ['audited', '', null],
    production_ready: [true, 0, null],
    untrusted: [null, {}, { name: 'Jacket' }, undefined],
  }
  const wrongRef: Record<string, readonly unknown[]> = {
    chain_id: [8453, '84532', null],
    contract: [verdict.chainRef.contract.toLowerCase(), '0x', null],
    token_id: ['7', 6, '06'],
    block_number: [-1, 1.5, '9', null, 2 ** 53],
    block_hash: ['0x', verdict.chainRef.block_hash.toUpperCase(), null],
  }
  it('refuses a wrong value, a missing key and an unknown one, wherever', () => {
    for (const [key, values] of Object.entries(wrong)) {
      for (const value of values)
        assert.equal(isVerdict({ ...verdict, [key]: value }), false, `${key} ${String(value)}`)
      const { [key]: _left, ...rest } = verdict as Record<string, unknown>
      assert.equal(isVerdict(rest), key === 'untrusted', key)
    }
    for (const [key, values] of Object.entries(wrongRef)) {
      for (const value of values) assert.equal(isVerdict(ref({ [key]: value })), false, `${key} ${String(value)}`)
      const { [key]: _left, ...rest } = verdict.chainRef as Record<string, unknown>
      assert.equal(isVerdict({ ...verdict, chainRef: rest }), false, key)
    }
    assert.equal(isVerdict({ ...verdict, more: 1 }), false)
    assert.equal(isVerdict(ref({ more: 1 })), false)
    const none = { ...verdict, state: 'NONE', state_code: 0 }
    for (const value of [none, { ...none, authentic: false }, null, [], 7, undefined])
      assert.equal(isVerdict(value), false)
  })
})
