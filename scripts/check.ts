/**
 * `npm run check` checks types, lint, format, unused code, imports, plain English, generated files, and lists that agree with the code. It runs
 * the unit tests, which need no chain and no database.
 */
import { checkedTests, runStages, unitTests } from './stages.ts'
import { readOptions } from './options.ts'

readOptions({})

/** A file with thousands of tests prints its failures only. */
const quietTest = [
  'node',
  '--test',
  '--import=./scripts/test-process.ts',
  '--test-reporter=./scripts/failures.ts',
] as const

await runStages(
  [
    { name: 'unit tests', command: unitTests },
    { name: 'types', command: ['tsc', '--noEmit'] },
    { name: 'lint', command: ['oxlint'] },
    { name: 'format', command: ['oxfmt', '--check'] },
    { name: 'unused code', command: ['knip'] },
    { name: 'generated tables', command: ['node', 'scripts/docs.ts', '--check'] },
    { name: 'imports', command: [...quietTest, ...checkedTests.imports] },
    { name: 'plain English', command: [...quietTest, ...checkedTests.language] },
    { name: 'lists kept in step', command: [...quietTest, ...checkedTests.inStep] },
  ],
  2,
)
