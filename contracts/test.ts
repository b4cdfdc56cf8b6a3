/**
 * `npm run test:contracts`: the Solidity tests and the gas snapshot, offline. The last line is `N passed, N failed`.
 * `--update-gas` writes .gas-snapshot anew. `--minutes 30` runs the invariants alone, for so long or for `--calls 10000000`, in one process
 * for each core and with other seeds each time.
 */
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { readOptions } from '../scripts/options.ts'
import { forge as runForge } from './forge.ts'

const toleratedGasPercent = '3'
/** Calls of one process between two lines of progress. */
const callsAtOnce = 250_000
const gasTests = ['snapshot', '--offline', '--match-contract', 'GasTest']

const { values: options } = readOptions({
  options: {
    'update-gas': { type: 'boolean' },
    minutes: { type: 'string' },
    calls: { type: 'string', default: '1e9' },
  },
})
if (options['update-gas']) {
  process.exitCode = (await forge(gasTests)).failed ? 1 : 0
} else if (options.minutes !== undefined) {
  process.exitCode = (await fuzz(Number(options.minutes), Number(options.calls))) ? 0 : 1
} else {
  const tests = await forge(['test', '--offline'])
  const gas = await forge([...gasTests, '--tolerance', toleratedGasPercent, '--check'])
  const summary = /(\d+) tests? passed, (\d+) failed, \d+ skipped \(\d+ total/.exec(tests.output)
  const passed = Number(summary?.[1] ?? 0) + (gas.failed ? 0 : 1)
  // A run without a summary, or one that ended badly for another reason than a test, is a failure too.
  const failed = Math.max(Number(summary?.[2] ?? 1), tests.failed ? 1 : 0) + (gas.failed ? 1 : 0)
  if (gas.failed)
    print(
      `The gas snapshot differs by more than ${toleratedGasPercent} %. If that is meant: npm run test:contracts -- --update-gas\n`,
    )
  print(`${passed} passed, ${failed} failed\n`)
  process.exitCode = failed > 0 ? 1 : 0
}

/** Lives through that many calls, or for so long, and prints where it is after each part. Returns whether every law held. */
async function fuzz(minutes: number, calls: number): Promise<boolean> {
  if ((await forge(['build', '--offline'])).failed) return false
  const source = readFileSync(join(import.meta.dirname, 'test/Invariants.t.sol'), 'utf8')
  const callsOfLife = Number(/STEPS = (\d+)/.exec(source)?.[1])
  const processes = availableParallelism()
  const began = performance.now()
  const seconds = () => (performance.now() - began) / 1_000
  let lives = 0
  while (lives * callsOfLife < calls && seconds() < minutes * 60) {
    const missing = Math.ceil((calls / callsOfLife - lives) / processes)
    const runs = await Promise.all(
      Array.from({ length: processes }, () =>
        runForge(['test', '--offline', '--match-test', 'testFuzz_everyRecord'], {
          FOUNDRY_FUZZ_TIMEOUT: `${Math.ceil(minutes * 60 - seconds())}`,
          FOUNDRY_FUZZ_RUNS: `${Math.min(missing, Math.ceil(callsAtOnce / callsOfLife))}`,
          FOUNDRY_FUZZ_SEED: `0x${randomBytes(8).toString('hex')}`,
        }),
      ),
    )
    const more = runs.reduce((sum, { stdout }) => sum + Number(/\(runs: (\d+)/.exec(stdout)?.[1] ?? 0), 0)
    const wrong = runs.find(({ failed }) => failed || more === 0)
    if (wrong !== undefined) print(`${wrong.stdout}${wrong.stderr}`)
    lives += more
    const done = lives * callsOfLife
    const rate = Math.round(done / seconds())
    print(`${done} calls in ${lives} lives, ${Math.round(seconds())} s, ${rate} a second: `)
    print(wrong === undefined ? 'every law held\n' : 'a law did not hold\n')
    if (wrong !== undefined) return false
  }
  return lives > 0
}

async function forge(args: string[], env = {}): Promise<{ failed: boolean; output: string }> {
  const { failed, stdout, stderr } = await runForge(args, env)
  print(`${stdout}${stderr}`)
  return { failed, output: stdout }
}

function print(text: string): void {
  process.stdout.write(text)
}
