/** Keeps a provider that fails again and again out of the way (spec §2.5: an answer within seconds, or CHAIN_UNAVAILABLE). */

export type BreakerState = 'closed' | 'open' | 'ready'

export type Breaker = ReturnType<typeof createBreaker>

/** Opens after `faults` faults in a row, for `openMs`. `now` is in milliseconds. */
export function createBreaker({ faults, openMs, now }: { faults: number; openMs: number; now: () => number }) {
  let inARow = 0
  let openUntil = 0
  let probing = false

  /** `ready` is open long enough: one attempt may try whether the provider is back. */
  function state(): BreakerState {
    if (inARow < faults) return 'closed'
    return now() < openUntil || probing ? 'open' : 'ready'
  }

  /** Returns whether an attempt may start now. In `ready` only the first caller gets true, until that attempt has ended. */
  function admit(): boolean {
    const at = state()
    probing = at === 'ready' ? true : probing
    return at !== 'open'
  }

  function answered(): void {
    inARow = 0
    probing = false
  }

  function fault(): void {
    inARow++
    probing = false
    if (inARow >= faults) openUntil = now() + openMs
  }

  return { state, admit, answered, fault }
}
