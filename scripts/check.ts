/** `npm run check`: types, lint, format, unused code and the unit tests, in under a minute. */
import { runStages } from './stages.ts'

await runStages([
  { name: 'types', command: ['tsc', '--noEmit'] },
  { name: 'lint', command: ['oxlint'] },
  { name: 'format', command: ['oxfmt', '--check'] },
  { name: 'unused code', command: ['knip'] },
  {
    name: 'unit tests',
    command: [
      'node',
      '--test',
      '--test-isolation=none',
      '--test-reporter=dot',
      'verdict/src/**/*.test.ts',
      'service/src/**/*.test.ts',
    ],
  },
])
