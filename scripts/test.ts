/**
 * `npm test`: everything. Real anvil and PGlite always; PostgreSQL, Redis and Chromium where they are there, and a failure
 * where they are missing under `REQUIRE_SERVICES=1`. With `--retry`, files that failed beside others run again one at a time, and the
 * result names them as unsteady when they pass. `--after-check` leaves out what `npm run check` has just run.
 */
import { chmodSync, globSync, mkdtempSync, readFileSync, rmSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { makeDatabaseTemplate } from '../service/test/support/database/databases.ts'
import { checkedTests, runStages, type Stage, unitTests } from './stages.ts'
import { groupFiles } from './test-files.ts'
import { readOptions } from './options.ts'

const { values: options } = readOptions({
  options: { retry: { type: 'boolean', default: false }, 'after-check': { type: 'boolean', default: false } },
})

/** Databases, chains and clusters of tests write a lot and keep nothing. Their folder is in memory if there is enough of it. */
const folder = mkdtempSync(join(hasRoom('/dev/shm') ? '/dev/shm' : tmpdir(), 'touchstone-tests-'))
chmodSync(folder, 0o755) // PostgreSQL runs as another user
process.env['TMPDIR'] = folder
process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
await using made = new AsyncDisposableStack()
let ending: Promise<unknown> | undefined
// A signal to a process group comes twice, because npm passes its own one on. The second must not end this process before its commands.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'])
  process.on(signal, () => (ending ??= made.disposeAsync().finally(() => process.exit(1))))
const evidence = mkdtempSync(join(folder, 'evidence-'))
process.env['TEST_EVIDENCE'] = evidence

/** Runs tests, and with `--retry` the files again that failed, one at a time. */
function tests(chosen: readonly string[]): Stage {
  const failed = join(evidence, 'failed-files')
  const command = (concurrency: number, paths: readonly string[]): Stage['command'] => [
    'node',
    '--test',
    '--import=./scripts/test-process.ts',
    '--test-timeout=900000',
    `--test-concurrency=${concurrency}`,
    '--test-reporter=spec',
    '--test-reporter-destination=stdout',
    '--test-reporter=./scripts/failed-files.ts',
    `--test-reporter-destination=${failed}`,
    ...paths,
  ]
  /** Returns the command for the files that failed; undefined where a failure names no file. */
  function again(): Stage['command'] | undefined {
    const named = readFileSync(failed, 'utf8').split('\n').filter(Boolean)
    return named.length === 0 ? undefined : command(1, named)
  }
  // More lanes than there are cores: many tests wait for a block, a process or a timer.
  return { name: 'all other tests', command: command(6, chosen), ...(options.retry && { again }) }
}

const all = globSync(['contracts/*.test.ts', 'verdict/test/*.test.ts', 'service/{src,test}/**/!(*.unit).test.ts'])
const checked = new Set(options['after-check'] ? Object.values(checkedTests).flat() : [])
const files = all.filter((file) => !checked.has(file))

made.use(await makeDatabaseTemplate())
// Each of the two keeps one core busy.
await runStages(
  [
    ...(options['after-check'] ? [] : [{ name: 'unit tests', command: unitTests }]),
    { name: 'mutants, a sample', command: ['npm', 'run', '--silent', 'mutate:sample'] },
  ],
  2,
)
await runStages([
  // Files of a folder share a process. Reading the sources costs each process 1.4 s of processor time, and its first world 1.1 s more than
  // the next one.
  tests(groupFiles(files.toSorted(), mkdtempSync(join(folder, 'groups-')))),
  { name: 'logs without secrets', command: ['node', 'scripts/check-logs.ts', evidence] },
])

function hasRoom(path: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(path)
    return bavail * bsize > 4 * 2 ** 30
  } catch {
    return false
  }
}
