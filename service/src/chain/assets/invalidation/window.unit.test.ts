import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { encodeWord } from '../../../lib/words.ts'
import type { Block } from '../../rpc/block.ts'
import { createWindow } from './window.ts'

const blockAt = (number: bigint, branch = 0n) =>
  ({ number, hash: `0x${encodeWord(number + branch * 1_000n)}` }) as unknown as Block

describe('a record of an earlier block', () => {
  it('holds at the head unless its token was named since, and is unknown below the window', () => {
    const window = createWindow()
    window.restart(blockAt(5n))
    window.append(blockAt(6n), { tokens: new Set([1n]), silent: false })
    const found = (number: bigint, token = 1n, branch = 0n) => window.validity(token, blockAt(number, branch))
    assert.deepEqual([found(6n), found(5n), found(5n, 2n)], ['valid', 'stale', 'valid'])
    assert.deepEqual([found(7n), found(6n, 2n, 1n)], ['stale', 'stale'], 'of another branch')
    assert.deepEqual([found(4n), found(4n, 2n, 1n)], ['unknown', 'unknown'])
  })
})
