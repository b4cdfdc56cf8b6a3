/**
 * The budget of searches for the batch of a tap (spec §8). A forged link names no batch, so that every key must be tried; the budget
 * bounds the processor time of that. It is counted in trial decryptions with one metaRead key, about 0.5 µs each.
 */
export type SearchBudget = {
  /** Spends `units` when anything is left, even if that is less, so that one search of any length can run. */
  readonly spend: (units: number) => boolean
  /** Gives units back after a search that found a genuine tap, so that only forged ones use the budget up. */
  readonly refund: (units: number) => void
}

/** Units of a derivation and MAC from AES or HMAC. */
export const macUnits = 50
/** Units of a derivation by PBKDF2 with 5000 rounds (`sdm-backend-legacy`), or by a master in a token. */
export const slowUnits = 10_000

/** Creates a token bucket: `burst` units at once, refilled by `perSecond`. The default is about 3 % of a core. `now` is monotonic, in ms. */
export function createSearchBudget({
  perSecond = 50_000,
  burst = 500_000,
  now = () => performance.now(),
}: { readonly perSecond?: number; readonly burst?: number; readonly now?: () => number } = {}): SearchBudget {
  let left = burst
  let filledAt = now()
  return {
    spend(units) {
      const at = now()
      left = Math.min(burst, left + ((at - filledAt) / 1_000) * perSecond)
      filledAt = at
      if (left <= 0) return false
      left -= units
      return true
    },
    refund(units) {
      left = Math.min(burst, left + units)
    },
  }
}
