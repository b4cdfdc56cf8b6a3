/** `npm run check`: types, lint, format, unused code, generated files, and the unit tests that need no chain and no database, in under a minute. */
import { globSync, readFileSync } from 'node:fs'
import { runStages } from './stages.ts'

const unit = ['node', '--test', '--test-isolation=none', '--test-reporter=dot'] as const

/** What starts a chain, a database or a browser, directly or by a helper; `npm test` runs these too. */
const needsMore =
  /_databases\.ts|_pglite\.ts|_graphql-(?:host|socket)\.ts|[a-z-]*-anvil\.ts|startAnvil|startLocalChain|openOwnDatabase|scrypt/
const quick = globSync(['verdict/src/**/*.test.ts', 'service/src/**/*.test.ts']).filter(
  (file) => !needsMore.test(readFileSync(file, 'utf8')),
)

await runStages(
  [
    { name: 'unit tests', command: [...unit, ...quick] },
    { name: 'types', command: ['tsc', '--noEmit'] },
    { name: 'lint', command: ['oxlint'] },
    { name: 'format', command: ['oxfmt', '--check'] },
    { name: 'unused code', command: ['knip'] },
    { name: 'generated tables', command: ['node', 'scripts/docs.ts', '--check'] },
    { name: 'openapi.json', command: ['node', 'scripts/openapi.ts', '--check'] },
  ],
  2,
)
