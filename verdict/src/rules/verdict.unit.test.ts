import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { isVerdict } from '../check/form.ts'
import type { Hex } from '../lib/hex.ts'
import { zeroAddress } from './address.ts'
import { lifecycleStates, type StateCode } from './lifecycle.ts'
import type { AssetRecord } from './record.ts'
import { maxTokenId } from './token-id.ts'
import { untrustedOf } from './untrusted.ts'
import { verdictOf } from './verdict.ts'

const hash: Hex = `0x${'ab'.repeat(32)}`
const contract = '0x5fbdb2315678afecb367f032d93f642f64180aa3'
const record: AssetRecord = {
  owner: '0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266',
  timestamp: 9n,
  state: 4,
  flags: 0,
  reserved: 0,
}
const read = { record, tokenId: 1n, block: { number: 31337042n, hash }, contract, chainId: 84532 } as const

describe('verdictOf', () => {
  it('writes the twelve keys in the order of the specification', () => {
    assert.deepEqual(
      JSON.stringify(verdictOf({ ...read, untrusted: untrustedOf({}) })),
      JSON.stringify({
        version: '1',
        token_id: '1',
        authentic: true,
        state: 'CLAIMED',
        state_code: 4,
        flagged: false,
        owner_commitment: '0x1712c5463c9d1bdfaf0928e3f1255987052bbc606b5829413c8b061e6616896d',
        chainRef: {
          chain_id: 84532,
          contract: '0x5FbDB2315678afecb367f032d93F642f64180aa3',
          token_id: '1',
          block_number: 31337042,
          block_hash: hash,
        },
        untrusted: untrustedOf({}),
        network: 'base-sepolia',
        audit_status: 'unaudited',
        production_ready: false,
      }),
    )
  })

  it('leaves `untrusted` out for a token without metadata, which makes eleven keys', () => {
    assert.equal(Object.keys(verdictOf(read) ?? {}).length, 11)
    assert.equal(Object.keys(verdictOf({ ...read, untrusted: undefined }) ?? {}).length, 11)
  })

  it('gives no verdict for state 0', () => {
    assert.equal(
      verdictOf({ ...read, record: { owner: zeroAddress, timestamp: 0n, state: 0, flags: 0, reserved: 0 } }),
      null,
    )
  })

  it('says the largest token id in full', () => {
    assert.equal(verdictOf({ ...read, tokenId: maxTokenId })?.token_id, String(maxTokenId))
  })

  for (const state of [1, 2, 3, 4, 5, 6] satisfies StateCode[]) {
    it(`judges every flag byte in state ${lifecycleStates[state]}`, () => {
      for (let flags = 0; flags < 256; flags += 1) {
        const verdict = verdictOf({ ...read, record: { ...record, state, flags } })
        const reported = flags % 32 !== 0
        assert.equal(verdict?.state, lifecycleStates[state])
        assert.equal(verdict.state_code, state)
        assert.equal(verdict.flagged, state === 5 || reported, String(flags))
        assert.equal(verdict.authentic, state < 5 && !reported, String(flags))
        assert.ok(isVerdict(verdict))
      }
    })
  }
})
