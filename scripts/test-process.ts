/** Loaded into each test process (`node --test --import`), whether it runs alone, with others, or all unit tests. */
import { enableCompileCache } from 'node:module'
import { fileURLToPath } from 'node:url'
import { inspect } from 'node:util'
import { setFlagsFromString } from 'node:v8'
import './promise-tracking.ts'

const { after } = await import('node:test')

// A second, optimising compilation of PGlite costs more than the statements of a test take.
setFlagsFromString('--liftoff-only')

// Reading our sources and the libraries takes most of the time of a small test. The cache is opened after the flag: V8 takes no entry
// that was made under other flags.
const cache = fileURLToPath(new URL('../node_modules/.cache/compile', import.meta.url))
enableCompileCache(cache)
// Programs that a test starts use the cache by this variable. The runner must not pass it on to the processes of tests, in which Node
// would open the cache before the flag; each of them would then replace the entries of the programs.
if (!process.execArgv.includes('--test')) process.env['NODE_COMPILE_CACHE'] ??= cache

// A test fails by a SuppressedError where the end of what it opened fails too. Node prints neither of the two errors.
Error.prepareStackTrace = (error, places) =>
  [
    Error.prototype.toString.call(error),
    ...places.map((place: unknown) => `    at ${String(place)}`),
    ...(error instanceof SuppressedError ? [inspect(error.suppressed), inspect(error.error)] : []),
  ].join('\n')

// `--test-timeout` ends tests, but not a process that something keeps alive. A process ends soon after its last test, or after this time.
const longestMinutes = 45
const graceSeconds = 60
setTimeout(endProcess, longestMinutes * 60_000).unref()
if (process.env['NODE_TEST_CONTEXT'] !== undefined) {
  after(() => void setTimeout(endProcess, graceSeconds * 1_000).unref())
  // Node waits for hooks before it ends by a signal. Hooks may wait for a browser that has ended by the same signal.
  const interruptedSeconds = 2
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'])
    process.once(signal, () => void setTimeout(endProcess, interruptedSeconds * 1_000).unref())
}

function endProcess(): void {
  const kept = new Set(process.getActiveResourcesInfo())
  console.error(`${process.argv[1]} does not end; still open: ${[...kept].join(', ')}`)
  process.exit(1)
}
