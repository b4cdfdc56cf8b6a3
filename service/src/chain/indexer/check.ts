/**
 * The leader compares its index with the chain every minute (spec §2.5): the number of tokens, and a few of them. Where they differ, it
 * reads everything again and finds what is to be repaired.
 */
import type { IndexRepair } from '../../domain/chain-index.ts'
import { reasonOf } from '../../lib/errors.ts'
import type { Log } from '../../lib/log.ts'
import { verifyIndex, type VerifyIndexOptions } from './verify.ts'

export type IndexCheckOptions = Omit<VerifyIndexOptions, 'source'> & Readonly<{ everyMs?: number }>

/** A repair that changes nothing is tried again after this many times the pause, at most. */
const longestPauses = 64

export function createIndexCheck(
  options: IndexCheckOptions &
    Pick<VerifyIndexOptions, 'source'> &
    Readonly<{ onCompared: (differences: number) => Promise<unknown>; onRepair: () => void; log: Log }>,
) {
  const { everyMs = 60_000, sample = 10, onCompared, onRepair, log } = options
  let running = false
  let checkAt = -Infinity
  let repairAt = -Infinity
  let pauses = 1
  let repairs = 0
  let differences: number | null = null
  let repair: IndexRepair | null = null

  async function compare(): Promise<void> {
    const before = differences
    const found = await verifyIndex({ ...options, sample })
    if (found === null) return
    differences = found.differences.length
    if (found.supply !== null) differences += Math.abs(Number(found.supply - found.products))
    if (differences === 0 || differences < (before ?? 0)) {
      repairAt = -Infinity
      pauses = 1
    }
    if (differences === 0) return
    if (!before) log.error('the index differs from the chain', { differences })
    if (performance.now() < repairAt) return
    const { sample: _, ...whole } = options
    repair = (await verifyIndex(whole))?.repair ?? null
    repairAt = performance.now() + everyMs * pauses
    pauses = Math.min(longestPauses, 2 * pauses)
  }

  async function run(): Promise<void> {
    running = true
    try {
      await compare()
      if (differences !== null) await onCompared(differences)
    } catch (error) {
      log.warn('index not compared with the chain', { reason: reasonOf(error) })
    }
    running = false
    checkAt = performance.now() + everyMs
    if (repair !== null) onRepair()
  }

  return {
    /** Is called at the head. It begins a comparison in the background if one is due, and returns the repair that one asked for. */
    next(): IndexRepair | null {
      const asked = repair
      repair = null
      if (asked !== null) {
        repairs += 1
        checkAt = -Infinity
      } else if (!running && performance.now() >= checkAt) void run()
      return asked
    },
    /** `differences` is `null` before the first comparison here. */
    status: () => ({ differences, repairs }),
  }
}
