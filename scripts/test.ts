/**
 * `npm test`: everything. Real anvil and PGlite always; PostgreSQL, Redis and Chromium where they are there, and a failure
 * where they are missing under `REQUIRE_SERVICES=1`.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runStages, unitTests } from './stages.ts'

const evidence = mkdtempSync(join(tmpdir(), 'touchstone-evidence-'))
process.env['TEST_EVIDENCE'] = evidence

await runStages([
  { name: 'unit tests', command: unitTests },
  { name: 'contracts', command: ['node', 'contracts/test.ts'] },
  {
    name: 'all other tests',
    command: [
      'node',
      '--test',
      '--import=./scripts/test-process.ts',
      '--test-reporter=spec',
      '--test-timeout=900000',
      // More than there are cores: many tests wait for a block, a process or a timer.
      '--test-concurrency=3',
      'contracts/*.test.ts',
      'verdict/test/*.test.ts',
      'service/{src,test}/**/!(*.unit).test.ts',
    ],
  },
  { name: 'logs without secrets', command: ['node', 'scripts/check-logs.ts', evidence] },
])
rmSync(evidence, { recursive: true, force: true })
