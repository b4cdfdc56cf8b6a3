/** Loaded into each test process (`node --test --import`), whether it runs alone, with others, or all unit tests. */
import { enableCompileCache } from 'node:module'
import { fileURLToPath } from 'node:url'
import { setFlagsFromString } from 'node:v8'

// Reading our sources and the libraries takes most of the time of a small test. Programs that a test starts use the cache too.
process.env['NODE_COMPILE_CACHE'] ??= fileURLToPath(new URL('../node_modules/.cache/compile', import.meta.url))
enableCompileCache(process.env['NODE_COMPILE_CACHE'])
// A second, optimising compilation of PGlite costs more than the statements of a test take.
setFlagsFromString('--liftoff-only')

// `--test-timeout` ends tests, but not a process that something keeps alive when its tests are over.
const minutes = 20

setTimeout(() => {
  const kept = new Set(process.getActiveResourcesInfo())
  console.error(`${process.argv[1]} did not end within ${minutes} minutes; still open: ${[...kept].join(', ')}`)
  process.exit(1)
}, minutes * 60_000).unref()
