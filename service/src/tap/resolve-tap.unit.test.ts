import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Verdict } from '@touchstone/verdict'
import type { Verdicts } from '../assets/verdicts.ts'
import type { TappedProduct } from './replay-ledger.ts'
import { createResolveTap } from './resolve-tap.ts'
import type { TappedTag } from './verify-tap.ts'

const tag: TappedTag = {
  kind: 'tapped',
  uid: '04DE5F1EACC040',
  tapCounter: 1,
  epoch: 0,
  batchId: 'a',
  tagHash: '0x01',
  formerTagHash: '0x02',
  ageSeconds: 0,
  fresh: true,
  isFirstClient: true,
  isAnnounced: false,
}
/** The chain has the tag by its former commitment. */
const answer = {
  block: { number: 7n, hash: '0x07', timestamp: 7n },
  asset: { verdict: { token_id: '5' } as Verdict, flags: 0, timestamp: 1, metadataHash: null, tagHash: '0x02' },
} as const
const product = { tokenId: 5n, tagHash: '0x02' }

describe('the product of a tap', () => {
  it('has the commitment by which the chain has the tag, and is verified once', async () => {
    let fresh = true
    let verified = 0
    const resolveTap = createResolveTap({
      verifyTap: async (_request, productOf) => {
        assert.deepEqual(await productOf?.(tag), product)
        return { ...tag, isAnnounced: true, fresh }
      },
      verdicts: {
        byTag: async (...hashes) => {
          assert.deepEqual(hashes, [tag.tagHash, tag.formerTagHash])
          return answer
        },
      },
      announce: () => assert.fail('it was announced when it was accepted'),
      onVerified: () => void (verified += 1),
      onRefused: () => assert.fail('it is genuine'),
    })
    for (fresh of [true, false]) {
      const outcome = await resolveTap({ picc: '', cmac: '' })
      assert.ok(outcome.kind === 'resolved' && outcome.tag.tagHash === answer.asset.tagHash)
    }
    assert.equal(verified, 1)
  })
})

describe('a tap whose chain does not answer', () => {
  it('is consumed without its product, then resolved and announced when the chain answers', async () => {
    const reading = Promise.withResolvers<Awaited<ReturnType<Verdicts['byTag']>>>()
    const announced: TappedProduct[] = []
    const verified: string[] = []
    const resolveTap = createResolveTap({
      verifyTap: async (_request, productOf) => {
        assert.equal(await productOf?.(tag), null)
        reading.resolve(answer)
        return tag
      },
      verdicts: { byTag: () => reading.promise },
      announce: async ({ tokenId, tagHash }) => announced.push({ tokenId, tagHash }) === 1,
      onVerified: (_tag, { token_id: tokenId }) => void verified.push(tokenId),
      onRefused: () => assert.fail('it is genuine'),
    })
    assert.equal((await resolveTap({ picc: '', cmac: '' })).kind, 'resolved')
    assert.deepEqual([announced, verified], [[product], ['5']])
  })

  it('is a replay when it is one', async () => {
    const refused: string[] = []
    const resolveTap = createResolveTap({
      verifyTap: async (_request, productOf) => ((await productOf?.(tag)) === null ? { kind: 'replayed' } : tag),
      verdicts: { byTag: () => Promise.reject(new Error('no provider answers')) },
      announce: () => assert.fail('nothing is announced'),
      onVerified: () => assert.fail('nothing is verified'),
      onRefused: (kind) => void refused.push(kind),
    })
    assert.deepEqual(await resolveTap({ picc: '', cmac: '' }), { kind: 'replayed' })
    assert.deepEqual(refused, ['replayed'])
  })
})
