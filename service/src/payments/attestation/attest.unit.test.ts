import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { VerdictAnswer } from '../../assets/verdicts.ts'
import { createAttest } from './attest.ts'

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

  it('is not made where there is no asset', async () => {
    const attest = createAttest({
      verdicts: { answer: async () => null },
      key: () => assert.fail('a key was asked for'),
    })
    assert.equal(await attest(order), null)
  })
})
