/**
 * The process that tests mutants. Every run imports the sources and the test files anew, one of them with the mutated text; libraries
 * stay loaded, so that a mutant costs milliseconds. A run that hangs or breaks the process is ended by run.ts.
 */
import { Session } from 'node:inspector/promises'
import { registerHooks, stripTypeScriptTypes } from 'node:module'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import type { Range } from './coverage.ts'
import { runFile } from './harness.ts'

/** `tests` are paths of files. `mutant` is the path and the whole text of the mutated file. */
export type Order = Readonly<{
  root: string
  tests: readonly string[]
  mutant?: Readonly<{ path: string; source: string }>
  /** Paths whose executed ranges are returned. */
  covered?: readonly string[]
}>

/** `broken`: an error that no test caught, perhaps one of the run before. */
export type Outcome = Readonly<{
  passed: boolean
  tests: number
  reason?: string
  broken?: boolean
  coverage?: Record<string, Range[]>
}>

// A mutant is killed by the same inputs each time; the smallest of them is not searched.
fc.configureGlobal({ seed: 17, endOnFailure: true })

const harness = new URL('harness.ts', import.meta.url).href
const texts = new Map<string, string>()
let order: Order = { root: '', tests: [] }
let runs = 0

registerHooks({
  resolve: (specifier, context, nextResolve) => {
    const run = /\?run=\d+$/.exec(context.parentURL ?? '')?.[0]
    if (run !== undefined && specifier === 'node:test') return { url: harness, shortCircuit: true }
    const found = nextResolve(specifier, context)
    return run !== undefined && isOurs(found.url) ? { ...found, url: found.url + run } : found
  },
  load: (url, context, nextLoad) => {
    if (!/\?run=\d+$/.test(url)) return nextLoad(url, context)
    const path = fileURLToPath(url)
    return {
      format: 'module',
      source: order.mutant?.path === path ? order.mutant.source : textOf(path),
      shortCircuit: true,
    }
  },
})

process.on('message', (message) => {
  order = message as Order
  void run(order).then((outcome) => process.send?.(outcome))
})
for (const event of ['uncaughtException', 'unhandledRejection'])
  process.on(event, (reason: unknown) => {
    process.send?.({ passed: false, reason: String(reason), tests: 0, broken: true } satisfies Outcome)
  })

process.once('disconnect', () => process.exit())

async function run({ tests, covered }: Order): Promise<Outcome> {
  runs += 1
  const query = `?run=${runs}`
  using session = covered === undefined ? undefined : openSession()
  await session?.start()
  let count = 0
  try {
    for (const path of tests) count += await runFile(() => import(pathToFileURL(path).href + query))
  } catch (error) {
    return { passed: false, reason: error instanceof Error ? (error.stack ?? '') : String(error), tests: count }
  }
  return { passed: true, tests: count, ...(session && covered && { coverage: await session.ranges(covered, query) }) }
}

function openSession() {
  const session = new Session()
  session.connect()
  return {
    start: async () => {
      await session.post('Profiler.enable')
      await session.post('Profiler.startPreciseCoverage', { callCount: false, detailed: false })
    },
    ranges: async (paths: readonly string[], query: string): Promise<Record<string, Range[]>> => {
      const { result } = await session.post('Profiler.takePreciseCoverage')
      await session.post('Profiler.stopPreciseCoverage')
      const urls = new Map(paths.map((path) => [pathToFileURL(path).href + query, path]))
      const found: Record<string, Range[]> = {}
      for (const { url, functions } of result) {
        const path = urls.get(url)
        if (path !== undefined) found[path] = functions.flatMap(({ ranges }) => ranges)
      }
      return found
    },
    [Symbol.dispose]: () => session.disconnect(),
  }
}

function isOurs(url: string): boolean {
  return url.startsWith(pathToFileURL(order.root).href) && url.endsWith('.ts') && !url.includes('/node_modules/')
}

function textOf(path: string): string {
  const text = texts.get(path) ?? stripTypeScriptTypes(readFileSync(path, 'utf8'))
  texts.set(path, text)
  return text
}
