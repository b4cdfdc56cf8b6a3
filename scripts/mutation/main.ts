/**
 * `npm run mutate -- contracts|verdict|sun [--minutes 120] [--only FILE] [--sample 20 --seed a] [--survivors] [--fresh]`: mutants of
 * the sources against the tests, in an order that depends on the seed alone. The last lines are the survivors and the score. Exit code 1 when a survivor is not explained in
 * survivors/*.json, when an explained one was killed or is gone, or when the score is too low. Results are kept while sources and tests
 * stay the same, so that an interrupted run goes on where it stopped.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { readOptions } from '../options.ts'
import { type Fate, namedMutants, sampleOf, type Target } from './mutant.ts'
import { openResults } from './results.ts'
import { contractsTarget } from './solidity/run.ts'
import { typescriptTarget } from './typescript/run.ts'

const targets: readonly Target[] = [
  contractsTarget,
  typescriptTarget({
    name: 'verdict',
    lowestScore: 90,
    sources: ['verdict/src/**/*.ts', 'service/src/assets/verdicts.ts'],
    quick: [
      'verdict/src/**/*.unit.test.ts',
      'verdict/test/over-http.test.ts',
      'service/src/assets/verdicts.unit.test.ts',
    ],
    // package.test.ts tests the packed copy.
    slow: ['verdict/test/!(package|over-http).test.ts'],
  }),
  typescriptTarget({
    name: 'sun',
    lowestScore: 90,
    sources: ['service/src/tap/sun/*.ts'],
    quick: ['service/src/tap/sun/*.unit.test.ts', 'service/src/tap/keys/derivations.unit.test.ts'],
    slow: [],
  }),
]
const root = join(import.meta.dirname, '../..')

for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1))

const { values, positionals } = readOptions({
  allowPositionals: true,
  options: {
    minutes: { type: 'string', default: '120' },
    /** Takes the mutants of the files whose path holds this text. */
    only: { type: 'string', default: '' },
    sample: { type: 'string' },
    seed: { type: 'string', default: 'touchstone' },
    /** Keeps what was killed before the tests changed, and judges the survivors again. */
    survivors: { type: 'boolean', default: false },
    /** Runs the quick tests only; survivors are not kept. */
    quick: { type: 'boolean', default: false },
    fresh: { type: 'boolean', default: false },
  },
})

const target = targets.find(({ name }) => name === positionals[0])
if (target === undefined) {
  print(`Usage: npm run mutate -- ${targets.map(({ name }) => name).join('|')}`)
  process.exitCode = 2
} else {
  await run(target)
  await target.close?.()
}

async function run(target: Target): Promise<void> {
  const end = performance.now() + Number(values.minutes) * 60_000
  const mutants = namedMutants(target.mutants(), (file) => readFileSync(join(root, file), 'utf8'))
  const chosen = [...mutants].filter(([, { file }]) => file.includes(values.only)).map(([name]) => name)
  // In an order of its own, so that an interrupted run is a fair sample. A sample leaves out the explained survivors, which cost the most.
  const explained = explainedOf(target)
  const names =
    values.sample === undefined
      ? sampleOf(chosen, chosen.length, values.seed)
      : sampleOf(
          chosen.filter((name) => !explained.includes(name)),
          Number(values.sample),
          values.seed,
        )
  const results = openResults(root, target, values)
  await target.prepare()

  const fates = new Map<string, Fate>()
  let printed = performance.now()
  for (const name of names) {
    const mutant = mutants.get(name)
    if (mutant === undefined || performance.now() > end) break
    const fate = results.get(name) ?? (await target.fateOf(mutant, values.quick))
    if (!values.quick || fate !== 'survived') results.set(name, fate)
    fates.set(name, fate)
    if (fate === 'survived') print(`survived  ${name} (line ${mutant.line})`)
    if (performance.now() - printed > 60_000) {
      printed = performance.now()
      print(`${fates.size} of ${names.length}`)
    }
  }
  report(target, names, fates, [...mutants.keys()])
}

function report(
  target: Target,
  names: readonly string[],
  fates: ReadonlyMap<string, Fate>,
  all: readonly string[],
): void {
  const count = (fate: Fate) => [...fates.values()].filter((one) => one === fate).length
  const [killed, survived] = [count('killed'), count('survived')]
  const score = (100 * killed) / Math.max(1, killed + survived)
  const explained = explainedOf(target)
  const faults = [
    ...[...fates]
      .filter(([name, fate]) => fate === 'survived' && !explained.includes(name))
      .map(([name]) => `not explained  ${name}`),
    ...explained
      .filter((name) => fates.has(name) && fates.get(name) !== 'survived')
      .map((name) => `explained, but ${fates.get(name)}  ${name}`),
    ...explained.filter((name) => !all.includes(name)).map((name) => `explained, but gone  ${name}`),
  ]
  print('')
  for (const fault of faults) print(fault)
  print(
    `${target.name}: ${fates.size} of ${names.length} mutants: ${killed} killed, ${survived} survived, ${count('equal')} equal, ${count('invalid')} invalid`,
  )
  // A sample is too small for a score: its survivors are named.
  const low = values.sample === undefined && score < target.lowestScore
  print(`score ${score.toFixed(1)} %${low ? `, less than ${target.lowestScore} %` : ''}`)
  process.exitCode = faults.length > 0 || low ? 1 : 0
}

function explainedOf({ name }: Target): readonly string[] {
  return Object.keys(JSON.parse(readFileSync(join(import.meta.dirname, 'survivors', `${name}.json`), 'utf8')) as object)
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}
