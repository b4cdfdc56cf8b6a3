/**
 * `npm run check` checks types, lint, format, unused code, imports, plain English and generated files in under a minute. It runs the unit tests that
 * need no chain and no database.
 */
import { runStages, unitTests } from './stages.ts'
import { readOptions } from './options.ts'

readOptions({})

/** A file with thousands of tests prints its failures only. */
const quietTest = ['node', '--test', '--import=./scripts/test-process.ts', '--test-reporter=dot'] as const

await runStages(
  [
    { name: 'unit tests', command: unitTests },
    { name: 'types', command: ['tsc', '--noEmit'] },
    { name: 'lint', command: ['oxlint'] },
    { name: 'format', command: ['oxfmt', '--check'] },
    { name: 'unused code', command: ['knip'] },
    { name: 'generated tables', command: ['node', 'scripts/docs.ts', '--check'] },
    { name: 'imports', command: [...quietTest, 'service/test/contract/imports.test.ts'] },
    { name: 'plain English', command: [...quietTest, 'service/test/contract/language.test.ts'] },
    { name: 'openapi.yaml', command: ['node', 'scripts/openapi.ts'] },
  ],
  2,
)
