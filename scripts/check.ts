/** `npm run check`: types, lint, format, unused code, generated files, and the unit tests that need no chain and no database, in under a minute. */
import { runStages, unitTests } from './stages.ts'

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
