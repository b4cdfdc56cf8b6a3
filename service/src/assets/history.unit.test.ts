/** The cost of a history: an owner can make a thousand events of one token, each by the same account. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { noMembers } from '../../test/support/index/rows.ts'
import { type AssetEvent, eventKinds } from '../domain/registry-event.ts'
import { createLog } from '../lib/log.ts'
import { encodeWord } from '../lib/words.ts'
import { createHistories } from './history.ts'

const owner = `0x${'a'.repeat(40)}` as const
const hashOf = (number: bigint) => `0x${encodeWord(number)}` as const
const block = { number: 2_000n, hash: hashOf(2_000n) }

function eventAt(index: number, event: Partial<AssetEvent>): AssetEvent {
  const blockNumber = BigInt(index + 1)
  return {
    kind: eventKinds.FlagsChanged,
    tokenId: '7',
    ...noMembers,
    actor: owner,
    blockNumber,
    blockHash: hashOf(blockNumber),
    logIndex: 0,
    transactionHash: hashOf(blockNumber),
    timestamp: blockNumber,
    ...event,
  }
}

describe('the history of a token with a thousand events', () => {
  it('commits to each account once', async (t) => {
    const mint = [
      eventAt(0, { kind: eventKinds.AssetMinted }),
      eventAt(1, { kind: eventKinds.StateChanged, fromState: 0, toState: 1 }),
    ]
    const rows = [...mint, ...Array.from({ length: 998 }, (_, index) => eventAt(index + 2, { flags: index % 2 }))]
    const histories = createHistories({
      assets: {
        read: async () => ({ asset: { record: { owner, timestamp: 1n, state: 1, flags: 0, reserved: 0 } }, block }),
      },
      index: { until: async () => true },
      store: { of: async () => ({ cursor: block, hashAt: block.hash, rows }) },
      contract: `0x${'c'.repeat(40)}`,
      chainId: 84532,
      log: createLog(() => {}, 'silent'),
    })
    const { mock } = t.mock.method(globalThis, 'BigInt')
    const history = await histories(7n)
    const numbers = mock.callCount()
    assert.ok(history.available)
    assert.equal(history.events.length, 1_000)
    assert.equal(new Set(history.events.map(({ actorCommitment }) => actorCommitment)).size, 1)
    assert.ok(numbers < 100, `${numbers} numbers were made`)
  })
})
