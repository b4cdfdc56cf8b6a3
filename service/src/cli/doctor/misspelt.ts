/** Finds variables that were meant to be settings. A misspelt one has no effect, and may have been a protection. */
import { settings } from '../../app/config/schema.ts'

/** `meant` is the setting whose name is nearest. */
type Misspelt = Readonly<{ name: string; meant: string }>

/**
 * Returns the variables that are no setting, and are within two letters of one. A short name has one letter of tolerance. Files are named only
 * for secrets, so that `BASE_URL_FILE` is among them.
 */
export function misspeltSettings(env: Readonly<Record<string, string | undefined>>): readonly Misspelt[] {
  const known = Object.entries(settings).flatMap(([name, { secret }]) => (secret ? [name, `${name}_FILE`] : [name]))
  const names = Object.keys(env).filter((name) => (env[name] ?? '') !== '' && !known.includes(name))
  return names.flatMap((name) => {
    const [, plain = ''] = /^(.+)_FILE$/.exec(name) ?? []
    if (Object.hasOwn(settings, plain)) return [{ name, meant: plain }]
    const near = known
      .map((meant) => ({ meant, letters: distance(name.toUpperCase(), meant) }))
      .filter(({ meant, letters }) => letters <= (meant.length < 8 ? 1 : 2))
      .toSorted((a, b) => a.letters - b.letters)
    return near.slice(0, 1).map(({ meant }) => ({ name, meant }))
  })
}

/** Returns how many letters must be added, left out or replaced (Levenshtein); 3 stands for all that is far. */
function distance(one: string, other: string): number {
  if (Math.abs(one.length - other.length) > 2) return 3
  let row = Array.from({ length: other.length + 1 }, (_, at) => at)
  for (let at = 1; at <= one.length; at += 1) {
    const next = [at]
    for (let to = 1; to <= other.length; to += 1) {
      const replaced = (row[to - 1] ?? 0) + (one[at - 1] === other[to - 1] ? 0 : 1)
      next.push(Math.min(replaced, (row[to] ?? 0) + 1, (next[to - 1] ?? 0) + 1))
    }
    row = next
  }
  return row.at(-1) ?? 0
}
