/** `npm run mutate:sample`: a few mutants of each target, always the same ones. */
import { runStages, type Stage } from './stages.ts'

const sample = (target: string, ...options: readonly string[]): Stage => ({
  name: `mutants of ${target}`,
  command: ['npm', 'run', '--silent', 'mutate', '--', target, ...options],
})

await runStages(
  [
    sample('contracts', '--sample', '4'),
    sample('verdict', '--only', 'rules/', '--sample', '12', '--quick'),
    sample('sun', '--sample', '8'),
  ],
  2,
)
