/** `npm run mutate:sample`: a few mutants of TypeScript, always the same ones. contracts/forge.test.ts has those of Solidity. */
import { runStages, type Stage } from './stages.ts'
import { readOptions } from './options.ts'

readOptions({})

const sample = (target: string, ...options: readonly string[]): Stage => ({
  name: `mutants of ${target}`,
  command: ['npm', 'run', '--silent', 'mutate', '--', target, ...options],
})

await runStages([sample('verdict', '--only', 'rules/', '--sample', '12', '--quick'), sample('sun', '--sample', '8')], 2)
