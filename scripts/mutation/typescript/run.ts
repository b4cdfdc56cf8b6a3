/** Runs test files against mutants of TypeScript sources, each mutant with the test files that execute the changed place. */
import { fork, type ChildProcess } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { basename, join } from 'node:path'
import { type Fate, mutate, type Mutant, type Target } from '../mutant.ts'
import { isCovered, type Range } from './coverage.ts'
import { importedBy } from './imports.ts'
import { mutantsOf } from './mutants.ts'
import type { Order, Outcome } from './worker.ts'

/** Patterns are relative to the root of the project. */
type Options = Readonly<{
  name: string
  lowestScore: number
  sources: readonly string[]
  /** Tests that take milliseconds. */
  quick: readonly string[]
  /** Tests that take seconds; they meet the mutants that the quick ones do not notice. */
  slow: readonly string[]
  root?: string
}>

type TestFile = Readonly<{ coverage: Readonly<Record<string, readonly Range[]>>; cpuMs: number }>

const projectRoot = join(import.meta.dirname, '../../..')

/** Processor time beyond five times that of the tests themselves: an endless loop ends here, however busy the machine is. */
const loopCpuMs = 2_000
/** A process that used less processor time than `idleCpuMs` for so long waits for ever: its timers alone take some. */
const idleMs = 60_000
const idleCpuMs = 300
const baselineCpuMs = 300_000
/** Each run leaves its modules in memory. */
const runsOfWorker = 150

export function typescriptTarget({ name, lowestScore, sources, quick, slow, root = projectRoot }: Options): Target {
  const files = find(sources).filter((path) => !path.endsWith('.test.ts'))
  const texts = new Map(files.map((path) => [path, readFileSync(join(root, path), 'utf8')]))
  const worker = createWorker()
  const [quickFiles, slowFiles] = [find(quick), find(slow)]
  const imports = new Map([...quickFiles, ...slowFiles].map((path) => [path, importedBy(root, path)]))
  const measured = new Map<string, TestFile>()

  return {
    name,
    lowestScore,
    mutants: () => files.flatMap((path) => mutantsOf(path, texts.get(path) ?? '')),
    inputs: () => [...files, ...quickFiles, ...slowFiles],
    // Tests are measured when a mutant first needs them.
    prepare: async () => {},
    fateOf,
    close: worker.close,
  }

  async function fateOf(mutant: Mutant, isQuick = false): Promise<Fate> {
    const source = texts.get(mutant.file) ?? ''
    const path = join(root, mutant.file)
    const offset = Buffer.from(source).subarray(0, mutant.start).toString().length
    const stripped = withoutTypes(mutate(source, mutant))
    if (stripped === null) return 'invalid'
    const mutated = { path, source: stripped }
    for (const { test, cpuMs, coverage } of await testsOf(mutant, isQuick)) {
      if (!isCovered(coverage[path] ?? [], offset)) continue
      const order = { root, tests: [join(root, test)], mutant: mutated }
      if (!(await worker.run(order, 5 * cpuMs + loopCpuMs)).passed) return 'killed'
    }
    return 'survived'
  }

  /**
   * Returns the test files that import a mutant's file, the quick before the slow. In each group its own come first,
   * then those that take the least time.
   */
  async function testsOf({ file }: Mutant, isQuick: boolean): Promise<readonly (TestFile & { test: string })[]> {
    const own = `${basename(file, '.ts')}.`
    const ordered: (TestFile & { test: string })[] = []
    for (const group of isQuick ? [quickFiles] : [quickFiles, slowFiles]) {
      const found: (TestFile & { test: string })[] = []
      for (const test of group)
        if (imports.get(test)?.has(file) === true) found.push({ test, ...(await measure(test)) })
      const rank = ({ test, cpuMs }: (typeof found)[number]) => (basename(test).startsWith(own) ? 0 : cpuMs)
      ordered.push(...found.toSorted((a, b) => rank(a) - rank(b)))
    }
    return ordered
  }

  /** Runs a test file without a mutant, for its processor time and for what it executes. */
  async function measure(path: string): Promise<TestFile> {
    const known = measured.get(path)
    if (known !== undefined) return known
    const covered = files.map((file) => join(root, file))
    const outcome = await worker.run({ root, tests: [join(root, path)], covered }, baselineCpuMs)
    const { passed, reason, tests, coverage = {}, cpuMs } = outcome
    if (!passed || tests === 0) throw new Error(`${path} fails without a mutant: ${reason ?? 'no test'}`)
    measured.set(path, { coverage, cpuMs })
    return { coverage, cpuMs }
  }

  function find(patterns: readonly string[]): string[] {
    return globSync([...patterns], { cwd: root }).toSorted()
  }
}

/** Returns null where the text is no program, such as `a ?? b && c`. */
function withoutTypes(source: string): string | null {
  try {
    return stripTypeScriptTypes(source)
  } catch (error) {
    if (error instanceof SyntaxError) return null
    throw error
  }
}

/** Keeps a process that runs tests, and starts another one after one that had to be ended. */
function createWorker() {
  let child: ChildProcess | undefined
  let runs = 0
  process.once('exit', () => child?.kill('SIGKILL'))

  async function run(order: Order, mostCpuMs: number): Promise<Outcome & { cpuMs: number }> {
    if (runs >= runsOfWorker) await close()
    const isFirst = runs === 0
    runs += 1
    child ??= fork(join(import.meta.dirname, 'worker.ts'), {
      execArgv: ['--disable-warning=ExperimentalWarning'],
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    })
    const current = child
    const before = cpuMsOf(current)
    let last = { at: performance.now(), cpuMs: before }
    let watch: NodeJS.Timeout | undefined
    const outcome = await new Promise<Outcome>((resolve) => {
      const end = (reason: string) => resolve({ passed: false, reason, tests: 0, broken: true })
      current.once('message', (message) => resolve(message as Outcome))
      current.once('exit', () => end('the process ended'))
      watch = setInterval(() => {
        const cpuMs = cpuMsOf(current)
        if (cpuMs > last.cpuMs + idleCpuMs) last = { at: performance.now(), cpuMs }
        if (cpuMs - before > mostCpuMs) end('too much processor time')
        else if (performance.now() - last.at > idleMs) end('it waits for ever')
      }, 250)
      current.send(order)
    })
    clearInterval(watch)
    current.removeAllListeners()
    const cpuMs = cpuMsOf(current) - before
    if (outcome.broken === true) {
      await close()
      // Another mutant may have left the fault behind.
      if (!isFirst) return run(order, mostCpuMs)
    }
    return { ...outcome, cpuMs }
  }

  async function close(): Promise<void> {
    if (child === undefined) return
    const ended = child
    child = undefined
    runs = 0
    if (ended.exitCode !== null || ended.signalCode !== null) return
    const exit = new Promise((resolve) => ended.once('exit', resolve))
    ended.kill('SIGKILL')
    await exit
  }

  return { run, close }
}

/** Processor time of a process so far, from Linux's /proc. */
function cpuMsOf({ pid }: ChildProcess): number {
  try {
    const [, fields = ''] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')
    const [user = '0', system = '0'] = fields.split(' ').slice(11)
    return 10 * (Number(user) + Number(system))
  } catch {
    return 0
  }
}
