/** A pass of the reconciler beside a provider that contradicts the others (spec §4.8). */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { toHex } from 'viem'
import { createLog } from '../lib/log.ts'
import { createReconciler } from './reconcile.ts'

const hash = toHex(7, { size: 32 })
const block = { number: 7n, hash, age: 10 }
const slot = { pk: 3n, sender: `0x${'a'.repeat(40)}`, nonce: 1, raw: '0x', hashes: [hash] }
const receipt = {
  status: '0x1',
  gasUsed: '0x1',
  effectiveGasPrice: '0x1',
  blockNumber: '0x7',
  blockHash: hash,
  logs: [],
}

describe('a block that is no longer in the chain, of which a provider still has a receipt', () => {
  it('is looked through for its payments, and keeps neither lost settlements nor old rows waiting', async () => {
    const did: string[] = []
    const note =
      <T>(name: string, answer: T) =>
      async () => {
        did.push(name)
        return answer
      }
    const reconciler = createReconciler({
      ledger: {
        adopt: async () => [],
        recentBlocks: async () => [block],
        settledIn: note('settledIn', []),
        rejected: note('rejected', []),
        prune: note('prune', 0),
      },
      slots: {
        minedIn: async () => [slot],
        orphaned: async (_block: unknown, unsure: readonly unknown[]) => void did.push(`orphaned but ${unsure.length}`),
        lostButPaid: note('lostButPaid', []),
      },
      facilitator: { adopt: async () => {} },
      settlement: { own: () => [] },
      chain: { isCanonical: async () => false },
      rpc: async () => receipt,
      log: createLog(() => {}),
      count: () => {},
      intervalMs: 3_600_000,
      paidDays: 3_650,
    } as unknown as Parameters<typeof createReconciler>[0])
    await assert.rejects(reconciler.pass(), /receipt is in a block 7/)
    assert.deepEqual(did, ['orphaned but 1', 'settledIn', 'lostButPaid', 'rejected', 'prune'])
    await reconciler[Symbol.asyncDispose]()
  })
})
