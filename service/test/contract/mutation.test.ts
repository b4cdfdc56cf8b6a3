/** The mutation run on a small project: each fate that a mutant of TypeScript can have. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, it } from 'node:test'
import type { Fate } from '../../../scripts/mutation/mutant.ts'
import { typescriptTarget } from '../../../scripts/mutation/typescript/run.ts'
import { testFolder } from '../support/folder.ts'

const root = testFolder()
writeFileSync(
  join(root, 'sum.ts'),
  `export const first = (a?: number, b?: number, c?: number): number | undefined => a ?? b ?? c
export function sum(values: readonly number[]): number {
  let total = 0
  for (const value of values) total += value
  return total
}
export function count(): number {
  let left = 3
  while (left > 0) left -= 1
  return left
}
`,
)
writeFileSync(
  join(root, 'sum.unit.test.ts'),
  `import assert from 'node:assert/strict'
import { it } from 'node:test'
import { count, first, sum } from './sum.ts'
it('adds', () => assert.equal(sum([1, 2]), 3))
it('takes the first', () => assert.equal(first(undefined, 2, 3), 2))
it('counts down', () => assert.equal(count(), 0))
`,
)
const target = typescriptTarget({
  name: 'small',
  lowestScore: 0,
  sources: ['*.ts'],
  quick: ['*.unit.test.ts'],
  slow: [],
  root,
})
after(() => target.close?.())

const expected: Record<string, Fate> = {
  '1: ?? → &&': 'invalid',
  '4: += → -=': 'killed',
  '8: 3 → (3 + 1)': 'survived',
  '9: left -= 1 → ;': 'killed',
}

it('judges a mutant by the tests: a text that is no program is invalid, an endless loop is killed', async () => {
  const fates: Record<string, Fate> = {}
  for (const mutant of target.mutants()) {
    const name = `${mutant.line}: ${mutant.change}`
    if (name in expected) fates[name] = await target.fateOf(mutant)
  }
  assert.deepEqual(fates, expected)
})
