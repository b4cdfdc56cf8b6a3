import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createLog } from '../../../lib/log.ts'
import { encodeWord } from '../../../lib/words.ts'
import type { Block } from '../../rpc/block.ts'
import { createAssetCache } from '../cache.ts'
import { createHeadInvalidator } from './invalidator.ts'

const blockOf = (number: bigint): Block => ({
  number,
  hash: `0x${encodeWord(number)}`,
  parentHash: `0x${encodeWord(0n)}`,
  timestamp: number,
  header: {},
})

describe('the invalidator by proven storage roots', () => {
  it('takes what was read at a block for valid at a head with the same root only', async () => {
    /** Storage roots of the blocks 0 to 3. */
    const roots = [1n, 2n, 2n, 1n]
    const invalidator = createHeadInvalidator({
      cache: createAssetCache(1),
      proven: async (_slots, { number }) => ({
        values: [],
        storageHash: `0x${encodeWord(roots[Number(number)] ?? 0n)}`,
        proof: { accountProof: [], storageProof: [] },
      }),
      log: createLog(() => {}, 'silent'),
    })
    const valid: number[][] = []
    for (const at of [0, 1, 2, 3]) {
      await invalidator.advance(blockOf(BigInt(at)), Infinity)
      valid.push([0, 1, 2, 3].filter((number) => invalidator.validity(7n, blockOf(BigInt(number))) === 'valid'))
    }
    assert.deepEqual(valid, [[0], [1], [1, 2], [0, 3]])
  })
})
