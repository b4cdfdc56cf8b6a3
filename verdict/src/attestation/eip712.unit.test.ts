import assert from 'node:assert/strict'
import { it } from 'node:test'
import { domainSeparator } from './eip712.ts'

it('the domain separator is that of the payment token on Base Sepolia', () => {
  const domain = { name: 'USDC', version: '2', chainId: 84532 } as const
  assert.equal(
    domainSeparator({ ...domain, verifyingContract: '0x036CbD53842c5426634e7929541eC2318f3dCF7e' }),
    '0x71f17a3b2ff373b803d70a5a07c046c1a2bc8e89c09ef722fcb047abe94c9818',
  )
})
