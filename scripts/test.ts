/**
 * `npm test`: everything. Real anvil and PGlite always; PostgreSQL, Redis and Chromium where they are there, and a failure
 * where they are missing under `REQUIRE_SERVICES=1`.
 */
import { chmodSync, mkdtempSync, rmSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runStages, unitTests } from './stages.ts'

/** Databases, chains and clusters of tests write a lot and keep nothing: their folder is in memory where there is enough of it. */
const folder = mkdtempSync(join(hasRoom('/dev/shm') ? '/dev/shm' : tmpdir(), 'touchstone-tests-'))
chmodSync(folder, 0o755) // PostgreSQL runs as another user
process.env['TMPDIR'] = folder
process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1))
const evidence = mkdtempSync(join(folder, 'evidence-'))
process.env['TEST_EVIDENCE'] = evidence

await runStages([
  { name: 'unit tests', command: unitTests },
  {
    name: 'all other tests',
    command: [
      'node',
      '--test',
      '--import=./scripts/test-process.ts',
      '--test-reporter=spec',
      '--test-timeout=900000',
      // More than there are cores: many tests wait for a block, a process or a timer.
      '--test-concurrency=5',
      'contracts/*.test.ts',
      'verdict/test/*.test.ts',
      'service/{src,test}/**/!(*.unit).test.ts',
    ],
  },
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
