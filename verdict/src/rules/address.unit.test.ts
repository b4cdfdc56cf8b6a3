import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Hex } from '../lib/hex.ts'
import { checksumAddress, isAddress } from './address.ts'

// The test cases of EIP-55.
const checksummed: Hex[] = [
  '0x52908400098527886E0F7030069857D2E4169EE7',
  '0x8617E340B3D01FA5F11F306F4090FD50E238070D',
  '0xde709f2102306220921060314715629080e2fb77',
  '0x27b1fdb04752bbc536007a920d24acb045561c26',
  '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed',
  '0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359',
  '0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB',
  '0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb',
]

describe('checksumAddress', () => {
  for (const address of checksummed) {
    it(`writes ${address} whatever the case of its letters`, () => {
      assert.equal(checksumAddress(address.toLowerCase() as Hex), address)
      assert.equal(checksumAddress(`0x${address.slice(2).toUpperCase()}`), address)
    })
  }
})

describe('isAddress', () => {
  it('takes 40 hex digits of any case and nothing else', () => {
    assert.ok(checksummed.every(isAddress))
    const others = [
      '',
      '0x',
      checksummed[0]?.slice(2),
      `${checksummed[0]}0`,
      `0${checksummed[0]}`,
      `0X${checksummed[0]?.slice(2)}`,
      `0x${'g'.repeat(40)}`,
      1,
      null,
    ]
    assert.deepEqual(others.filter(isAddress), [])
  })
})
