/**
 * `npm test`: everything. Real anvil and PGlite always; PostgreSQL, Redis and Chromium where they are there, and a failure
 * where they are missing under `REQUIRE_SERVICES=1`. With `--retry`, files that failed beside others run again one at a time, and the
 * result names them as unsteady when they pass.
 */
import { chmodSync, globSync, mkdtempSync, readFileSync, rmSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { makeDatabaseTemplate } from '../service/test/support/database/databases.ts'
import { runStages, type Stage, unitTests } from './stages.ts'
import { failedFiles, queueFiles } from './test-files.ts'

/** Databases, chains and clusters of tests write a lot and keep nothing. Their folder is in memory if there is enough of it. */
const folder = mkdtempSync(join(hasRoom('/dev/shm') ? '/dev/shm' : tmpdir(), 'touchstone-tests-'))
chmodSync(folder, 0o755) // PostgreSQL runs as another user
process.env['TMPDIR'] = folder
process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
await using made = new AsyncDisposableStack()
for (const signal of ['SIGINT', 'SIGTERM'])
  process.once(signal, () => void made.disposeAsync().finally(() => process.exit(1)))
const evidence = mkdtempSync(join(folder, 'evidence-'))
process.env['TEST_EVIDENCE'] = evidence

const files = globSync([
  'contracts/*.test.ts',
  'verdict/test/*.test.ts',
  'service/{src,test}/**/!(*.unit).test.ts',
]).toSorted()
/** More than there are cores: many tests wait for a block, a process or a timer. */
const lanes = 6
const queue = mkdtempSync(join(folder, 'queue-'))
const failed = join(evidence, 'failed-files')

/** Returns the command that runs tests in so many processes at a time. */
function testCommand(concurrency: number, chosen: readonly string[]): Stage['command'] {
  return [
    'node',
    '--test',
    '--import=./scripts/test-process.ts',
    '--test-timeout=900000',
    `--test-concurrency=${concurrency}`,
    '--test-reporter=spec',
    '--test-reporter-destination=stdout',
    '--test-reporter=./scripts/failed-files.ts',
    `--test-reporter-destination=${failed}`,
    ...chosen,
  ]
}

/** Returns the command for the files that failed; undefined where a failure names no file. */
function testAgain(): Stage['command'] | undefined {
  const chosen = failedFiles(queue, readFileSync(failed, 'utf8').split('\n').filter(Boolean))
  return chosen.length === 0 ? undefined : testCommand(1, chosen)
}

made.use(await makeDatabaseTemplate())
await runStages(
  [
    {
      name: 'all other tests',
      command: testCommand(lanes, queueFiles(files, lanes, queue)),
      ...(process.argv.includes('--retry') && { again: testAgain }),
      isLive: true,
    },
    { name: 'unit tests', command: unitTests },
    { name: 'mutants, a sample', command: ['npm', 'run', '--silent', 'mutate:sample'] },
  ],
  2,
)
await runStages([{ name: 'logs without secrets', command: ['node', 'scripts/check-logs.ts', evidence] }])

function hasRoom(path: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(path)
    return bavail * bsize > 4 * 2 ** 30
  } catch {
    return false
  }
}
