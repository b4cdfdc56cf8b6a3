/**
 * This small node:test runs the tests of one file at a time, in one process, until the first failure. Test files get it
 * in the place of node:test, which runs the tests of a process once only. A test gets the mocks of node:test, which end with it.
 */
import { mock } from 'node:test'

type Run = (context: { readonly mock: typeof mock }) => unknown
type Suite = { readonly tests: (Run | Suite)[]; readonly before: Run[]; readonly after: Run[] }

const context = { mock }
let current = emptySuite()

export function describe(_name: string, run: () => unknown): void {
  const outer = current
  current = emptySuite()
  outer.tests.push(current)
  try {
    run()
  } finally {
    current = outer
  }
}

export function it(_name: string, run: Run): void {
  current.tests.push(run)
}

export function before(run: Run): void {
  current.before.push(run)
}

export function after(run: Run): void {
  current.after.push(run)
}

/** Runs what a file registers while it is imported; returns the number of tests. Throws what the first failing test throws. */
export async function runFile(load: () => Promise<unknown>): Promise<number> {
  current = emptySuite()
  const suite = current
  let count = 0
  try {
    await load()
    await runSuite({ ...suite, after: [] })
  } finally {
    // A file that failed to load has registered what it opened before.
    for (const close of suite.after) await close(context)
  }
  return count

  async function runSuite({ before: first, tests, after: last }: Suite): Promise<void> {
    try {
      for (const prepare of first) await prepare(context)
      for (const test of tests) {
        if (typeof test !== 'function') await runSuite(test)
        else {
          count += 1
          try {
            await test(context)
          } finally {
            mock.reset()
          }
        }
      }
    } finally {
      for (const close of last) await close(context)
    }
  }
}

function emptySuite(): Suite {
  return { tests: [], before: [], after: [] }
}
