/** Pins that a caller gives are never dropped. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Hex } from '../lib/hex.ts'
import { type Deployment, deployments, type Pins, resolvePins } from './deployments.ts'

const { local, 'base-sepolia': sepolia } = deployments
const other: Hex = `0x${'ab'.repeat(20)}`
const codeHash: Hex = `0x${'cd'.repeat(32)}`

describe('the known deployments', () => {
  it('are the announced ones', () => {
    const [chainId, contract, recordsSlot] = [84532, '0x5FbDB2315678afecb367f032d93F642f64180aa3', 3n]
    assert.deepEqual(deployments, {
      'base-sepolia': {
        chainId,
        contract: '0x3aDc7EFDb58Ae85483eFf5D4966D916185f31d1D',
        codeHash: null,
        recordsSlot: null,
      },
      local: {
        chainId,
        contract,
        codeHash: '0xd5c88dd6f37ded425ba40a7032df0461c1c9f5e396baa891083c02c84ff42c0f',
        recordsSlot,
      },
      'local-v1': {
        chainId,
        contract,
        codeHash: '0x63457361c2d8ed183aa8b27713d539930809f9cad8a673839c5c8b4880f22894',
        recordsSlot,
      },
    })
  })
})

describe('the pins of a caller', () => {
  it('are those of the deployment they name, in any case of letters', () => {
    assert.deepEqual(resolvePins(other, { deployment: 'local' }), {
      contract: local.contract,
      codeHash: local.codeHash,
      recordsSlot: 3n,
    })
    const upper = local.contract.toUpperCase().replace('0X', '0x') as Hex
    assert.equal(resolvePins(upper, { deployment: 'local', contract: upper }).codeHash, local.codeHash)
  })

  it('are those of the public deployment only for its own contract', () => {
    assert.equal(resolvePins(sepolia.contract, {}).contract, sepolia.contract)
    assert.equal(resolvePins(other, {}).contract, null)
    assert.deepEqual(resolvePins(other, { contract: other, codeHash }), { contract: other, codeHash, recordsSlot: 3n })
  })

  it('are rejected when they contradict each other, or name a deployment that is not known', () => {
    const elsewhere: Deployment = { ...local, chainId: 8453 }
    const wrong: [pins: unknown, message: RegExp][] = [
      [{ deployment: 'mars' }, /known deployment: base-sepolia, local/],
      [{ deployment: '' }, /known deployment/],
      [{ deployment: 'toString' }, /known deployment/],
      [{ deployment: '__proto__' }, /known deployment/],
      [{ deployment: 'local', contract: other }, /different contracts/],
      [{ deployment: 'local', contract: sepolia.contract }, /different contracts/],
      [{ deployment: elsewhere }, /chain 84532/],
    ]
    for (const [pins, message] of wrong)
      for (const contract of [other, sepolia.contract, local.contract])
        assert.throws(() => resolvePins(contract, pins as Pins), { name: 'TypeError', message })
  })
})
