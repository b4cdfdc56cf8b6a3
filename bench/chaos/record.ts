/** Record of the clients of a fleet: every attempt, by kind of request and instance. */

export const kinds = ['read', 'tap', 'list', 'register', 'pay'] as const
export type Kind = (typeof kinds)[number]
/** `ok` is what the client wanted; `refused` an answer that asks it to come again; `gone` no answer at all. */
export type Outcome = 'ok' | 'refused' | 'gone'
export type Attempt = {
  readonly kind: Kind
  readonly instance: string
  /** When it ended, in ms of `performance.now()`. */
  readonly at: number
  readonly took: number
  readonly outcome: Outcome
  readonly status: number
}

export type Record = ReturnType<typeof createRecord>

export function createRecord() {
  const attempts: Attempt[] = []
  const broken = new Map<string, { times: number; readonly example: string }>()
  /** Requests of clients, each of one or more attempts. */
  const asked = { atOnce: 0, elsewhere: 0, not: 0 }

  return {
    attempts,
    asked,
    add: (attempt: Attempt): void => void attempts.push(attempt),
    /** A promise that did not hold; the same one is counted, its first example kept. */
    broke(what: string, example = ''): void {
      const known = broken.get(what)
      if (known === undefined) broken.set(what, { times: 1, example })
      else known.times += 1
    },
    broken: (): string[] =>
      [...broken].map(
        ([what, { times, example }]) => `${what}${times > 1 ? ` (${times} times)` : ''}${example && `: ${example}`}`,
      ),
    counts: (): { readonly [Name in Outcome]: number } => {
      const counts = { ok: 0, refused: 0, gone: 0 }
      for (const { outcome } of attempts) counts[outcome] += 1
      return counts
    },
    /** Statuses of refusals, such as `read 502`, with how often each came. */
    refusals: (): string => {
      const counts = new Map<string, number>()
      for (const { kind, outcome, status } of attempts) {
        if (outcome === 'refused') counts.set(`${kind} ${status}`, (counts.get(`${kind} ${status}`) ?? 0) + 1)
      }
      return [...counts].map(([name, count]) => `${name} ×${count}`).join(', ')
    },
    /** Seconds from `since` to the last attempt that was not ok, of all that ended after it. */
    badUntil: (since: number): number =>
      Math.max(0, ...attempts.filter(({ at, outcome }) => at > since && outcome !== 'ok').map(({ at }) => at - since)) /
      1_000,
    /** Which of these pairs of kind and instance had nothing wanted since then. */
    silentSince: (since: number, kinds: readonly Kind[], instances: readonly string[]): string[] => {
      const answered = new Set(
        attempts.flatMap(({ kind, instance, at, outcome }) =>
          at > since && outcome === 'ok' ? [`${kind} of ${instance}`] : [],
        ),
      )
      return kinds
        .flatMap((kind) => instances.map((name) => `${kind} of ${name}`))
        .filter((pair) => !answered.has(pair))
    },
  }
}
