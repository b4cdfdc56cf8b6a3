/**
 * `npm run mutate:contracts [-- --minutes 120] [--every 10] [--contract AssetRegistry] [--share 1/2]`: mutants of the contracts
 * against the Solidity tests. The last lines are the survivors and the score; exit code 1 when a survivor is not explained in survivors.json
 * or the score is below 95 %.
 */
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { parseArgs } from 'node:util'
import type { Mutant } from './mutants.ts'
import { allMutants, assertTestsPass, type Fate, fateOf, targets } from './run.ts'

type Result = Readonly<{ contract: string; fate: Fate; mutant: Mutant }>

const lowestScore = 95
const lanes = 2
const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '120' },
    every: { type: 'string', default: '1' },
    contract: { type: 'string' },
    /** One of the processes that share the work; set by this program. */
    share: { type: 'string' },
  },
})

if (values.share === undefined) await lead()
else await work(Number(values.share))

/** Starts one process for each lane, because solc is synchronous, and reports what they print. */
async function lead(): Promise<void> {
  for (const target of chosen()) await assertTestsPass(target)
  const results: Result[] = []
  await Promise.all(
    Array.from({ length: lanes }, async (_, share) => {
      const child = spawn(process.execPath, [import.meta.filename, ...process.argv.slice(2), '--share', `${share}`], {
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      const exit = new Promise((resolve) => child.once('close', resolve))
      for await (const line of createInterface({ input: child.stdout })) {
        const result = JSON.parse(line) as Result
        results.push(result)
        if (result.fate === 'survived') print(`survived  ${nameOf(result.mutant)}`)
      }
      if ((await exit) !== 0) throw new Error('A lane ended with an error.')
    }),
  )
  report(results)
}

async function work(share: number): Promise<void> {
  const end = performance.now() + Number(values.minutes) * 60_000
  const every = Number(values.every)
  for (const target of chosen())
    for (const [index, mutant] of allMutants(target).entries()) {
      if (index % every !== 0 || (index / every) % lanes !== share) continue
      if (performance.now() > end) return
      print(JSON.stringify({ contract: target.name, fate: await fateOf(target, mutant), mutant }))
    }
}

function report(results: readonly Result[]): void {
  const count = (fate: Fate) => results.filter((result) => result.fate === fate).length
  const [killed, survived] = [count('killed'), count('survived')]
  const score = (100 * killed) / Math.max(1, killed + survived)
  const explained = new Set(Object.keys(JSON.parse(readFileSync(join(import.meta.dirname, 'survivors.json'), 'utf8'))))
  const news = results.filter(({ fate, mutant }) => fate === 'survived' && !explained.has(nameOf(mutant)))
  print('')
  for (const { mutant } of news) print(`not explained  ${nameOf(mutant)} (line ${mutant.line})`)
  const all = chosen().reduce((sum, target) => sum + allMutants(target).length, 0)
  print(
    `${results.length} of ${all} mutants: ${killed} killed, ${survived} survived, ${count('equal')} equal, ${count('invalid')} invalid`,
  )
  print(`score ${score.toFixed(1)} %`)
  process.exitCode = news.length > 0 || score < lowestScore ? 1 : 0
}

/** The line's text and not its number, so that an explanation outlives other changes of the file. */
function nameOf({ file, line, change }: Mutant): string {
  const text = readFileSync(join(import.meta.dirname, '..', file), 'utf8').split('\n')[line - 1] ?? ''
  return `${file}: ${text.trim()}: ${change}`
}

function chosen() {
  return targets.filter(({ name }) => values.contract === undefined || name === values.contract)
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}
