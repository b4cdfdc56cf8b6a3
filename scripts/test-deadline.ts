/**
 * Loaded into each test process (`node --test --import`): one that something keeps alive ends with a failure that names it.
 * `--test-timeout` ends tests, but not a process that stays when its tests are over.
 */
const minutes = 8

setTimeout(() => {
  const kept = new Set(process.getActiveResourcesInfo())
  console.error(`${process.argv[1]} did not end within ${minutes} minutes; still open: ${[...kept].join(', ')}`)
  process.exit(1)
}, minutes * 60_000).unref()
