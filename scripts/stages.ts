/** Runs named commands one after another, shows their output, and says at the end what held and how long it took. */
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

export type Stage = { readonly name: string; readonly command: readonly [string, ...string[]] }

export const root = fileURLToPath(new URL('..', import.meta.url))

/** Exit code 1 when a stage failed; all stages run all the same, so that one run shows everything. */
export async function runStages(stages: readonly Stage[]): Promise<void> {
  const lines: string[] = []
  let failed = 0
  for (const { name, command } of stages) {
    console.log(`\n── ${name}: ${command.join(' ')}`)
    const began = performance.now()
    const code = await run(command)
    const seconds = ((performance.now() - began) / 1000).toFixed(1)
    if (code !== 0) failed += 1
    lines.push(`${code === 0 ? '✔' : '✖'} ${name.padEnd(24)} ${seconds.padStart(6)} s`)
  }
  console.log(`\n${lines.join('\n')}\n${stages.length - failed} passed, ${failed} failed`)
  process.exitCode = failed === 0 ? 0 : 1
}

function run([program, ...args]: readonly [string, ...string[]]): Promise<number> {
  return new Promise((resolve) => {
    const child = spawn(program, args, { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] })
    child.once('error', () => resolve(127))
    child.once('exit', (code) => resolve(code ?? 1))
  })
}
