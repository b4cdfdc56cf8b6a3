import assert from 'node:assert/strict'
import { createCipheriv } from 'node:crypto'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { createAesKey } from './aes.ts'
import { an10922, diversificationInput } from './an10922.ts'
import { hexOf, join } from './bytes.ts'

const bytes = (hex: string) => Uint8Array.from(Buffer.from(hex, 'hex'))
const example = bytes('00112233445566778899AABBCCDDEEFF')
const derived = async (key: Uint8Array, input: Uint8Array) => hexOf(await an10922(createAesKey(key), input))

describe('AN10922 key diversification', () => {
  it('gives the key of AN10922 §2.2.1', async () => {
    assert.equal(
      await derived(example, bytes('04782E21801D803042F54E585020416275')),
      'A8DD63A3B89D54B37CA802473FDA9175',
    )
  })

  it('rests on the subkeys of AN10922 §2.2.1', () => {
    const [k0, k1, k2] = subkeys(example)
    assert.equal(hexOf(k0), 'FDE4FBAE4A09E020EFF722969F83832B')
    assert.equal(hexOf(k1), 'FBC9F75C9413C041DFEE452D3F0706D1')
    assert.equal(hexOf(k2), 'F793EEB928278083BFDC8A5A7E0E0D25')
  })

  it('gives the key of slot 2 for UID, application and system id', async () => {
    const input = diversificationInput(bytes('04782E21801D80'), 2, 'avs')
    assert.equal(hexOf(input), '04782E21801D80D276000085010102617673')
    assert.equal(await derived(example, input), 'D11980E5258E510275155415664D1514')
  })

  it('equals plain CMAC from 16 bytes on, and differs below', async () => {
    const zeroKey = new Uint8Array(16)
    assert.equal(await derived(zeroKey, new Uint8Array(16)), 'D8FDE90CA79F04AB7F50FE462D9153AD')
    assert.equal(hexOf(byTheNote(zeroKey, new Uint8Array(16))), 'D8FDE90CA79F04AB7F50FE462D9153AD')
    assert.equal(hexOf(byTheNote(zeroKey, new Uint8Array(15))), '5CA6B9ED3759FE07C878FC8FE1315E2E')
    const plainCmac = createAesKey(zeroKey).cmac(join([1], new Uint8Array(15)))
    assert.equal(hexOf(plainCmac), 'A3582DDDFA01FFC4D94BE62DEB0972D8')
  })

  it('refuses inputs outside 16 to 31 bytes', () => {
    for (const length of [0, 15, 32, 100]) {
      assert.throws(() => an10922(createAesKey(example), new Uint8Array(length)), RangeError)
    }
  })

  it('is the construction of the note, for every length it accepts', async () => {
    const key = fc.uint8Array({ minLength: 16, maxLength: 16 })
    const input = fc.uint8Array({ minLength: 16, maxLength: 31 })
    await fc.assert(
      fc.asyncProperty(key, input, async (master, m) => {
        assert.equal(await derived(master, m), hexOf(byTheNote(master, m)))
      }),
    )
  })
})

/** AN10922 §2.2 word by word, on node:crypto: pad 01 || M to 32 bytes, mask the last block, CBC. */
function byTheNote(key: Uint8Array, m: Uint8Array): Uint8Array {
  const [, k1, k2] = subkeys(key)
  const message = new Uint8Array(32)
  message.set(join([1], m))
  if (m.length < 31) message[m.length + 1] = 0x80
  const mask = m.length < 31 ? k2 : k1
  for (let index = 0; index < 16; index++) message[16 + index] = (message[16 + index] ?? 0) ^ (mask[index] ?? 0)
  const cipher = createCipheriv('aes-128-cbc', key, new Uint8Array(16)).setAutoPadding(false)
  return cipher.update(message).subarray(16)
}

function subkeys(key: Uint8Array): [Uint8Array, Uint8Array, Uint8Array] {
  const k0 = createCipheriv('aes-128-ecb', key, null).setAutoPadding(false).update(new Uint8Array(16))
  const doubled = (block: Uint8Array) => {
    const value = BigInt(`0x${hexOf(block)}`) << 1n
    const reduced = value >> 128n ? (value ^ 0x87n) & ((1n << 128n) - 1n) : value
    return bytes(reduced.toString(16).padStart(32, '0'))
  }
  return [k0, doubled(k0), doubled(doubled(k0))]
}
