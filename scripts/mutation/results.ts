/** Keeps the fates of mutants between runs, one JSON line each. */
import { createHash } from 'node:crypto'
import { appendFileSync, existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Fate, Target } from './mutant.ts'

type Line = Readonly<{ name: string; fate: Fate; inputs: string }>

export type Results = Readonly<{
  get: (name: string) => Fate | undefined
  set: (name: string, fate: Fate) => void
}>

/**
 * A fate counts while no source and no test has changed. With `survivors` a mutant that was killed stays killed, so that only the
 * survivors meet the new tests.
 */
export function openResults(
  root: string,
  target: Target,
  { survivors, fresh }: { survivors: boolean; fresh: boolean },
): Results {
  const file = join(root, `node_modules/.cache/mutation/${target.name}.jsonl`)
  if (fresh) rmSync(file, { force: true })
  mkdirSync(dirname(file), { recursive: true })
  const inputs = digestOf(root, target)
  const known = new Map<string, Fate>()
  for (const line of existsSync(file) ? readFileSync(file, 'utf8').split('\n').filter(Boolean) : []) {
    const { name, fate, inputs: then } = JSON.parse(line) as Line
    if (then === inputs || (survivors && fate !== 'survived')) known.set(name, fate)
  }
  return {
    get: (name) => known.get(name),
    set: (name, fate) => {
      if (known.get(name) === fate) return
      known.set(name, fate)
      appendFileSync(file, `${JSON.stringify({ name, fate, inputs } satisfies Line)}\n`)
    },
  }
}

function digestOf(root: string, target: Target): string {
  const hash = createHash('sha256')
  for (const path of target.inputs().toSorted()) hash.update(`${path}\0`).update(readFileSync(join(root, path)))
  return hash.digest('hex').slice(0, 16)
}
