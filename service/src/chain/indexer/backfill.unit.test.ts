import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { rangeTooWide } from '../rpc/answer.ts'
import { createBackfill } from './backfill.ts'
import type { RetryingSource } from './retrying-source.ts'

/** Reads one range of five blocks. Returns how many blocks each request for logs was about, and the reason of the failure. */
async function failedRange(answer: unknown) {
  const widths: number[] = []
  const source = {
    logsBetween: (from: bigint, to: bigint) => {
      assert.ok(widths.push(Number(to - from) + 1) < 10, 'asks without an end')
      return Promise.resolve(answer)
    },
    blocksAt: (numbers: readonly bigint[]) => Promise.resolve(numbers.map(() => null)),
  }
  const { ranges } = createBackfill({ source: source as unknown as RetryingSource, wantedLogs: 100 })
  const fault: unknown = await ranges(1n, 5n)
    .next()
    .catch((error: unknown) => error)
  assert.ok(fault instanceof Error)
  return { widths, reason: String(fault.cause) }
}

describe('a range of past blocks', () => {
  it('fails where one block has more logs than a provider sends', async () => {
    const { widths, reason } = await failedRange(rangeTooWide)
    assert.deepEqual(widths, [5, 2, 1])
    assert.match(reason, /more logs than a provider sends/)
  })

  it('fails where the provider lacks a block of it', async () => {
    const { widths, reason } = await failedRange([])
    assert.deepEqual(widths, [5])
    assert.match(reason, /lacks a block/)
  })
})
