import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { utf8ToBytes } from '@noble/hashes/utils.js'
import { facts } from '../../test/_attestation.ts'
import { hexOf, keccak256 } from '../lib/hex.ts'
import { easAttestation, easDigest, easSchema, easSchemaUid } from './eas.ts'
import { attestationSigner } from './signer.ts'

// Made with @ethereum-attestation-service/eas-sdk 2.10.0 (SchemaEncoder, signOffchainAttestation) and anvil's published first key.
const signer = '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266'
const uid = '0xf14e8fc081312ade582fdc4cce6275845cbfc1a59050c617f31408c5436b7008'
const r = '0xb2234bbeee71a2fadadb006e7ec55eb71039fe0dbcf9d3e8e36042772bc71488'
const s = '0x7b6ec3bbfcae504d820f73c54a5906aec9e5bdd4c113985cb7bd1e1b387eb60e'
const data =
  '0x0000000000000000000000000000000000000000000000000000000000014a340000000000000000000000005fbdb2315678afecb367f032d93f642f64180aa3ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff00000000000000000000000000000000000000000000000000000000000000050000000000000000000000000000000000000000000000000000000000000021000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000010000000000000000000000000000000000000000000000000000000001de2a52abababababababababababababababababababababababababababababababab0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c'

describe('the EAS off-chain attestation', () => {
  const signature = `0x${r.slice(2)}${s.slice(2)}1c` as const

  it('has the schema UID of EAS’s registry', () => {
    const packed = hexOf(utf8ToBytes(easSchema)) + '00'.repeat(21) // no resolver, not revocable
    assert.equal(easSchemaUid, keccak256(Uint8Array.from(Buffer.from(packed.slice(2), 'hex'))))
  })

  it('is signed over the digest that EAS’s SDK signs', () =>
    assert.equal(attestationSigner(easDigest(facts), signature), signer.toLowerCase()))

  it('has the data, the UID and the form that EAS’s SDK gives it', () => {
    const { sig, signer: named } = easAttestation(facts, { signer, signature })
    assert.equal(named, signer)
    assert.deepEqual([sig.version, sig.uid, sig.message.schema], [2, uid, easSchemaUid])
    assert.equal(sig.message.data, data)
    assert.deepEqual(sig.signature, { v: 28, r, s })
  })

  it('has the UID of its facts', () => {
    const at = (issuedAt: number) => easAttestation({ ...facts, issuedAt }, { signer, signature }).sig.uid
    assert.equal(at(facts.issuedAt), uid)
    assert.notEqual(at(facts.issuedAt + 1), uid)
  })
})
