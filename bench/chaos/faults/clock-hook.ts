/**
 * Is loaded with `node --import`. The wall clock of this process is then off by as many milliseconds as the file CHAOS_CLOCK_FILE says,
 * read again at SIGUSR2. Only `Date` moves, as when an administrator or NTP steps the clock of one machine: timers and `performance.now()`
 * are the system's monotonic clock, which no step moves, and the other machines, the database and the chain keep their own time.
 */
import { readFileSync } from 'node:fs'

const RealDate = Date
let offset = 0

function look(): void {
  try {
    offset = Number(readFileSync(process.env['CHAOS_CLOCK_FILE'] ?? '', 'utf8')) || 0
  } catch {
    offset = 0
  }
}

class SteppedDate extends RealDate {
  constructor(...given: unknown[]) {
    super(...((given.length === 0 ? [SteppedDate.now()] : given) as [number]))
  }
  static override now(): number {
    return RealDate.now() + offset
  }
}

look()
process.on('SIGUSR2', look)
globalThis.Date = SteppedDate as DateConstructor
