/**
 * `npm test`: everything. Real anvil and PGlite always; PostgreSQL, Redis and Chromium where they are there, and a failure
 * where they are missing under `REQUIRE_SERVICES=1`.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runStages } from './stages.ts'

const test = [
  'node',
  '--test',
  '--import=./scripts/test-deadline.ts',
  '--test-reporter=spec',
  '--test-timeout=300000',
] as const
const evidence = mkdtempSync(join(tmpdir(), 'touchstone-evidence-'))
process.env['TEST_EVIDENCE'] = evidence

await runStages([
  {
    name: 'unit tests',
    command: [...test, '--test-isolation=none', 'verdict/src/**/*.test.ts', 'service/src/**/*.test.ts'],
  },
  { name: 'contracts', command: ['node', 'contracts/test.ts'] },
  { name: 'artifacts', command: [...test, 'contracts/*.test.ts'] },
  { name: 'client library', command: [...test, '--test-concurrency=2', 'verdict/test/*.test.ts'] },
  { name: 'service', command: [...test, '--test-concurrency=2', 'service/test/*.test.ts'] },
  { name: 'logs without secrets', command: ['node', 'scripts/check-logs.ts', evidence] },
])
rmSync(evidence, { recursive: true, force: true })
