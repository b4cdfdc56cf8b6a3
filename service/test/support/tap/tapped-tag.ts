/** A tag with taps for tests of the replay ledger, on a clock of its own. */
import { randomBytes } from 'node:crypto'
import type { Database } from '../../../src/db/database.ts'
import { createReplayLedger, type Tap } from '../../../src/tap/replay-ledger.ts'
import { newUid } from './tags.ts'

export const newPicc = () => Uint8Array.from(randomBytes(16))

const start = Date.parse('2026-01-01T00:00:00Z')

/**
 * Creates a tag that was never tapped. `tapOf` gives the same tap for the same counter; `at` sets the clock, `passed` that of the process.
 */
export function tappedTag(database: Database, { windowSeconds = 300 } = {}) {
  let time = start
  let passedMs = 0
  const openLedger = () =>
    createReplayLedger({ sql: database, windowSeconds, now: () => new Date(time), ageClock: () => passedMs })
  const ledger = openLedger()
  const uid = newUid()
  const taps = new Map<number, Tap>()
  const tapOf = (counter: number, change: Partial<Tap> = {}): Tap => {
    const tap = taps.get(counter) ?? { uid, epoch: 0, counter, picc: newPicc(), batchId: 'test' }
    taps.set(counter, tap)
    return { ...tap, ...change }
  }
  return {
    uid,
    tapOf,
    openLedger,
    passed: (seconds: number) => void (passedMs = seconds * 1000),
    at: (seconds: number) => void (time = start + seconds * 1000),
    tap: async (counter: number, change?: Partial<Tap>) => (await ledger.consume(tapOf(counter, change))).outcome,
    answer: (counter: number, change?: Partial<Tap>) => ledger.consume(tapOf(counter, change)),
  }
}
