/**
 * `node contracts/test.ts`: the Solidity tests and the gas snapshot, offline. The last line is `N passed, N failed`.
 * `--update-gas` writes .gas-snapshot anew. `--minutes 30` runs the invariants alone, for so long or for `--calls 10000000`, with another
 * seed each time.
 */
import { randomBytes } from 'node:crypto'
import { forge as runForge } from './forge.ts'

const toleratedGasPercent = '3'
const gasTests = ['snapshot', '--offline', '--match-contract', 'GasTest']

if (process.argv.includes('--update-gas')) {
  process.exitCode = (await forge(gasTests)).failed ? 1 : 0
} else if (process.argv.includes('--minutes')) {
  const depth = 64
  const seconds = 60 * Number(valueOf('--minutes'))
  const calls = Number(valueOf('--calls') ?? 1e9)
  const env = {
    FOUNDRY_INVARIANT_TIMEOUT: `${seconds}`,
    FOUNDRY_INVARIANT_DEPTH: `${depth}`,
    FOUNDRY_INVARIANT_RUNS: `${Math.ceil(calls / depth)}`,
    FOUNDRY_FUZZ_SEED: `0x${randomBytes(8).toString('hex')}`,
  }
  process.exitCode = (await forge(['test', '--offline', '--match-contract', 'InvariantsTest'], env)).failed ? 1 : 0
} else {
  const tests = await forge(['test', '--offline'])
  const gas = await forge([...gasTests, '--tolerance', toleratedGasPercent, '--check'])
  const summary = /(\d+) tests? passed, (\d+) failed, \d+ skipped \(\d+ total/.exec(tests.output)
  const passed = Number(summary?.[1] ?? 0) + (gas.failed ? 0 : 1)
  // A run without a summary, or one that ended badly for another reason than a test, is a failure too.
  const failed = Math.max(Number(summary?.[2] ?? 1), tests.failed ? 1 : 0) + (gas.failed ? 1 : 0)
  if (gas.failed)
    print(
      `The gas snapshot differs by more than ${toleratedGasPercent} %. If that is meant: node contracts/test.ts --update-gas\n`,
    )
  print(`${passed} passed, ${failed} failed\n`)
  process.exitCode = failed > 0 ? 1 : 0
}

function valueOf(option: string): string | undefined {
  const at = process.argv.indexOf(option)
  return at === -1 ? undefined : process.argv[at + 1]
}

async function forge(args: string[], env = {}): Promise<{ failed: boolean; output: string }> {
  const { failed, stdout, stderr } = await runForge(args, env)
  print(`${stdout}${stderr}`)
  return { failed, output: stdout }
}

function print(text: string): void {
  process.stdout.write(text)
}
