/** Readings of a report that several tests share. */
import type { Report } from '../src/index.ts'

/** The fields whose checks failed. */
export function failed({ checks }: Report): string[] {
  return checks.filter(({ ok }) => !ok).map(({ field }) => field)
}

/** Returns the value that a report found for a field. */
export function found({ checks }: Report, field: string): string | undefined {
  return checks.find((check) => check.field === field)?.found
}
