import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { zeroAddress } from '@touchstone/verdict'
import type { VerdictAnswer } from '../../assets/verdicts.ts'
import { zeroHash } from '../../domain/chain.ts'
import { localEthereumKey } from '../../keys/ethereum.ts'
import { attestationKeyOf, createAttest, type AttestationKey } from './attest.ts'

const keyOf = (byte: number) => {
  const key = localEthereumKey(new Uint8Array(32).fill(byte))
  assert.ok(key)
  return attestationKeyOf(key)
}

describe('an attestation', () => {
  const order = { tokenId: 7n, assetId: '7' } as Parameters<ReturnType<typeof createAttest>>[0]
  /** The answer about an asset, as the maker of verdicts gives it. */
  const about = (token_id: string, state_code: number) => ({ verdict: { token_id, state_code } }) as VerdictAnswer

  it('is not made of a verdict about another asset, or about none', async () => {
    for (const answer of [about('8', 3), about('7', 0)]) {
      const attest = createAttest({
        verdicts: { answer: async () => answer },
        key: () => assert.fail('a key was asked for'),
      })
      await assert.rejects(attest(order), { error: 'chain_unavailable', cause: 'the verdict is about another asset' })
      await assert.rejects(attest(order, 'a proof of before'), { error: 'chain_unavailable' })
    }
  })

  it('is not sold where another key has signed it', async () => {
    const chainRef = { chain_id: 84532, contract: zeroAddress, token_id: '7', block_number: 1, block_hash: zeroHash }
    const verdict = { token_id: '7', state: 'ACTIVATED', state_code: 3, owner_commitment: null, chainRef }
    const answer = { verdict, flags: 0 } as unknown as VerdictAnswer
    const attestBy = (signer: AttestationKey) =>
      createAttest({
        verdicts: { answer: async () => answer },
        key: () => ({ ...keyOf(1), sign: signer.sign }),
      })(order)
    assert.match((await attestBy(keyOf(1))) ?? '', new RegExp(`"signer":"${keyOf(1).address}"`))
    await assert.rejects(attestBy(keyOf(2)), { error: 'signer_unavailable' })
  })

  it('is not made where there is no asset', async () => {
    const attest = createAttest({
      verdicts: { answer: async () => null },
      key: () => assert.fail('a key was asked for'),
    })
    assert.equal(await attest(order), null)
  })
})
