/** Signs the proof of one asset with given keys, as a gateway does after a payment. */
import type { AssetAttestationTypedData, Hex, Verdict } from '@touchstone/verdict'
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
export async function proofBy(keys: Pick<AttestationKeys, 'active'>, now = Date.now): Promise<Proof> {
  const verdicts = { answer: async () => ({ verdict, flags: 0 }) as never }
  const attest = createAttest({ verdicts, key: keys.active, now })
  return JSON.parse((await attest({ tokenId: 1042n, assetId: '1042', eas: false, requestHash: '' })) ?? 'null')
}

export type Proof = {
  attestation: {
    signature: Hex
    eip712: { signature: Hex }
    v2: { message: AssetAttestationTypedData['message']; signature: Hex }
  }
}

/** go-ethereum, accounts/keystore/testdata/very-light-scrypt.json: r and p as wallets choose them; the password is empty. */
export const walletKeystore = {
  address: '45dea0fb0bba44f4fcf290bba71fd57d7117cbb8',
  crypto: {
    cipher: 'aes-128-ctr',
    ciphertext: 'b87781948a1befd247bff51ef4063f716cf6c2d3481163e9a8f42e1f9bb74145',
    cipherparams: { iv: 'dc4926b48a105133d2f16b96833abf1e' },
    kdf: 'scrypt',
    kdfparams: {
      dklen: 32,
      n: 2,
      p: 1,
      r: 8,
      salt: '004244bbdc51cadda545b1cfa43cff9ed2ae88e08c61f1479dbb45410722f8f0',
    },
    mac: '39990c1684557447940d4c69e06b1b82b2aceacb43f284df65c956daf3046b85',
  },
  id: 'ce541d8d-c79b-40f8-9f8c-20f59616faba',
  version: 3,
}
