/** A tracker of transactions over a chain, slots and a sender that tests make up. */
import assert from 'node:assert/strict'
import { type Hex, toHex } from 'viem'
import { createLog } from '../../../src/lib/log.ts'
import type { Slot } from '../../../src/payments/facilitator/slots.ts'
import { createTracker } from '../../../src/payments/facilitator/tracker.ts'
import { until } from '../wait.ts'

const fees = { maxFeePerGas: 3n, maxPriorityFeePerGas: 1n }
const token = `0x${'c4'.repeat(20)}`
const receipt = {
  logs: [],
  gasUsed: '0x14ff8',
  effectiveGasPrice: '0x1',
  blockHash: `0x${'b1'.repeat(32)}`,
  blockNumber: '0x9',
}
/** Two accounts that send. */
export const [one, two] = [`0x${'a1'.repeat(20)}`, `0x${'b2'.repeat(20)}`] as const
type Options = Parameters<typeof createTracker>[0]
type Stuck = Parameters<Options['resign']>[2]

/**
 * Follows transactions of accounts whose next nonces are `counts`. Each look finds a new block, unless `isStill`. What `resign` makes of
 * a slot is noted, and so is all else that the tracker does.
 */
export function trackerOf({
  isStill = false,
  againMs = Infinity,
  stuckMs = Infinity,
  secondsPerBlock = 60n,
  to = token,
} = {}) {
  const counts = new Map<unknown, (block: bigint) => number>([
    [one, () => 5],
    [two, () => 100],
  ])
  const noted = {
    number: 1_000n,
    branch: 0,
    looks: 0,
    looksAt: new Map<unknown, number>(),
    mined: [] as bigint[],
    lost: [] as bigint[],
    released: [] as bigint[],
    gaps: [] as [Hex, number][],
    sent: [] as Hex[],
    sentAt: [] as bigint[],
    resigned: [] as [bigint, Stuck][],
    replaced: [] as Hex[],
    lines: [] as string[],
  }
  const minedHashes = new Set<unknown>()
  /** A transaction is mined after so many looks at it. A test that waits for them may be too late, because each look is a new block. */
  const minedAfter = new Map<unknown, number>()
  const unread = new Set<unknown>()
  const fails = { mined: false, send: undefined as Error | undefined, resign: new Set<number>() }
  const replacements: Hex[] = []
  const tracker = createTracker({
    rpc: async (method, [given] = []) => {
      if (method === 'eth_getTransactionCount') return toHex(counts.get(given)?.(noted.number) ?? 0)
      noted.looks += 1
      const looks = (noted.looksAt.get(given) ?? 0) + 1
      noted.looksAt.set(given, looks)
      if (unread.has(given)) return { ...receipt, gasUsed: 'much' }
      return minedHashes.has(given) || looks > (minedAfter.get(given) ?? Infinity) ? { ...receipt, to } : null
    },
    heads: {
      head: async () => {
        if (!isStill) noted.number += 1n
        const { number, branch } = noted
        return {
          number,
          hash: toHex(number * 16n + BigInt(branch)),
          timestamp: secondsPerBlock * number,
          baseFee: 1n,
        }
      },
      fees: async () => fees,
    },
    slots: {
      mined: async ({ pk }: { pk: bigint }) => {
        if (fails.mined) throw new Error('connection terminated')
        noted.mined.push(pk)
      },
      lost: async ({ pk }: { pk: bigint }) => void noted.lost.push(pk),
      replace: async (slot: Slot, { raw, hash }: { raw: Hex; hash: Hex }) => {
        noted.replaced.push(raw)
        return { ...slot, raw, hashes: [...slot.hashes, hash] }
      },
      release: async (slots: readonly Slot[]) => void noted.released.push(...slots.map(({ pk }) => pk)),
    } as unknown as Options['slots'],
    resign: async (slot, now, stuck) => {
      assert.deepEqual(now, fees)
      if (fails.resign.has(slot.nonce)) throw new Error('no key')
      noted.resigned.push([slot.pk, stuck])
      const raw = replacements.shift()
      return raw && { raw, hash: raw }
    },
    fillGap: async (...gap) => void noted.gaps.push(gap),
    send: async (raw) => {
      noted.sent.push(raw)
      noted.sentAt.push(noted.number)
      if (fails.send) throw fails.send
    },
    log: createLog((line) => noted.lines.push(line)),
    pauses: { pollMs: 1, failedMs: 1, againMs, stuckMs },
  })
  const track = (sender: Hex, nonce: number, { validBefore = 2n ** 63n, hashes = 1 } = {}) => {
    const pk = BigInt(nonce)
    const own = Array.from({ length: hashes }, (_, n) => toHex(16 * nonce + n, { size: 4 }))
    const slot = { pk, sender, nonce, raw: own.at(-1) ?? '0x', hashes: own }
    const found = tracker.track({ slot, validBefore })
    found.catch(() => {})
    return { found, hashes: own, raw: slot.raw, tracking: { slot, validBefore } }
  }
  const timesSent = (raw: Hex) => noted.sent.filter((transaction) => transaction === raw).length
  const looksAt = (raw: Hex) => noted.looksAt.get(raw) ?? 0
  const blocks = (count: bigint) => {
    const from = noted.number
    return until(() => noted.number > from + count)
  }
  return {
    tracker,
    track,
    blocks,
    timesSent,
    looksAt,
    counts,
    noted,
    minedHashes,
    minedAfter,
    unread,
    fails,
    replacements,
  }
}
