import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { attestationKeyId, type PublishedKey, readPublishedKeys } from './keys.ts'

const address = '0xF39fd6e51aad88F6F4ce6aB8827279cffFb92266'
const key: PublishedKey = {
  address,
  keyId: 'attest-f39fd6e51aad88f6',
  validFrom: 1_795_227_313,
  validUntil: null,
  status: 'active',
}

describe('attestationKeyId', () => {
  it('is made of the first sixteen digits in lower case', () => {
    assert.equal(attestationKeyId(address), 'attest-f39fd6e51aad88f6')
  })
})

describe('readPublishedKeys', () => {
  it('reads a list, or the list of a document, in every status', () => {
    assert.deepEqual(readPublishedKeys([key]), [key])
    assert.deepEqual(readPublishedKeys({ keys: [key], more: 1 }), [key])
    assert.deepEqual(readPublishedKeys([]), [])
    for (const status of ['next', 'active', 'retired', 'revoked'])
      assert.equal(readPublishedKeys([{ ...key, status, more: 1 }])?.length, 1)
    for (const seconds of [0, 1, Number.MAX_SAFE_INTEGER])
      assert.equal(readPublishedKeys([{ ...key, validFrom: seconds, validUntil: seconds }])?.length, 1)
    assert.equal(readPublishedKeys(Array(200).fill(key))?.length, 200)
  })

  it('reads none where one of them is malformed', () => {
    const wrong: unknown[] = [
      null,
      'x',
      [],
      { ...key, address: '0x12' },
      { ...key, address: undefined },
      { ...key, keyId: 'attest-1' },
      { ...key, keyId: undefined },
      ...[-1, 1.5, '0', null, undefined, 2 ** 53].map((validFrom) => ({ ...key, validFrom })),
      ...[-1, 1.5, '0', undefined, 2 ** 53].map((validUntil) => ({ ...key, validUntil })),
      ...['', 'other', undefined].map((status) => ({ ...key, status })),
    ]
    for (const one of wrong)
      for (const list of [[one], [key, one], [one, key]]) assert.equal(readPublishedKeys(list), null)
    for (const document of [null, undefined, 'x', {}, { keys: key }, { list: [key] }, { keys: null }])
      assert.equal(readPublishedKeys(document), null)
    assert.equal(readPublishedKeys(Array(201).fill(key)), null)
    assert.equal(readPublishedKeys({ length: 0 }), null)
  })
})
