import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { base58Multibase, base64urlMultibase, ed25519Multikey } from './multibase.ts'

const bytes = (hex: string): Uint8Array => Buffer.from(hex, 'hex')

describe('multibase', () => {
  it('writes the examples of the base58 draft (draft-msporny-base58-03 §5)', () => {
    assert.equal(base58Multibase(Buffer.from('Hello World!')), 'z2NEpo7TZRRrLZSi2U')
    assert.equal(
      base58Multibase(Buffer.from('The quick brown fox jumps over the lazy dog.')),
      'zUSm3fpXnKG5EUBx2ndxBDMPVciP5hGey2Jh4NDv6gmeo1LkMeiKrLJUUBk6Z',
    )
    assert.equal(base58Multibase(bytes('0000287fb4cd')), 'z11233QC4')
    assert.equal(base58Multibase(bytes('')), 'z')
    assert.equal(base58Multibase(bytes('0000')), 'z11')
  })

  it('writes the Ed25519 key of the did:key examples', () => {
    const key = bytes('2e6fcce36701dc791488e0d0b1745cc1e33a4c1c9fcc41c63bd343dbbe0970e6')
    assert.equal(ed25519Multikey(key), 'z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK')
  })

  it('writes base64url without padding', () => assert.equal(base64urlMultibase(bytes('fffe00')), 'u__4A'))
})
