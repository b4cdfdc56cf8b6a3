/** What a gateway signs with given keys: the proof of one asset, without a payment. */
import type { Verdict } from '@touchstone/verdict'
import { createAttest } from '../../src/payments/attestation/attest.ts'
import type { AttestationKeys } from '../../src/payments/attestation/keys.ts'

export const attestedContract = '0x5FbDB2315678afecb367f032d93F642f64180aa3'

const verdict: Verdict = {
  version: '1',
  token_id: '1042',
  authentic: true,
  state: 'ACTIVATED',
  state_code: 3,
  flagged: false,
  owner_commitment: null,
  chainRef: {
    chain_id: 84532,
    contract: attestedContract,
    token_id: '1042',
    block_number: 7,
    block_hash: `0x${'ab'.repeat(32)}`,
  },
  network: 'base-sepolia',
  audit_status: 'unaudited',
  production_ready: false,
}

/** `now` in milliseconds. */
export async function proofBy(keys: AttestationKeys, now = Date.now): Promise<Proof> {
  const verdicts = { answer: async () => ({ verdict }) as never }
  const attest = createAttest({ verdicts, key: keys.active, now })
  return JSON.parse((await attest({ tokenId: 1042n, assetId: '1042', requestHash: '' })) ?? 'null')
}

export type Proof = { attestation: { signature: `0x${string}`; eip712: { signature: `0x${string}` } } }
