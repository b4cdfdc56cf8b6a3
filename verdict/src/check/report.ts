/** The report of a check of a verdict: one line for each field that was compared. */

/**
 * One comparison. `claimed` is what the verdict says, `found` what was derived; both are for people, cut short and in
 * printable ASCII. `undecided` marks one that could not be made, for example because nothing was pinned.
 */
export type Check = { field: string; ok: boolean; undecided?: true; claimed: string; found: string }

/**
 * The outcome of all comparisons. `undecided`: no comparison disagrees, but one that matters could not be made, such as
 * whether the contract is the one you trust.
 */
export type Outcome = 'agrees' | 'differs' | 'undecided'

/** All comparisons; `ok` only when the outcome is `agrees`. */
export type Report = { ok: boolean; outcome: Outcome; checks: Check[] }

/** Longest text of a hostile value that a report repeats, in UTF-16 code units. */
const longest = 200

const unpinned = 'not pinned by the caller'

/** Collects checks into a report. */
export function reportOf(checks: readonly Check[]): Report {
  const failed = checks.filter(({ ok }) => !ok)
  const outcome = failed.length === 0 ? 'agrees' : failed.every((check) => check.undecided) ? 'undecided' : 'differs'
  return { ok: outcome === 'agrees', outcome, checks: [...checks] }
}

/** Compares a value of unknown type with the one found: the same type and value, or not ok. */
export function compare(field: string, claimed: unknown, found: string | number | boolean | null): Check {
  return { field, ok: claimed === found, claimed: show(claimed), found: show(found) }
}

/** A comparison that cannot succeed, and why. */
export function fails(field: string, claimed: unknown, reason: string): Check {
  return { field, ok: false, claimed: show(claimed), found: reason }
}

/** A comparison that could not be made, and what is missing. */
export function undecided(field: string, claimed: unknown, reason: string): Check {
  return { field, ok: false, undecided: true, claimed: show(claimed), found: reason }
}

/**
 * Compares with a value that the caller may pin, in hex of any case. Where nothing is pinned the check passes and says
 * so.
 */
export function pin(field: string, claimed: string | undefined, found: string | undefined): Check {
  const ok = claimed === undefined || found === undefined || claimed.toLowerCase() === found.toLowerCase()
  return { field, ok, claimed: claimed ?? unpinned, found: found ?? unpinned }
}

/** Printable ASCII only: what a verdict hides in its text shows here as an escape. Objects are named, not printed. */
function show(value: unknown): string {
  const text = typeof value === 'object' && value !== null ? 'an object' : String(value).slice(0, longest + 1)
  const printed = text
    .slice(0, longest)
    .replace(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
  return text.length > longest ? `${printed}…` : printed
}
