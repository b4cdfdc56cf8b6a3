/**
 * `node contracts/test.ts`: the Solidity tests and the gas snapshot, offline. The last line is `N passed, N failed`.
 * `--update-gas` writes .gas-snapshot anew.
 */
import { spawnSync } from 'node:child_process'
import { createRequire } from 'node:module'
import { delimiter, dirname, join } from 'node:path'

const toleratedGasPercent = '3'
const gasTests = ['snapshot', '--offline', '--match-contract', 'GasTest']

if (process.argv.includes('--update-gas')) {
  process.exitCode = forge(gasTests).failed ? 1 : 0
} else {
  const tests = forge(['test', '--offline'])
  const gas = forge([...gasTests, '--tolerance', toleratedGasPercent, '--check'])
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

function forge(args: string[]): { failed: boolean; output: string } {
  const { status, stdout, stderr, error } = spawnSync(forgeBinary(), args, {
    cwd: import.meta.dirname,
    encoding: 'utf8',
    maxBuffer: 64 << 20,
    // The compiler wrapper is started by forge through `env node`: it gets the Node that runs this.
    env: {
      ...process.env,
      NO_COLOR: '1',
      PATH: `${dirname(process.execPath)}${delimiter}${process.env['PATH'] ?? ''}`,
    },
  })
  print(`${stdout ?? ''}${stderr ?? ''}`)
  if (error !== undefined) print(`forge did not start: ${error.message}\n`)
  return { failed: status !== 0, output: stdout ?? '' }
}

/** The program itself, not npm's wrapper script around it. */
function forgeBinary(): string {
  const architecture = process.arch === 'x64' ? 'amd64' : process.arch
  const manifest = `@foundry-rs/forge-${process.platform}-${architecture}/package.json`
  const file = process.platform === 'win32' ? 'forge.exe' : 'forge'
  return join(dirname(createRequire(import.meta.url).resolve(manifest)), 'bin', file)
}

function print(text: string): void {
  process.stdout.write(text)
}
