import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { describe, it } from 'node:test'
import { keccak256 } from 'viem'
import { createTagHash } from './tag-hash.ts'

const uid = Uint8Array.from(Buffer.from('04782E21801D80', 'hex'))

describe('the tag hash', () => {
  it('keccak-uid: keccak256 of the seven bytes', () => {
    assert.equal(createTagHash({ scheme: 'keccak-uid' })(uid), keccak256(uid))
  })

  it('hmac: keccak256 of HMAC-SHA256 under the pepper', () => {
    const pepper = new Uint8Array(32).fill(5)
    const hash = createTagHash({ scheme: 'hmac', pepper })(uid)
    assert.equal(hash, keccak256(new Uint8Array(createHmac('sha256', pepper).update(uid).digest())))
    assert.notEqual(hash, createTagHash({ scheme: 'hmac', pepper: new Uint8Array(32).fill(6) })(uid))
    assert.match(hash, /^0x[0-9a-f]{64}$/)
  })

  it('refuses a pepper that could be guessed', () => {
    assert.throws(() => createTagHash({ scheme: 'hmac', pepper: new Uint8Array(15) }), RangeError)
  })
})
