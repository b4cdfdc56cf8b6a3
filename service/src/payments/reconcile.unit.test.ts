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

/** A reconciler beside a provider that contradicts the others, and what its passes do. Its clock is `ahead` by some seconds. */
function open(onLine: (line: string) => void = () => {}, ahead = 0n) {
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
    chain: { isCanonical: async () => false, heads: { isClockRight: () => ahead === 0n } },
    rpc: async () => receipt,
    log: createLog(onLine),
    count: () => {},
    intervalMs: 60_000,
    paidDays: 3_650,
  } as unknown as Parameters<typeof createReconciler>[0])
  return { did, reconciler }
}

describe('a block that is no longer in the chain, of which a provider still has a receipt', () => {
  it('is looked through for its payments, and keeps neither lost settlements nor old rows waiting', async () => {
    const { did, reconciler } = open()
    await assert.rejects(reconciler.pass(), /receipt is in a block 7/)
    assert.deepEqual(did, ['orphaned but 1', 'settledIn', 'lostButPaid', 'rejected', 'prune'])
    await reconciler[Symbol.asyncDispose]()
  })
})

describe('old rows', () => {
  it('stay where the clock of this machine is ahead of the chain', async () => {
    const { did, reconciler } = open(undefined, 3_600n)
    await assert.rejects(reconciler.pass(), /receipt is in a block 7/)
    assert.deepEqual(did, ['orphaned but 1', 'settledIn', 'lostButPaid', 'rejected'])
    await reconciler[Symbol.asyncDispose]()
  })
})

describe('looks that are hours or minutes apart', () => {
  it('are as far apart when the clock of the machine is set back', async (t) => {
    let [wall, ticks] = [1_795_227_313_000, 0]
    t.mock.method(Date, 'now', () => wall)
    t.mock.method(performance, 'now', () => ticks)
    t.mock.timers.enable({ apis: ['setInterval'] })
    let ended = () => {}
    const { did, reconciler } = open(() => ended())
    const pass = async () => {
      did.length = 0
      const logged = new Promise<void>((resolve) => (ended = resolve)) // each pass fails at the block
      t.mock.timers.tick(60_000)
      await logged
      return did.filter((name) => name === 'prune' || name === 'rejected')
    }
    assert.deepEqual(await pass(), ['rejected', 'prune'])
    wall -= 86_400_000
    ticks += 60_000
    assert.deepEqual(await pass(), [])
    ticks += 300_000
    assert.deepEqual(await pass(), ['rejected'])
    ticks += 3_600_000
    assert.deepEqual(await pass(), ['rejected', 'prune'])
    await reconciler[Symbol.asyncDispose]()
  })
})
