import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Hex } from '../lib/hex.ts'
import { attestationSigner } from './signer.ts'
import { attestationDigest, attestationTypedDigest } from './v1.ts'

// Made with viem 2.57.1 and anvil's published first key.
const message = { tokenId: 1n, state: 3, chainId: 84532, timestamp: 1795227313 } as const
const digest = '0x11a9ab12c79c2f969d26fab22109489e657175cfe0de9497cafb52f86e9abb07'
const signature =
  '0xf8d2d383505f96ce9b923e5c23feca788e9bde0d51f36b9c1267817cbe10271876be64792d8f55b2ee6293216337308c1d9024851a1ed4078750356bec46569b1b'
const typed = {
  ...message,
  blockNumber: 31337042n,
  blockHash: `0x${'ab'.repeat(32)}`,
  verifyingContract: '0x5FbDB2315678afecb367f032d93F642f64180aa3',
} as const
const typedDigest = '0xf6c9277647716868cb40ae9ee05fd637421663440640e3f9bde39b1139771ade'
const typedSignature =
  '0x45da02cba9949b2372ae22d295e30431038f5f7a6c286cd14d3eba8050f1983e655cdc5c19efe57e65ed750a296e9d52f89ca3c60bfb65882da95203f248f9b11c'
const signer = '0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266'

const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n

/** The same signature in its other form: s in the upper half, v turned. */
function mirrored(text: Hex): Hex {
  const s = order - BigInt(`0x${text.slice(66, 130)}`)
  return `0x${text.slice(2, 66)}${s.toString(16).padStart(64, '0')}${text.endsWith('1b') ? '1c' : '1b'}`
}

describe('attestationDigest', () => {
  it('is keccak256 of the four words', () => {
    assert.equal(attestationDigest(message), digest)
    assert.equal(attestationDigest({ ...message, chainId: 84532n, timestamp: 1795227313n }), digest)
  })
})

describe('attestationTypedDigest', () => {
  it('is the EIP-712 digest', () => assert.equal(attestationTypedDigest(typed), typedDigest))

  it('depends on every member', () => {
    const others = [
      { tokenId: 2n },
      { state: 4 },
      { chainId: 1 },
      { timestamp: 1 },
      { blockNumber: 1 },
      { blockHash: digest },
      { verifyingContract: signer },
    ]
    const digests = others.map((other) => attestationTypedDigest({ ...typed, ...other } as typeof typed))
    assert.equal(new Set([...digests, typedDigest]).size, 8)
  })
})

describe('attestationSigner', () => {
  it('finds the signer of both forms', () => {
    assert.equal(attestationSigner(digest, signature), signer)
    assert.equal(attestationSigner(typedDigest, typedSignature), signer)
  })

  it('finds somebody else for another digest', () => assert.notEqual(attestationSigner(typedDigest, signature), signer))

  const wrong: Record<string, Hex> = {
    'high s': mirrored(signature),
    '64 bytes': signature.slice(0, -2) as Hex,
    '66 bytes': `${signature}00`,
    'v of 0': `${signature.slice(0, -2)}00` as Hex,
    'v of 29': `${signature.slice(0, -2)}1d` as Hex,
    'r of 0': `0x${'0'.repeat(64)}${signature.slice(66)}`,
    's of 0': `${signature.slice(0, 66)}${'0'.repeat(64)}1b` as Hex,
    'r of the curve order': `0x${order.toString(16)}${signature.slice(66)}`,
    'no hex': `${signature.slice(0, -2)}zz` as Hex,
  }
  for (const [name, bad] of Object.entries(wrong))
    it(`refuses ${name}`, () => assert.equal(attestationSigner(digest, bad), null))

  it('refuses a digest that is not 32 bytes', () => assert.equal(attestationSigner('0x1234', signature), null))
})
