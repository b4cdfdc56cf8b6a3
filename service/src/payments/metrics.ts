/** Counters of the gateway since its start. */
const counted = ['offers', 'settled', 'pending', 'reconciled', 'refused', 'replayed', 'faults'] as const

export type Count = (what: (typeof counted)[number]) => void
export type Counters = {
  readonly count: Count
  readonly read: () => Readonly<Record<(typeof counted)[number], number>>
}

export function createCounters(): Counters {
  const numbers = Object.fromEntries(counted.map((name) => [name, 0])) as Record<(typeof counted)[number], number>
  return { count: (what) => (numbers[what] += 1), read: () => ({ ...numbers }) }
}
