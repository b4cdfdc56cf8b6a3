/** `npm run check`: types, lint, format, unused code and the unit tests, in under a minute. */
import { runStages } from './stages.ts'

const unit = ['node', '--test', '--test-isolation=none', '--test-reporter=dot'] as const

await runStages(
  [
    { name: 'unit tests', command: [...unit, 'verdict/src/**/*.test.ts', 'service/src/**/*.test.ts'] },
    { name: 'types', command: ['tsc', '--noEmit'] },
    { name: 'lint', command: ['oxlint'] },
    { name: 'format', command: ['oxfmt', '--check'] },
    { name: 'unused code', command: ['knip'] },
  ],
  2,
)
