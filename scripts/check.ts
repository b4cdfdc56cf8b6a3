/**
 * `npm run check` checks types, lint, format, unused code and generated files in under a minute. It runs the unit tests that need no chain
 * and no database.
 */
import { runStages, unitTests } from './stages.ts'
import { readOptions } from './options.ts'

readOptions({})

await runStages(
  [
    { name: 'unit tests', command: unitTests },
    { name: 'types', command: ['tsc', '--noEmit'] },
    { name: 'lint', command: ['oxlint'] },
    { name: 'format', command: ['oxfmt', '--check'] },
    { name: 'unused code', command: ['knip'] },
    { name: 'generated tables', command: ['node', 'scripts/docs.ts', '--check'] },
    { name: 'openapi.yaml', command: ['node', 'scripts/openapi.ts'] },
  ],
  2,
)
