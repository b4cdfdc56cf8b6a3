/** Readings of reports, and of the values in them, that several tests share. */
import type { Check } from '../src/check/report.ts'

/** The fields whose checks failed. */
export function failed({ checks }: { readonly checks: readonly Check[] }): string[] {
  return checks.filter(({ ok }) => !ok).map(({ field }) => field)
}

/** Returns the value that a report found for a field. */
export function found({ checks }: { readonly checks: readonly Check[] }, field: string): string | undefined {
  return checks.find((check) => check.field === field)?.found
}

/** The texts of the check of a field. */
export function rowOf({ checks }: { readonly checks: readonly Check[] }, field: string): string[] | undefined {
  return rowsOf(checks).find(([name]) => name === field)
}

/** The texts of each check. */
export function rowsOf(checks: readonly Check[]): string[][] {
  return checks.map(({ field, claimed, found: value }) => [field, claimed, value])
}

/** The paths of all values that are no objects. */
export function leavesOf(value: unknown, path: string[] = []): string[][] {
  if (typeof value !== 'object' || value === null) return [path]
  return Object.entries(value).flatMap(([name, inner]) => leavesOf(inner, [...path, name]))
}
